// SPDX-License-Identifier: MIT
#include "device/simulator/hip_api/launch.h"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "device/simulator/hip_api/hostcall.h"

namespace attest::device::sim::hip {
namespace {

constexpr std::size_t largest_image = std::size_t{4} << 30;

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

/// Device time, for events: a launch costs 5 us and a cycle per instruction on each of the 1216 SIMDs it can
/// fill.
std::uint64_t nanoseconds(std::uint64_t instructions, const Launch& shape) {
  const std::uint64_t groups = std::uint64_t{shape.blocks[0]} * shape.blocks[1] * shape.blocks[2];
  const std::uint64_t work_items = std::uint64_t{shape.threads[0]} * shape.threads[1] * shape.threads[2];
  const std::uint64_t waves = std::max<std::uint64_t>(1, groups * ((work_items + lanes - 1) / lanes));
  return 5000 + 4 * instructions / std::min<std::uint64_t>(waves, 1216) * 10 / 21;
}

bool calls_host(const Kernel& kernel) {
  return std::any_of(kernel.arguments.begin(), kernel.arguments.end(),
                     [](const KernelArgument& a) { return a.kind == "hidden_hostcall_buffer"; });
}

hipError_t run(SimDevice& d, const LoadedKernel& kernel, Launch& launch) {
  const Hazards printer(d);
  std::optional<Hostcalls> calls;
  if (calls_host(kernel.kernel)) {
    const std::uint64_t groups = std::uint64_t{launch.blocks[0]} * launch.blocks[1] * launch.blocks[2];
    calls.emplace(d.memory, groups * 16);
    launch.hostcall_buffer = calls->buffer();
    launch.interrupt = [&calls] { calls->serve(); };
  }
  d.launched.try_emplace(kernel.program, kernel.kernel.name);
  try {
    d.instructions = d.dispatcher.run(kernel, launch, d.memory, d.settings).instructions;
    d.clock_ns += nanoseconds(d.instructions, launch);
    return hipSuccess;
  } catch (const KernelFault& fault) {
    // How far the workgroups beside the one at fault came is up to the threads.
    d.launched.erase(kernel.program);
    static_cast<void>(kernel.program->take_branches());
    d.last_report = report(fault);
    d.tell(fault.line);
    const hipError_t error = code_of(fault.kind);
    if (fault.kind != FaultKind::launch) d.pending = error;
    return error;
  }
}

}  // namespace

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

std::vector<std::byte> image_at(const void* image) {
  const std::size_t size = claimed_size(copy_readable(image, 4096));
  if (size > largest_image) return {};
  return copy_readable(image, std::max<std::size_t>(size, 64));
}

hipError_t refuse_image(SimDevice& device, const CodeObjectError& error) {
  device.last_report = nlohmann::json{{"kind", "code_object"}, {"message", error.what()}}.dump();
  device.tell(error.what());
  const bool other_target = std::string_view(error.what()).find("gfx942") != std::string_view::npos;
  return other_target ? hipErrorNoBinaryForGpu : hipErrorInvalidImage;
}

hipError_t launch(Function& function, const LaunchShape& shape, void** parameters, void** extra) {
  if (parameters != nullptr && extra != nullptr) return hipErrorInvalidValue;
  if (shape.dynamic_lds_bytes > 0xffffffff) return hipErrorInvalidValue;
  const auto block = arguments(function.kernel->kernel, parameters, extra);
  if (!block) return hipErrorInvalidValue;
  Launch launch;
  const unsigned blocks[3] = {shape.blocks.x, shape.blocks.y, shape.blocks.z};
  const unsigned threads[3] = {shape.threads.x, shape.threads.y, shape.threads.z};
  std::copy_n(blocks, 3, launch.blocks);
  std::copy_n(threads, 3, launch.threads);
  launch.dynamic_lds_bytes = static_cast<std::uint32_t>(shape.dynamic_lds_bytes);
  launch.kernarg = *block;
  launch.cooperative = shape.cooperative;
  SimDevice& d = function.module->device;
  const std::scoped_lock lock(d.mutex);
  d.last_report.clear();
  d.instructions = 0;
  return run(d, *function.kernel, launch);
}

}  // namespace attest::device::sim::hip
