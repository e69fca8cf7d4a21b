// SPDX-License-Identifier: MIT
//
// What clang puts into a HIP program: constructors that register its fat binary, kernels and device
// variables, and for each <<<...>>> a push of the configuration, a call of the kernel's host stub, and a
// launch by the stub's address (clang/lib/CodeGen/CGCUDANV.cpp).
//
// A fat binary is loaded on a device when something of it is first used there.
#include <hip/hip_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/simulator/hip_api/export.h"
#include "device/simulator/hip_api/host_memory.h"
#include "device/simulator/hip_api/launch.h"
#include "device/simulator/hip_api/runtime.h"

using namespace attest::device::sim;
using namespace attest::device::sim::hip;

namespace {

struct FatBinaryWrapper {
  std::uint32_t magic;  ///< "HIPF"
  std::uint32_t version;
  const void* binary;
  const void* unused;
};
constexpr std::uint32_t wrapper_magic = 0x48495046;

struct ManagedVariable {
  std::string name;
  void* memory;  ///< on the host and on all devices
};

struct FatBinary {
  const void* image = nullptr;
  std::map<SimDevice*, hipModule_t> modules;
  std::vector<ManagedVariable> managed;
};

struct Symbol {
  FatBinary* binary;
  std::string name;
};

struct CallConfiguration {
  dim3 blocks, threads;
  std::size_t dynamic_lds_bytes;
  hipStream_t stream;
};

struct Programs {
  std::mutex mutex;
  std::list<FatBinary> binaries;
  std::map<const void*, Symbol> kernels, variables;

  static Programs& get() {
    static Programs& all = *new Programs;  // never destroyed: programs unregister after our destructors ran
    return all;
  }
};

thread_local std::vector<CallConfiguration> configurations;

/// The module of `binary` on the current device; nullptr with `error` when it cannot be loaded.
Module* module_of(FatBinary& binary, hipError_t& error) {
  SimDevice& d = device();
  if (const auto known = binary.modules.find(&d); known != binary.modules.end())
    return Runtime::get().find(known->second);
  std::vector<std::byte> bytes = binary.image != nullptr ? image_at(binary.image) : std::vector<std::byte>{};
  if (bytes.empty()) {
    error = hipErrorInvalidImage;
    return nullptr;
  }
  const std::scoped_lock lock(d.mutex);
  try {
    auto module = std::make_unique<Module>(d, std::move(bytes));
    for (const GlobalVariable& v : module->code.object().variables)
      for (const ManagedVariable& m : binary.managed)
        if (v.name == m.name && v.bytes == sizeof m.memory)
          std::memcpy(d.memory.translate_for_host(module->code.base() + v.address, v.bytes), &m.memory,
                      v.bytes);
    const hipModule_t handle = Runtime::get().add(std::move(module));
    binary.modules.emplace(&d, handle);
    return Runtime::get().find(handle);
  } catch (const CodeObjectError& refused) {
    error = refuse_image(d, refused);
    return nullptr;
  }
}

Function* kernel_of(const void* stub, hipError_t& error) {
  Programs& programs = Programs::get();
  const std::scoped_lock lock(programs.mutex);
  const auto found = programs.kernels.find(stub);
  error = hipErrorInvalidDeviceFunction;
  if (found == programs.kernels.end()) return nullptr;
  Module* module = module_of(*found->second.binary, error);
  return module != nullptr ? module->function(found->second.name) : nullptr;
}

struct Variable {
  std::uint64_t address;
  std::size_t bytes;
};
std::optional<Variable> variable_of(const void* symbol, hipError_t& error) {
  Programs& programs = Programs::get();
  const std::scoped_lock lock(programs.mutex);
  const auto found = programs.variables.find(symbol);
  error = hipErrorInvalidSymbol;
  if (found == programs.variables.end()) return std::nullopt;
  const Module* module = module_of(*found->second.binary, error);
  if (module == nullptr) return std::nullopt;
  for (const GlobalVariable& v : module->code.object().variables)
    if (v.name == found->second.name) return Variable{module->code.base() + v.address, v.bytes};
  error = hipErrorInvalidSymbol;
  return std::nullopt;
}

/// The part [offset, offset + bytes) of a device variable.
template <typename Use>
hipError_t with_symbol(const void* symbol, std::size_t bytes, std::size_t offset, Use&& use) {
  hipError_t error = hipSuccess;
  const auto v = variable_of(symbol, error);
  if (!v) return error;
  if (offset > v->bytes || bytes > v->bytes - offset) return hipErrorInvalidValue;
  return use(reinterpret_cast<void*>(v->address + offset));
}

hipError_t launch_stub(const void* stub, const LaunchShape& shape, void** parameters, hipStream_t stream) {
  if (!Runtime::get().is_stream(stream)) return hipErrorInvalidHandle;
  hipError_t error = hipSuccess;
  Function* function = kernel_of(stub, error);
  return function != nullptr ? launch(*function, shape, parameters, nullptr) : error;
}

}  // namespace

namespace attest::device::sim::hip {

const LoadedKernel* kernel_of_stub(const void* stub) {
  hipError_t error = hipSuccess;
  const Function* function = kernel_of(stub, error);
  return function != nullptr ? function->kernel : nullptr;
}

}  // namespace attest::device::sim::hip

ATTEST_HIP void** __hipRegisterFatBinary(const void* data) {
  const auto* wrapper = static_cast<const FatBinaryWrapper*>(data);
  Programs& programs = Programs::get();
  const std::scoped_lock lock(programs.mutex);
  FatBinary& binary = programs.binaries.emplace_back();
  if (wrapper != nullptr && wrapper->magic == wrapper_magic) binary.image = wrapper->binary;
  return reinterpret_cast<void**>(&binary);
}

