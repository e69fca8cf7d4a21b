// SPDX-License-Identifier: MIT
//
// Small kernels for the tests of the host side.
#include <hip/hip_runtime.h>

#include <cstdint>

/// a[i] += b[i], one work-item each.
extern "C" __global__ void add(std::uint32_t* a, const std::uint32_t* b, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) a[i] += b[i];
}

/// Writes one word at `offset` bytes from `buffer`, wherever that is.
extern "C" __global__ void poke(char* buffer, std::int64_t offset, std::uint32_t value) {
  *reinterpret_cast<std::uint32_t*>(buffer + offset) = value;
}

/// Never ends.
extern "C" __global__ void spin(volatile std::uint32_t* flag) {
  while (*flag == 0) {
  }
}
