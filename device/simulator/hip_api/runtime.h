// SPDX-License-Identifier: MIT
//
// The state behind the HIP functions: simulated devices, what was loaded into them, and the calling thread's
// current device and last error.
//
// Environment: ATTEST_SIM_DEVICES (default 8), ATTEST_SIM_THREADS (0: as many as oneTBB offers),
// ATTEST_SIM_BUDGET (wave instructions per launch), ATTEST_SIM_SCHEDULE (detect/schedule.h),
// ATTEST_SIM_REPORT (where faults go: stderr, none, or a file), ATTEST_SIM_DETECT (detectors: all, none, or a
// list; their hazards go to stderr after each launch).
#pragma once

#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/simulator/core/dispatch.h"
#include "device/simulator/core/memory.h"
#include "device/simulator/core/module.h"
#include "device/simulator/detect/session.h"

namespace attest::device::sim::hip {

struct Module;

/// What a hipFunction_t points to.
struct Function {
  Module* module = nullptr;
  const LoadedKernel* kernel = nullptr;
};

struct SimDevice {
  explicit SimDevice(std::uint32_t ordinal) : memory(ordinal) {}

  void choose(detect::DetectorSet set);
  void choose(const detect::Schedule& schedule);

  std::mutex mutex;  ///< held by every call that uses the device
  Memory memory;
  Dispatcher dispatcher;
  Settings settings;
  detect::Session detectors;
  /// Programs that were launched since the branches were asked for, with their kernel's name.
  std::map<std::shared_ptr<const Program>, std::string> launched;
  bool print_hazards = false;  ///< on stderr after each launch: the environment asked for detectors
  std::string last_report;     ///< JSON of the last fault; empty when the last launch had none
  std::uint64_t instructions = 0;
  std::uint64_t clock_ns = 0;     ///< simulated time, which events read
  std::string report = "stderr";  ///< where faults are told: "stderr", a file, or nowhere
  void tell(const std::string& line) const;
  hipError_t pending = hipSuccess;  ///< what an asynchronous launch left for the next synchronisation
};

/// What a hipStream_t points to. Work is done when its call returns, so a stream holds nothing.
struct Stream {
  unsigned int flags = 0;
  int priority = 0;
};

/// What a hipModule_t points to.
struct Module {
  Module(SimDevice& target, std::vector<std::byte> bytes)
      : device(target), code(target.memory, std::move(bytes)) {}

  /// nullptr when there is no kernel of that name.
  Function* function(const std::string& name);

  SimDevice& device;
  LoadedModule code;

 private:
  std::map<std::string, std::unique_ptr<Function>> functions_;
};

class Runtime {
 public:
  static Runtime& get();

  [[nodiscard]] int device_count() const { return static_cast<int>(devices_.size()); }
  [[nodiscard]] SimDevice& device(int ordinal) { return *devices_[static_cast<std::size_t>(ordinal)]; }
  /// The device whose memory pointer belongs to, or nullptr.
  SimDevice* owner(const void* pointer);

  hipModule_t add(std::unique_ptr<Module> module);
  Module* find(hipModule_t handle);
  bool remove(hipModule_t handle);
  /// nullptr for what is no function of a loaded module.
  Function* find(hipFunction_t handle);
  void publish(Function* function);

  hipStream_t create_stream(unsigned int flags, int priority);
  bool is_stream(hipStream_t stream);
  bool remove_stream(hipStream_t stream);
  /// nullptr for the null streams and for what is none.
  const Stream* find(hipStream_t stream);

 private:
  Runtime();

  std::mutex mutex_;
  std::vector<std::unique_ptr<SimDevice>> devices_;
  std::map<hipModule_t, std::unique_ptr<Module>> modules_;
  std::set<const void*> functions_;
  std::map<hipStream_t, std::unique_ptr<Stream>> streams_;
};

/// The calling thread's.
int current_device();
void set_current_device(int ordinal);
SimDevice& device();

/// Remembers an error for hipGetLastError and passes it on.
hipError_t remember(hipError_t error);
hipError_t last_error(bool clear);

/// Runs the body of a HIP function: no exception leaves it, its error is remembered.
template <typename Body>
hipError_t api(Body&& body) noexcept {
  try {
    return remember(body());
  } catch (const std::bad_alloc&) {
    return remember(hipErrorOutOfMemory);
  } catch (const std::exception&) {
    return remember(hipErrorUnknown);
  }
}

}  // namespace attest::device::sim::hip
