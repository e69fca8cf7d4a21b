// SPDX-License-Identifier: MIT
//
// Code objects and launches. A launch runs to its end before it returns. When the kernel is stopped, the
// launch returns the error and the next synchronisation returns it too, so that programs which look in either
// place find it.
#include <fmt/format.h>
#include <hip/hip_runtime_api.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "device/simulator/hip_api/export.h"
#include "device/simulator/hip_api/runtime.h"
#include "device/simulator/hip_api/simulator.h"

using namespace attest::device::sim;
using namespace attest::device::sim::hip;

namespace {

/// Copies from a pointer the caller vouches for, as far as it is readable: a header that claims more than
/// there is must not bring the process down.
std::vector<std::byte> copy_readable(const void* from, std::size_t bytes) {
  std::vector<std::byte> copy(bytes);
  std::size_t done = 0;
  while (done < bytes) {
    iovec local{copy.data() + done, bytes - done};
    iovec remote{const_cast<std::byte*>(static_cast<const std::byte*>(from)) + done, bytes - done};
    const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  copy.resize(done);
  return copy;
}

constexpr std::size_t largest_image = std::size_t{4} << 30;

hipError_t load(hipModule_t* module, std::vector<std::byte> bytes) {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  try {
    *module = Runtime::get().add(std::make_unique<Module>(d, std::move(bytes)));
    return hipSuccess;
  } catch (const CodeObjectError& error) {
    d.last_report = nlohmann::json{{"kind", "code_object"}, {"message", error.what()}}.dump();
    const std::string_view what = error.what();
    const bool other_target = what.find("gfx942") != std::string_view::npos;
    return other_target ? hipErrorNoBinaryForGpu : hipErrorInvalidImage;
  }
}

std::string report(const KernelFault& fault) {
  nlohmann::json json = {{"kind", name(fault.kind)},
                         {"message", fault.message},
                         {"kernel", fault.kernel},
                         {"pc", fault.pc},
                         {"disassembly", fault.disassembly},
                         {"workgroup", fault.workgroup},
                         {"wave", fault.wave},
                         {"lane", fault.lane},
                         {"address", fault.address}};
  return json.dump();
}

hipError_t code_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::launch:
      return hipErrorInvalidConfiguration;
    case FaultKind::instruction_budget:
    case FaultKind::barrier_deadlock:
      return hipErrorLaunchTimeOut;
    default:
      return hipErrorLaunchFailure;
  }
}

/// The argument block of a launch, from whichever of the two ways the caller used. nullopt when neither is
/// usable.
std::optional<std::vector<std::byte>> arguments(const Kernel& kernel, void** parameters, void** extra) {
  std::vector<std::byte> block;
  if (extra != nullptr) {
    const void* buffer = nullptr;
    const std::size_t* size = nullptr;
    for (void** e = extra; *e != HIP_LAUNCH_PARAM_END; e += 2) {
      if (*e == HIP_LAUNCH_PARAM_BUFFER_POINTER) {
        buffer = e[1];
      } else if (*e == HIP_LAUNCH_PARAM_BUFFER_SIZE) {
        size = static_cast<const std::size_t*>(e[1]);
      } else {
        return std::nullopt;
      }
    }
    if (buffer == nullptr || size == nullptr || *size > 64 * 1024) return std::nullopt;
    block.resize(*size);
    std::memcpy(block.data(), buffer, *size);
    return block;
  }
  std::size_t given = 0;
  for (const KernelArgument& a : kernel.arguments) {
    if (a.kind.starts_with("hidden_")) continue;
    if (parameters == nullptr || parameters[given] == nullptr || a.size > 4096 || a.offset > 4096)
      return std::nullopt;
    block.resize(std::max<std::size_t>(block.size(), a.offset + a.size));
    std::memcpy(block.data() + a.offset, parameters[given++], a.size);
  }
  if (given == 0 && parameters != nullptr && kernel.kernarg_bytes != 0 && kernel.arguments.empty())
    return std::nullopt;
  return block;
}

/// Prints, when the environment asked for it, the hazards of one launch, which may end by an exception.
class Hazards {
 public:
  explicit Hazards(SimDevice& device) : device_(device) {}
  ~Hazards() {
    if (!device_.print_hazards || device_.settings.watch == nullptr) return;
    for (const detect::Hazard& h : device_.detectors.take().report.ranked())
      std::fprintf(stderr, "%s\n", h.line().c_str());
  }
  Hazards(const Hazards&) = delete;
  Hazards& operator=(const Hazards&) = delete;

 private:
  SimDevice& device_;
};

hipError_t launch(Function& function, const Launch& shape) {
  SimDevice& d = function.module->device;
  const std::scoped_lock lock(d.mutex);
  d.last_report.clear();
  d.instructions = 0;
  const Hazards printer(d);
  try {
    d.instructions = d.dispatcher.run(*function.kernel, shape, d.memory, d.settings).instructions;
    return hipSuccess;
  } catch (const KernelFault& fault) {
    d.last_report = report(fault);
    const hipError_t error = code_of(fault.kind);
    if (fault.kind != FaultKind::launch) d.pending = error;
    return error;
  }
}

}  // namespace

ATTEST_HIP hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  return api([&] {
    if (module == nullptr || image == nullptr) return hipErrorInvalidValue;
    *module = nullptr;
    const std::size_t size = claimed_size(copy_readable(image, 4096));
    if (size > largest_image) return hipErrorInvalidImage;
    return load(module, copy_readable(image, std::max<std::size_t>(size, 64)));
  });
}

ATTEST_HIP hipError_t hipModuleLoadDataEx(hipModule_t* module, const void* image, unsigned int, hipJitOption*,
                                          void**) {
  return hipModuleLoadData(module, image);
}

