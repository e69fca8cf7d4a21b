// SPDX-License-Identifier: MIT
//
// Vector kernels for the 16x16 and 32x32 shapes, one translation unit per instruction set. Same bits as
// model.h.
//
// A translation unit compiled for AVX-512 must not define anything another one may use: the linker keeps one
// copy of an inline function, and a machine without AVX-512 would run it. So kernel sources include only this
// header and those of kernel_*.h, whose contents have internal linkage.
#pragma once

#include <cstdint>

#include "device/simulator/matrix/model.h"

namespace attest::device::sim::matrix {

/// Register rows of 64 lanes: a and b are read completely before anything is written. c may be d, or be apart
/// from it.
struct Operands {
  const std::uint32_t* a;
  const std::uint32_t* b;
  const std::uint32_t* c;
  std::uint32_t* d;
  SumRule rule = default_sum_rule;
  bool flush = false;  ///< subnormal f32 and xf32 elements of A and B count as zero
};
using Kernel = void (*)(const Operands&);

struct KernelShape {
  int m, k, blocks;  ///< n == m
  Element a, b;
};

/// nullptr where the level has nothing better than the model.
Kernel baseline_kernel(const KernelShape& shape);
Kernel avx2_kernel(const KernelShape& shape);
Kernel avx512_kernel(const KernelShape& shape);

}  // namespace attest::device::sim::matrix
