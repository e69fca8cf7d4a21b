// SPDX-License-Identifier: MIT
//
// Softmax of rows, a wave per row, with the device's exponential.
#include <cmath>
#include <vector>

#include "check.h"

__global__ void softmax(const float* in, float* out, int columns) {
  const float* row = in + blockIdx.x * columns;
  float largest = -INFINITY;
  for (int c = threadIdx.x; c < columns; c += warpSize) largest = fmaxf(largest, row[c]);
  for (int mask = warpSize / 2; mask > 0; mask /= 2) largest = fmaxf(largest, __shfl_xor(largest, mask));
  float sum = 0;
  for (int c = threadIdx.x; c < columns; c += warpSize) sum += expf(row[c] - largest);
  for (int mask = warpSize / 2; mask > 0; mask /= 2) sum += __shfl_xor(sum, mask);
  for (int c = threadIdx.x; c < columns; c += warpSize)
    out[blockIdx.x * columns + c] = expf(row[c] - largest) / sum;
}

int main() {
  constexpr int rows = 17, columns = 300;
  std::vector<float> in(rows * columns), out(rows * columns);
  Numbers numbers;
  for (float& x : in) x = numbers.unit() * 40 - 20;
  float *device_in = nullptr, *device_out = nullptr;
  HIP_CHECK(hipMalloc(&device_in, in.size() * sizeof(float)));
  HIP_CHECK(hipMalloc(&device_out, in.size() * sizeof(float)));
  HIP_CHECK(hipMemcpy(device_in, in.data(), in.size() * sizeof(float), hipMemcpyHostToDevice));
  softmax<<<rows, 64>>>(device_in, device_out, columns);
  HIP_CHECK(hipMemcpy(out.data(), device_out, in.size() * sizeof(float), hipMemcpyDeviceToHost));
  for (int r = 0; r < rows; ++r) {
    double largest = -INFINITY, sum = 0;
    for (int c = 0; c < columns; ++c) largest = std::fmax(largest, in[r * columns + c]);
    for (int c = 0; c < columns; ++c) sum += std::exp(in[r * columns + c] - largest);
    for (int c = 0; c < columns; ++c) {
      const double expected = std::exp(in[r * columns + c] - largest) / sum;
      // An f32 exponential of 1 ulp, of an argument rounded at 40; a sum of 300 terms; a quotient.
      EXPECT(std::fabs(out[r * columns + c] - expected) <= 5e-6 * expected + 1e-38);
    }
  }
  HIP_CHECK(hipFree(device_in));
  HIP_CHECK(hipFree(device_out));
  std::puts("PASSED");
}