ATTEST_HIP void __hipUnregisterFatBinary(void** modules) {
  auto* binary = reinterpret_cast<FatBinary*>(modules);
  Programs& programs = Programs::get();
  const std::scoped_lock lock(programs.mutex);
  std::erase_if(programs.kernels, [&](const auto& k) { return k.second.binary == binary; });
  std::erase_if(programs.variables, [&](const auto& v) { return v.second.binary == binary; });
  for (const auto& [d, handle] : binary->modules) Runtime::get().remove(handle);
  programs.binaries.remove_if([&](const FatBinary& b) { return &b == binary; });
}

ATTEST_HIP void __hipRegisterFunction(void** modules, const void* stub, char*, const char* name, unsigned int,
                                      void*, void*, dim3*, dim3*, int*) {
  Programs& programs = Programs::get();
  const std::scoped_lock lock(programs.mutex);
  programs.kernels[stub] = {reinterpret_cast<FatBinary*>(modules), name};
}

ATTEST_HIP void __hipRegisterVar(void** modules, void* shadow, char*, char* name, int, std::size_t, int,
                                 int) {
  Programs& programs = Programs::get();
  const std::scoped_lock lock(programs.mutex);
  programs.variables[shadow] = {reinterpret_cast<FatBinary*>(modules), name};
}

ATTEST_HIP void __hipRegisterManagedVar(void* modules, void** pointer, void* initial, const char* name,
                                        std::size_t bytes, unsigned) {
  void* memory = host_allocate(bytes, name);
  if (memory == nullptr) return;
  std::memcpy(memory, initial, bytes);
  *pointer = memory;
  Programs& programs = Programs::get();
  const std::scoped_lock lock(programs.mutex);
  auto* binary = static_cast<FatBinary*>(modules);
  binary->managed.push_back({name, memory});
  programs.variables[pointer] = {binary, name};
}

ATTEST_HIP void __hipRegisterSurface(void**, void*, char*, char*, int, int) {}
ATTEST_HIP void __hipRegisterTexture(void**, void*, char*, char*, int, int, int) {}

ATTEST_HIP hipError_t __hipPushCallConfiguration(dim3 blocks, dim3 threads, std::size_t dynamic_lds_bytes,
                                                 hipStream_t stream) {
  configurations.push_back({blocks, threads, dynamic_lds_bytes, stream});
  return hipSuccess;
}

ATTEST_HIP hipError_t __hipPopCallConfiguration(dim3* blocks, dim3* threads, std::size_t* dynamic_lds_bytes,
                                                hipStream_t* stream) {
  if (configurations.empty()) return remember(hipErrorInvalidConfiguration);
  const CallConfiguration c = configurations.back();
  configurations.pop_back();
  *blocks = c.blocks;
  *threads = c.threads;
  *dynamic_lds_bytes = c.dynamic_lds_bytes;
  *stream = c.stream;
  return hipSuccess;
}

ATTEST_HIP hipError_t hipLaunchKernel(const void* stub, dim3 blocks, dim3 threads, void** parameters,
                                      std::size_t dynamic_lds_bytes, hipStream_t stream) {
  return api([&] { return launch_stub(stub, {blocks, threads, dynamic_lds_bytes}, parameters, stream); });
}

ATTEST_HIP hipError_t hipExtLaunchKernel(const void* stub, dim3 blocks, dim3 threads, void** parameters,
                                         std::size_t dynamic_lds_bytes, hipStream_t stream, hipEvent_t start,
                                         hipEvent_t stop, int) {
  if (start != nullptr) (void)hipEventRecord(start, stream);
  const hipError_t error = hipLaunchKernel(stub, blocks, threads, parameters, dynamic_lds_bytes, stream);
  if (stop != nullptr) (void)hipEventRecord(stop, stream);
  return error;
}

ATTEST_HIP hipError_t hipLaunchCooperativeKernel(const void* stub, dim3 blocks, dim3 threads,
                                                 void** parameters, unsigned int dynamic_lds_bytes,
                                                 hipStream_t stream) {
  return api(
      [&] { return launch_stub(stub, {blocks, threads, dynamic_lds_bytes, true}, parameters, stream); });
}

ATTEST_HIP hipError_t hipGetSymbolAddress(void** pointer, const void* symbol) {
  return api([&] {
    if (pointer == nullptr) return hipErrorInvalidValue;
    return with_symbol(symbol, 0, 0, [&](void* at) {
      *pointer = at;
      return hipSuccess;
    });
  });
}

ATTEST_HIP hipError_t hipGetSymbolSize(std::size_t* bytes, const void* symbol) {
  return api([&] {
    if (bytes == nullptr) return hipErrorInvalidValue;
    hipError_t error = hipSuccess;
    const auto v = variable_of(symbol, error);
    if (!v) return error;
    *bytes = v->bytes;
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes,
                                        std::size_t offset, hipMemcpyKind kind) {
  return api([&] {
    return with_symbol(symbol, bytes, offset, [&](void* at) { return hipMemcpy(at, from, bytes, kind); });
  });
}
ATTEST_HIP hipError_t hipMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                          hipMemcpyKind kind) {
  return api([&] {
    return with_symbol(symbol, bytes, offset, [&](void* at) { return hipMemcpy(to, at, bytes, kind); });
  });
}
ATTEST_HIP hipError_t hipMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes,
                                             std::size_t offset, hipMemcpyKind kind, hipStream_t stream) {
  if (!Runtime::get().is_stream(stream)) return remember(hipErrorInvalidHandle);
  return hipMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
ATTEST_HIP hipError_t hipMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes,
                                               std::size_t offset, hipMemcpyKind kind, hipStream_t stream) {
  if (!Runtime::get().is_stream(stream)) return remember(hipErrorInvalidHandle);
  return hipMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}
