// SPDX-License-Identifier: MIT
//
// A sum by shuffles inside a wave, LDS inside a workgroup, one atomic per workgroup.
#include <vector>

#include "check.h"

__global__ void sum(const int* values, int count, unsigned long long* total) {
  __shared__ int of_wave[16];
  int mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    mine += values[i];
  for (int offset = warpSize / 2; offset > 0; offset /= 2) mine += __shfl_down(mine, offset);
  if (threadIdx.x % warpSize == 0) of_wave[threadIdx.x / warpSize] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned wave = 1; wave < blockDim.x / warpSize; ++wave) mine += of_wave[wave];
  atomicAdd(total, static_cast<unsigned long long>(mine));
}

int main() {
  constexpr int count = 100003;
  std::vector<int> values(count);
  Numbers numbers;
  unsigned long long expected = 0;
  for (int& v : values) expected += v = static_cast<int>(numbers.next() % 1000);

  int* device_values = nullptr;
  unsigned long long* device_total = nullptr;
  HIP_CHECK(hipMalloc(&device_values, count * sizeof(int)));
  HIP_CHECK(hipMalloc(&device_total, sizeof *device_total));
  HIP_CHECK(hipMemcpy(device_values, values.data(), count * sizeof(int), hipMemcpyHostToDevice));
  HIP_CHECK(hipMemset(device_total, 0, sizeof *device_total));
  sum<<<40, 256>>>(device_values, count, device_total);
  HIP_CHECK(hipGetLastError());
  unsigned long long total = 0;
  HIP_CHECK(hipMemcpy(&total, device_total, sizeof total, hipMemcpyDeviceToHost));
  EXPECT(total == expected);
  HIP_CHECK(hipFree(device_values));
  HIP_CHECK(hipFree(device_total));
  std::puts("PASSED");
}
