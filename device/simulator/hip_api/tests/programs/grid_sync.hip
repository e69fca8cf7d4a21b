// SPDX-License-Identifier: MIT
//
// A cooperative launch whose workgroups wait for each other, and workgroups that spin on a flag.
#include <vector>

#include "check.h"

/// What cooperative_groups' grid.sync() comes to (the header of Debian's HIP 5.2 does not compile with clang
/// 19).
extern "C" __device__ void __ockl_grid_sync();

__global__ void neighbours(int* a, int* b, int steps) {
  const unsigned block = blockIdx.x;
  for (int step = 0; step < steps; ++step) {
    if (threadIdx.x == 0) b[block] = a[block] + a[(block + 1) % gridDim.x];
    __ockl_grid_sync();
    if (threadIdx.x == 0) a[block] = b[block];
    __ockl_grid_sync();
  }
}

/// Block k writes after block k + 1 has: the order no scheduler would choose by itself.
__global__ void relay(volatile int* flags, int* order) {
  if (threadIdx.x != 0) return;
  const unsigned block = blockIdx.x;
  if (block + 1 < gridDim.x)
    while (flags[block + 1] == 0) __builtin_amdgcn_s_sleep(1);
  order[block] = atomicAdd(&order[gridDim.x], 1);
  __threadfence();
  flags[block] = 1;
}

int main() {
  constexpr int blocks = 9;
  int steps = 4;
  std::vector<int> values(blocks), next(blocks), got(blocks);
  for (int i = 0; i < blocks; ++i) values[i] = i * i;
  int *a = nullptr, *b = nullptr;
  HIP_CHECK(hipMalloc(&a, blocks * sizeof(int)));
  HIP_CHECK(hipMalloc(&b, blocks * sizeof(int)));
  HIP_CHECK(hipMemcpy(a, values.data(), blocks * sizeof(int), hipMemcpyHostToDevice));
  void* arguments[] = {&a, &b, &steps};
  HIP_CHECK(hipLaunchCooperativeKernel(reinterpret_cast<void*>(neighbours), dim3(blocks), dim3(128),
                                       arguments, 0, nullptr));
  HIP_CHECK(hipMemcpy(got.data(), a, blocks * sizeof(int), hipMemcpyDeviceToHost));
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < blocks; ++i) next[i] = values[i] + values[(i + 1) % blocks];
    values = next;
  }
  EXPECT(got == values);

  int *flags = nullptr, *order = nullptr;
  HIP_CHECK(hipMalloc(&flags, blocks * sizeof(int)));
  HIP_CHECK(hipMalloc(&order, (blocks + 1) * sizeof(int)));
  HIP_CHECK(hipMemset(flags, 0, blocks * sizeof(int)));
  HIP_CHECK(hipMemset(order, 0, (blocks + 1) * sizeof(int)));
  relay<<<blocks, 64>>>(flags, order);
  HIP_CHECK(hipMemcpy(got.data(), order, blocks * sizeof(int), hipMemcpyDeviceToHost));
  for (int i = 0; i < blocks; ++i) EXPECT(got[i] == blocks - 1 - i);
  HIP_CHECK(hipFree(flags));
  HIP_CHECK(hipFree(order));
  HIP_CHECK(hipFree(a));
  HIP_CHECK(hipFree(b));
  std::puts("PASSED");
}
