// SPDX-License-Identifier: MIT
//
// An open device as the contracts use it: memory, code objects, launches. One object belongs to one thread at
// a time.
//
//   auto& gpu = dynamic_cast<HipDevice&>(device);
//   Function f = gpu.function(kernel_directory() / "mla_decode.co", "mla_decode_bf16_bf16");
//   LaunchReport r = gpu.launch(f, {.grid = {x, y, z}, .threads = 256}, args);
//   if (r.status != Status::ok) ...                 // the kernel's doing: r.diagnosis, r.detail
//
// Calls that fail without a kernel being to blame throw CallFailed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "device/hip/api.h"
#include "device/kernel.h"

namespace attest::device::hip {

struct Geometry {
  std::array<unsigned, 3> grid{1, 1, 1};  ///< workgroups
  unsigned threads = 64;                  ///< of a workgroup, in x
};

struct LaunchReport {
  Status status = Status::ok;
  std::string diagnosis;  ///< as in Outcome
  std::string detail;
  std::uint64_t wave_instructions = 0;
  double seconds = 0;
};

/// Status, diagnosis and detail from the simulator's JSON report. An empty or unreadable report gives a crash
/// that quotes `error`, which is all that a GPU tells.
LaunchReport read_fault_report(const std::string& json, const std::string& error);

/// From the simulator's JSON (hip_api/simulator.h, attest_sim_findings). Throws DeviceError when it is not
/// that.
Observations read_findings(const std::string& json);

/// Bytes of a buffer, by the name under which it was allocated.
struct BufferBytes {
  std::string buffer;
  std::uint64_t offset = 0, bytes = 1;
  std::uint32_t before = 0xffffffff;  ///< stores of this launch and later ones do not count; launches from 0
};

class HipDevice final : public Device {
 public:
  /// Throws DeviceUnavailable: HIP does not start, there is no device, or no such ordinal.
  HipDevice(const Api& api, std::string kind, int ordinal);
  ~HipDevice() override;
  HipDevice(const HipDevice&) = delete;
  HipDevice& operator=(const HipDevice&) = delete;

  [[nodiscard]] std::string name() const override { return kind_; }
  [[nodiscard]] std::string arch() const override { return arch_; }
  void choose_detectors(const std::string& list) override;
  void choose_schedule(const std::string& word) override;
  Observations take_observations() override;
  [[nodiscard]] const Api& api() const { return api_; }
  /// The library behind it and the version of HIP that it says it is: "libamdhip64.so.6, HIP 6.3.42133".
  [[nodiscard]] std::string runtime() const;

  /// Which ways the branches of the kernels went that were launched since the last call, by symbol
  /// (hip_api/simulator.h, attest_sim_branches). Empty on a device that cannot tell.
  std::map<std::string, std::string> take_branches();

  /// How the bytes come about in the launches of `run`, which is called several times and has to launch the
  /// same each time: the simulator's answer, JSON (hip_api/simulator.h, attest_sim_followed). @param window
  /// instructions around the store to list. Throws DeviceError on a device that cannot tell.
  std::string follow(const BufferBytes& bytes, std::uint32_t window, const std::function<void()>& run);

  /// `label` names the memory in messages.
  void* allocate(std::size_t bytes, const std::string& label);
  void release(void* pointer) noexcept;
  void copy_to_device(void* to, std::span<const std::byte> from, const std::string& label);
  void copy_from_device(std::span<std::byte> to, const void* from, const std::string& label);

  /// Loads the file once. Throws DeviceError: the file is no code object for this device, or has no such
  /// kernel.
  Function function(const std::filesystem::path& file, const std::string& kernel);

  /// Launches and waits. `budget`: wave instructions after which the simulator stops the kernel.
  LaunchReport launch(Function function, const Geometry& geometry, std::span<const std::byte> arguments,
                      std::uint64_t budget);

  template <typename Arguments>
  LaunchReport launch(Function f, const Geometry& geometry, const Arguments& arguments,
                      std::uint64_t budget) {
    static_assert(std::is_trivially_copyable_v<Arguments>);
    return launch(f, geometry, std::as_bytes(std::span(&arguments, 1)), budget);
  }

 private:
  void make_current();

  const Api& api_;
  std::string kind_;
  int ordinal_;
  std::string arch_;
  bool detects_ = false;
  std::string schedule_;  ///< the last one chosen
  std::map<std::filesystem::path, Module> modules_;
  std::map<std::pair<std::filesystem::path, std::string>, Function> functions_;
};

/// The HipDevice behind a Device, which open_device made. Throws DeviceError for any other.
HipDevice& hip_device(Device& device);

}  // namespace attest::device::hip
