// SPDX-License-Identifier: MIT
#include "device/simulator/hip_api/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace attest::device::sim::hip {
namespace {

thread_local int thread_device = 0;
thread_local hipError_t thread_error = hipSuccess;

std::uint64_t from_environment(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 0);
  return *end == '\0' ? value : otherwise;
}

/// A kernel's code is its function symbol, when everything it does stays in there; else all executable code.
bool is_closed(std::span<const std::byte> text, const Program& program, std::uint64_t address) {
  for (std::uint32_t at = 0; at < program.size(); ++at) {
    const Instruction& i = program.code()[at].instruction;
    if (i.op == Op::s_swappc_b64 || i.op == Op::s_setpc_b64 || i.op == Op::s_call_b64 ||
        i.op == Op::s_getpc_b64) {
      return false;
    }
    // A branch out of the range became a guard.
    if (info(i.op).has(op_flag::branch) && static_cast<std::uint32_t>(i.imm) >= program.size()) return false;
  }
  return program.address_of(program.size()) == address + text.size();
}

}  // namespace

Module::Module(SimDevice& target, std::vector<std::byte> image)
    : device(target), bytes(std::move(image)), object(read_code_object(bytes)) {
  if (object.kernels.empty() && object.variables.empty()) throw CodeObjectError("code object has no kernels");
  std::uint64_t read_only = 0;
  for (const Segment& segment : object.segments) {
    if (segment.writable) break;
    read_only = segment.address + segment.memory_bytes;
  }
  const auto address = device.memory.allocate_image(object.image_bytes, read_only, "code object");
  if (!address) throw std::bad_alloc();
  base = *address;
  std::byte* host = device.memory.translate_for_host(base, object.image_bytes);
  for (const Segment& segment : object.segments) {
    if (!segment.file.empty()) std::memcpy(host + segment.address, segment.file.data(), segment.file.size());
  }
  for (const Relocation& relocation : object.relocations) {
    const std::uint64_t value = base + static_cast<std::uint64_t>(relocation.value);
    std::memcpy(host + relocation.address, &value, sizeof value);
  }
}

Module::~Module() {
  device.memory.release(base);
}

std::shared_ptr<const Program> Module::program(const Kernel& kernel) {
  const auto segment = std::find_if(object.segments.begin(), object.segments.end(), [&](const Segment& s) {
    return s.executable && kernel.entry_address >= s.address &&
           kernel.entry_address - s.address < s.file.size();
  });
  const auto make = [&](std::uint64_t from, std::span<const std::byte> text) {
    ProgramSource source;
    source.text = text;
    source.address = base + from;
    source.entry = base + kernel.entry_address;
    source.vgpr_count = kernel.descriptor.vgpr_count();
    source.accum_offset = kernel.descriptor.accum_offset();
    const ProgramKey key{from, text.size(), kernel.entry_address, source.vgpr_count, source.accum_offset};
    std::shared_ptr<const Program>& known = programs_[key];
    if (known == nullptr) known = std::make_shared<const Program>(source, host_simd_level());
    return known;
  };
  const std::uint64_t offset = kernel.entry_address - segment->address;
  if (kernel.code_bytes >= 4 && kernel.code_bytes <= segment->file.size() - offset) {
    const auto text = segment->file.subspan(offset, kernel.code_bytes / 4 * 4);
    std::shared_ptr<const Program> own = make(kernel.entry_address, text);
    if (is_closed(text, *own, base + kernel.entry_address)) return own;
  }
  return make(segment->address, segment->file.subspan(0, segment->file.size() / 4 * 4));
}

Function* Module::function(const std::string& name) {
  if (const auto known = functions_.find(name); known != functions_.end()) return known->second.get();
  const Kernel* kernel = object.find(name);
  if (kernel == nullptr) return nullptr;
  auto function = std::make_unique<Function>();
  function->module = this;
  function->loaded.kernel = *kernel;
  function->loaded.descriptor_address = base + kernel->descriptor_address;
  function->loaded.image_base = base;
  function->loaded.program = program(*kernel);
  return functions_.emplace(name, std::move(function)).first->second.get();
}

Runtime::Runtime() {
  const std::uint64_t count = std::clamp<std::uint64_t>(from_environment("ATTEST_SIM_DEVICES", 8), 1, 16);
  Settings settings;
  settings.threads = static_cast<std::uint32_t>(from_environment("ATTEST_SIM_THREADS", 0));
  settings.instruction_budget = from_environment("ATTEST_SIM_BUDGET", settings.instruction_budget);
  settings.seed = from_environment("ATTEST_SIM_SEED", 0);
  settings.quantum = static_cast<std::uint32_t>(from_environment("ATTEST_SIM_QUANTUM", 1));
  for (std::uint64_t d = 0; d < count; ++d) {
    devices_.push_back(std::make_unique<SimDevice>(static_cast<std::uint32_t>(d)));
    devices_.back()->settings = settings;
  }
}

Runtime& Runtime::get() {
  // Never destroyed: programs free device memory from destructors that run after ours would.
  static Runtime& runtime = *new Runtime;
  return runtime;
}

SimDevice* Runtime::owner(const void* pointer) {
  for (const auto& d : devices_) {
    if (d->memory.owns(reinterpret_cast<std::uint64_t>(pointer))) return d.get();
  }
  return nullptr;
}

hipModule_t Runtime::add(std::unique_ptr<Module> module) {
  const std::scoped_lock lock(mutex_);
  const auto handle = reinterpret_cast<hipModule_t>(module.get());
  modules_.emplace(handle, std::move(module));
  return handle;
}

Module* Runtime::find(hipModule_t handle) {
  const std::scoped_lock lock(mutex_);
  const auto found = modules_.find(handle);
  return found != modules_.end() ? found->second.get() : nullptr;
}

bool Runtime::remove(hipModule_t handle) {
  std::unique_ptr<Module> module;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = modules_.find(handle);
    if (found == modules_.end()) return false;
    module = std::move(found->second);
    modules_.erase(found);
    std::erase_if(functions_,
                  [&](const void* f) { return static_cast<const Function*>(f)->module == module.get(); });
  }
  const std::scoped_lock lock(module->device.mutex);
  module.reset();
  return true;
}

void Runtime::publish(Function* function) {
  const std::scoped_lock lock(mutex_);
  functions_.insert(function);
}

Function* Runtime::find(hipFunction_t handle) {
  const std::scoped_lock lock(mutex_);
  return functions_.contains(handle) ? reinterpret_cast<Function*>(handle) : nullptr;
}

hipStream_t Runtime::create_stream() {
  const std::scoped_lock lock(mutex_);
  auto token = std::make_unique<char>();
  const auto handle = reinterpret_cast<hipStream_t>(token.get());
  streams_.emplace(handle, std::move(token));
  return handle;
}

bool Runtime::is_stream(hipStream_t stream) {
  if (stream == nullptr || stream == hipStreamPerThread) return true;
  const std::scoped_lock lock(mutex_);
  return streams_.contains(stream);
}

bool Runtime::remove_stream(hipStream_t stream) {
  const std::scoped_lock lock(mutex_);
  return streams_.erase(stream) != 0;
}

int current_device() {
  return thread_device;
}
void set_current_device(int ordinal) {
  thread_device = ordinal;
}
SimDevice& device() {
  return Runtime::get().device(thread_device);
}

hipError_t remember(hipError_t error) {
  if (error != hipSuccess) thread_error = error;
  return error;
}

hipError_t last_error(bool clear) {
  const hipError_t error = thread_error;
  if (clear) thread_error = hipSuccess;
  return error;
}

}  // namespace attest::device::sim::hip