ATTEST_HIP hipError_t hipModuleLoad(hipModule_t* module, const char* path) {
  return api([&] {
    if (module == nullptr || path == nullptr) return hipErrorInvalidValue;
    *module = nullptr;
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) return hipErrorFileNotFound;
    const std::streamoff size = file.tellg();
    if (size < 0 || static_cast<std::size_t>(size) > largest_image) return hipErrorInvalidImage;
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    file.seekg(0);
    if (!file.read(reinterpret_cast<char*>(bytes.data()), size)) return hipErrorFileNotFound;
    return load(module, std::move(bytes));
  });
}

ATTEST_HIP hipError_t hipModuleUnload(hipModule_t module) {
  return api([&] { return Runtime::get().remove(module) ? hipSuccess : hipErrorInvalidHandle; });
}

ATTEST_HIP hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module,
                                           const char* kernel_name) {
  return api([&] {
    if (function == nullptr || kernel_name == nullptr) return hipErrorInvalidValue;
    *function = nullptr;
    Module* found = Runtime::get().find(module);
    if (found == nullptr) return hipErrorInvalidHandle;
    const std::scoped_lock lock(found->device.mutex);
    Function* f = found->function(kernel_name);
    if (f == nullptr) return hipErrorNotFound;
    Runtime::get().publish(f);
    *function = reinterpret_cast<hipFunction_t>(f);
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipModuleGetGlobal(hipDeviceptr_t* pointer, std::size_t* bytes, hipModule_t module,
                                         const char* variable_name) {
  return api([&] {
    if (variable_name == nullptr) return hipErrorInvalidValue;
    Module* found = Runtime::get().find(module);
    if (found == nullptr) return hipErrorInvalidHandle;
    for (const GlobalVariable& v : found->code.object().variables) {
      if (v.name != variable_name) continue;
      if (pointer != nullptr) *pointer = reinterpret_cast<hipDeviceptr_t>(found->code.base() + v.address);
      if (bytes != nullptr) *bytes = v.bytes;
      return hipSuccess;
    }
    return hipErrorNotFound;
  });
}

ATTEST_HIP hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                            unsigned int block_z, unsigned int shared_bytes,
                                            hipStream_t stream, void** parameters, void** extra) {
  return api([&] {
    Runtime& runtime = Runtime::get();
    Function* f = runtime.find(function);
    if (f == nullptr) return hipErrorInvalidHandle;
    if (!runtime.is_stream(stream)) return hipErrorInvalidHandle;
    if (parameters != nullptr && extra != nullptr) return hipErrorInvalidValue;
    const auto block = arguments(f->kernel->kernel, parameters, extra);
    if (!block) return hipErrorInvalidValue;
    Launch shape;
    const unsigned int grid[3] = {grid_x, grid_y, grid_z};
    const unsigned int threads[3] = {block_x, block_y, block_z};
    std::copy_n(grid, 3, shape.blocks);
    std::copy_n(threads, 3, shape.threads);
    shape.dynamic_lds_bytes = shared_bytes;
    shape.kernarg = *block;
    return launch(*f, shape);
  });
}

ATTEST_HIP const char* attest_sim_last_report() {
  static thread_local std::string copy;
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  copy = d.last_report;
  return copy.c_str();
}

ATTEST_HIP std::uint64_t attest_sim_instructions() {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  return d.instructions;
}

ATTEST_HIP void attest_sim_set_budget(std::uint64_t instructions) {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  d.settings.instruction_budget = instructions;
}

ATTEST_HIP void attest_sim_name_range(void* pointer, std::size_t bytes, const char* name) {
  SimDevice* owner = Runtime::get().owner(pointer);
  if (owner == nullptr || name == nullptr) return;
  const std::scoped_lock lock(owner->mutex);
  owner->memory.name_range(reinterpret_cast<std::uint64_t>(pointer), bytes, name);
}

ATTEST_HIP int attest_sim_set_schedule(const char* text) {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  const auto schedule = detect::Schedule::parse(text != nullptr ? text : "");
  if (!schedule) {
    d.last_report =
        nlohmann::json{
            {"kind", "schedule"},
            {"message", fmt::format("{} is no schedule; one is {}", text, detect::Schedule::known())}}
            .dump();
    return 1;
  }
  d.choose(*schedule);
  return 0;
}

ATTEST_HIP int attest_sim_set_detectors(const char* list) {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  const std::string_view text = list != nullptr ? list : "";
  const auto set = detect::DetectorSet::parse(text);
  if (!set) {
    d.last_report = nlohmann::json{{"kind", "detectors"},
                                   {"message", fmt::format("no detector is called {}; there are {}",
                                                           detect::DetectorSet::unknown(text),
                                                           detect::DetectorSet::known())}}
                        .dump();
    return 1;
  }
  d.print_hazards = false;
  d.choose(*set);
  d.detectors.take();
  return 0;
}

ATTEST_HIP const char* attest_sim_findings() {
  static thread_local std::string copy;
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  copy = d.settings.watch != nullptr ? detect::to_json(d.detectors.take()).dump() : "";
  return copy.c_str();
}

ATTEST_HIP void attest_sim_mark_unwritten(void* pointer, std::size_t bytes) {
  SimDevice* owner = Runtime::get().owner(pointer);
  if (owner == nullptr) return;
  const std::scoped_lock lock(owner->mutex);
  owner->memory.mark(reinterpret_cast<std::uint64_t>(pointer), bytes, false);
}

ATTEST_HIP void attest_sim_set_threads(std::uint32_t threads) {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  d.settings.threads = threads;
}
