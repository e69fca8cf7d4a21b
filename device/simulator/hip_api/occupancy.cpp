// SPDX-License-Identifier: MIT
//
// Questions about kernels: attributes, and how many workgroups a compute unit holds.
#include <hip/hip_runtime_api.h>

#include <algorithm>

#include "device/simulator/hip_api/export.h"
#include "device/simulator/hip_api/launch.h"
#include "device/simulator/hip_api/runtime.h"

using namespace attest::device::sim;
using namespace attest::device::sim::hip;

namespace {

constexpr int lds_bytes = 64 * 1024, simds = 4, vector_registers = 512, waves_per_simd = 8,
              most_workgroups = 32;

/// Resident workgroups of a compute unit: its registers, its LDS and its wave slots, whichever runs out
/// first.
int workgroups(const Kernel& kernel, int threads, std::size_t dynamic_lds_bytes) {
  if (threads <= 0 || static_cast<std::uint32_t>(threads) > kernel.max_workgroup) return 0;
  const int waves = (threads + lanes - 1) / lanes;
  const auto registers = static_cast<int>(std::max<std::uint32_t>(kernel.descriptor.vgpr_count(), 1));
  const int by_registers = simds * std::min(waves_per_simd, vector_registers / registers) / waves;
  const std::size_t lds = kernel.descriptor.group_segment_bytes + dynamic_lds_bytes;
  const int by_lds = lds == 0 ? most_workgroups : static_cast<int>(lds_bytes / lds);
  return std::min({by_registers, by_lds, most_workgroups});
}

hipError_t attributes_of(hipFuncAttributes& a, const Kernel& kernel) {
  a = {};
  a.sharedSizeBytes = kernel.descriptor.group_segment_bytes;
  a.localSizeBytes = kernel.descriptor.private_segment_bytes;
  a.maxThreadsPerBlock = static_cast<int>(kernel.max_workgroup);
  a.numRegs = static_cast<int>(kernel.descriptor.vgpr_count());
  a.maxDynamicSharedSizeBytes = lds_bytes - static_cast<int>(kernel.descriptor.group_segment_bytes);
  a.binaryVersion = a.ptxVersion = 30;
  return hipSuccess;
}

hipError_t best_block(int* grid, int* block, const Kernel& kernel, std::size_t dynamic_lds_bytes, int limit) {
  if (grid == nullptr || block == nullptr) return hipErrorInvalidValue;
  int best = 0;
  const int most = std::min<int>(static_cast<int>(kernel.max_workgroup), limit > 0 ? limit : 1024);
  for (int threads = most; threads >= lanes; threads -= lanes) {
    const int resident = workgroups(kernel, threads, dynamic_lds_bytes) * threads;
    if (resident <= best) continue;
    best = resident;
    *block = threads;
    *grid = workgroups(kernel, threads, dynamic_lds_bytes) * 304;
  }
  return best > 0 ? hipSuccess : hipErrorInvalidValue;
}

/// Calls `use` with the kernel of a host stub or of a function handle.
template <typename Use>
hipError_t with_stub(const void* stub, Use&& use) {
  const LoadedKernel* kernel = kernel_of_stub(stub);
  return kernel != nullptr ? use(kernel->kernel) : hipErrorInvalidDeviceFunction;
}
template <typename Use>
hipError_t with_function(hipFunction_t handle, Use&& use) {
  const Function* function = Runtime::get().find(handle);
  return function != nullptr ? use(function->kernel->kernel) : hipErrorInvalidHandle;
}

}  // namespace

ATTEST_HIP hipError_t hipFuncGetAttributes(hipFuncAttributes* attributes, const void* stub) {
  return api([&] {
    if (attributes == nullptr) return hipErrorInvalidValue;
    return with_stub(stub, [&](const Kernel& k) { return attributes_of(*attributes, k); });
  });
}
ATTEST_HIP hipError_t hipFuncGetAttribute(int* value, hipFunction_attribute attribute,
                                          hipFunction_t function) {
  return api([&] {
    if (value == nullptr) return hipErrorInvalidValue;
    return with_function(function, [&](const Kernel& k) {
      hipFuncAttributes a;
      (void)attributes_of(a, k);
      switch (attribute) {
        case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
          *value = a.maxThreadsPerBlock;
          return hipSuccess;
        case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
          *value = static_cast<int>(a.sharedSizeBytes);
          return hipSuccess;
        case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
          *value = static_cast<int>(a.localSizeBytes);
          return hipSuccess;
        case HIP_FUNC_ATTRIBUTE_NUM_REGS:
          *value = a.numRegs;
          return hipSuccess;
        case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
          *value = a.maxDynamicSharedSizeBytes;
          return hipSuccess;
        default:
          return hipErrorInvalidValue;
      }
    });
  });
}
// Preferences; LDS has one configuration, of 64 KiB.
ATTEST_HIP hipError_t hipFuncSetAttribute(const void* stub, hipFuncAttribute attribute, int value) {
  return api([&] {
    return with_stub(stub, [&](const Kernel&) {
      const bool fits =
          attribute != hipFuncAttributeMaxDynamicSharedMemorySize || (value >= 0 && value <= lds_bytes);
      return fits ? hipSuccess : hipErrorInvalidValue;
    });
  });
}
ATTEST_HIP hipError_t hipFuncSetCacheConfig(const void*, hipFuncCache_t) {
  return hipSuccess;
}
ATTEST_HIP hipError_t hipFuncSetSharedMemConfig(const void*, hipSharedMemConfig) {
  return hipSuccess;
}

ATTEST_HIP hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub, int threads,
                                                                   std::size_t dynamic_lds_bytes) {
  return api([&] {
    if (blocks == nullptr) return hipErrorInvalidValue;
    return with_stub(stub, [&](const Kernel& k) {
      *blocks = workgroups(k, threads, dynamic_lds_bytes);
      return hipSuccess;
    });
  });
}
ATTEST_HIP hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* stub,
                                                                            int threads,
                                                                            std::size_t dynamic_lds_bytes,
                                                                            unsigned int) {
  return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, stub, threads, dynamic_lds_bytes);
}
ATTEST_HIP hipError_t hipOccupancyMaxPotentialBlockSize(int* grid, int* block, const void* stub,
                                                        std::size_t dynamic_lds_bytes, int limit) {
  return api([&] {
    return with_stub(stub,
                     [&](const Kernel& k) { return best_block(grid, block, k, dynamic_lds_bytes, limit); });
  });
}
ATTEST_HIP hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, hipFunction_t function,
                                                                         int threads,
                                                                         std::size_t dynamic_lds_bytes) {
  return api([&] {
    if (blocks == nullptr) return hipErrorInvalidValue;
    return with_function(function, [&](const Kernel& k) {
      *blocks = workgroups(k, threads, dynamic_lds_bytes);
      return hipSuccess;
    });
  });
}
ATTEST_HIP hipError_t hipModuleOccupancyMaxPotentialBlockSize(int* grid, int* block, hipFunction_t function,
                                                              std::size_t dynamic_lds_bytes, int limit) {
  return api([&] {
    return with_function(
        function, [&](const Kernel& k) { return best_block(grid, block, k, dynamic_lds_bytes, limit); });
  });
}
