// SPDX-License-Identifier: MIT
//
// A histogram by atomics in LDS, then in memory; the bounds of the bins are a device constant.
#include <vector>

#include "check.h"

__constant__ int bin_width;
__device__ int out_of_range;

__global__ void histogram(const int* values, int count, int bins, int* counts) {
  __shared__ int local[64];
  for (unsigned b = threadIdx.x; b < 64; b += blockDim.x) local[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const int bin = values[i] / bin_width;
    if (bin < bins)
      atomicAdd(&local[bin], 1);
    else
      atomicAdd(&out_of_range, 1);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x) atomicAdd(&counts[b], local[b]);
}

int main() {
  constexpr int count = 20000, bins = 50, width = 7;
  std::vector<int> values(count), expected(bins), counts(bins);
  int expected_outside = 0;
  Numbers numbers;
  for (int& v : values) {
    v = static_cast<int>(numbers.next() % 400);
    v / width < bins ? ++expected[v / width] : ++expected_outside;
  }
  int *device_values = nullptr, *device_counts = nullptr;
  HIP_CHECK(hipMalloc(&device_values, count * sizeof(int)));
  HIP_CHECK(hipMalloc(&device_counts, bins * sizeof(int)));
  HIP_CHECK(hipMemcpy(device_values, values.data(), count * sizeof(int), hipMemcpyHostToDevice));
  HIP_CHECK(hipMemset(device_counts, 0, bins * sizeof(int)));
  HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(bin_width), &width, sizeof width));
  histogram<<<8, 128>>>(device_values, count, bins, device_counts);
  HIP_CHECK(hipMemcpy(counts.data(), device_counts, bins * sizeof(int), hipMemcpyDeviceToHost));
  int outside = -1;
  HIP_CHECK(hipMemcpyFromSymbol(&outside, HIP_SYMBOL(out_of_range), sizeof outside));
  EXPECT(counts == expected);
  EXPECT(outside == expected_outside);
  std::size_t bytes = 0;
  void* address = nullptr;
  HIP_CHECK(hipGetSymbolSize(&bytes, HIP_SYMBOL(bin_width)));
  HIP_CHECK(hipGetSymbolAddress(&address, HIP_SYMBOL(bin_width)));
  EXPECT(bytes == sizeof width && address != nullptr);
  HIP_CHECK(hipFree(device_values));
  HIP_CHECK(hipFree(device_counts));
  std::puts("PASSED");
}
