// SPDX-License-Identifier: MIT
//
// A transpose through padded LDS tiles, between pitched matrices.
#include <vector>

#include "check.h"

constexpr int tile = 32;

__global__ void transpose(const float* in, std::size_t in_pitch, float* out, std::size_t out_pitch, int width,
                          int height) {
  __shared__ float shared[tile][tile + 1];
  const int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile;
  for (unsigned k = threadIdx.y; k < tile; k += blockDim.y)
    if (x < width && y + static_cast<int>(k) < height) shared[k][threadIdx.x] = in[(y + k) * in_pitch + x];
  __syncthreads();
  const int column = blockIdx.y * tile + threadIdx.x, row = blockIdx.x * tile;
  for (unsigned k = threadIdx.y; k < tile; k += blockDim.y)
    if (column < height && row + static_cast<int>(k) < width)
      out[(row + k) * out_pitch + column] = shared[threadIdx.x][k];
}

int main() {
  constexpr int width = 70, height = 45;
  std::vector<float> in(width * height), out(width * height);
  for (int i = 0; i < width * height; ++i) in[i] = static_cast<float>(i);
  float *device_in = nullptr, *device_out = nullptr;
  std::size_t in_pitch = 0, out_pitch = 0;
  HIP_CHECK(hipMallocPitch(reinterpret_cast<void**>(&device_in), &in_pitch, width * sizeof(float), height));
  HIP_CHECK(hipMallocPitch(reinterpret_cast<void**>(&device_out), &out_pitch, height * sizeof(float), width));
  HIP_CHECK(hipMemcpy2D(device_in, in_pitch, in.data(), width * sizeof(float), width * sizeof(float), height,
                        hipMemcpyHostToDevice));
  const dim3 grid((width + tile - 1) / tile, (height + tile - 1) / tile), block(tile, 8);
  transpose<<<grid, block>>>(device_in, in_pitch / sizeof(float), device_out, out_pitch / sizeof(float),
                             width, height);
  HIP_CHECK(hipMemcpy2D(out.data(), height * sizeof(float), device_out, out_pitch, height * sizeof(float),
                        width, hipMemcpyDeviceToHost));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) EXPECT(out[x * height + y] == in[y * width + x]);
  HIP_CHECK(hipFree(device_in));
  HIP_CHECK(hipFree(device_out));
  std::puts("PASSED");
}
