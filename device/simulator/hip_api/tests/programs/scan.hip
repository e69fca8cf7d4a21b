// SPDX-License-Identifier: MIT
//
// An inclusive scan in dynamic LDS, then the workgroups' sums added on.
#include <vector>

#include "check.h"

__global__ void scan_blocks(int* values, int count, int* sums) {
  extern __shared__ int shared[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  shared[threadIdx.x] = i < count ? values[i] : 0;
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    const int before = threadIdx.x >= step ? shared[threadIdx.x - step] : 0;
    __syncthreads();
    shared[threadIdx.x] += before;
    __syncthreads();
  }
  if (i < count) values[i] = shared[threadIdx.x];
  if (threadIdx.x == blockDim.x - 1) sums[blockIdx.x] = shared[threadIdx.x];
}

__global__ void add_sums(int* values, int count, const int* sums) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int before = 0;
  for (unsigned block = 0; block < blockIdx.x; ++block) before += sums[block];
  values[i] += before;
}

int main() {
  constexpr int count = 3001, threads = 256, blocks = (count + threads - 1) / threads;
  std::vector<int> values(count), expected(count);
  Numbers numbers;
  int running = 0;
  for (int i = 0; i < count; ++i) expected[i] = running += values[i] = static_cast<int>(numbers.next() % 100);

  int *device_values = nullptr, *device_sums = nullptr;
  HIP_CHECK(hipMalloc(&device_values, count * sizeof(int)));
  HIP_CHECK(hipMalloc(&device_sums, blocks * sizeof(int)));
  HIP_CHECK(hipMemcpy(device_values, values.data(), count * sizeof(int), hipMemcpyHostToDevice));
  scan_blocks<<<blocks, threads, threads * sizeof(int)>>>(device_values, count, device_sums);
  add_sums<<<blocks, threads>>>(device_values, count, device_sums);
  HIP_CHECK(hipDeviceSynchronize());
  HIP_CHECK(hipMemcpy(values.data(), device_values, count * sizeof(int), hipMemcpyDeviceToHost));
  EXPECT(values == expected);
  HIP_CHECK(hipFree(device_values));
  HIP_CHECK(hipFree(device_sums));
  std::puts("PASSED");
}
