// SPDX-License-Identifier: MIT
//
// Which shapes have kernels. Included by kernel sources only (see kernels.h).
#pragma once

#include "device/simulator/matrix/kernel_plain.h"

namespace attest::device::sim::matrix {
namespace {

/// Pick::rule_kernel<type_a, type_b, M, K, Blocks>() for the shapes under the published rule; the others are
/// the same at every level that has fused multiply-add.
template <class Pick, bool has_fma>
Kernel find_kernel(const KernelShape& s) {
#define ATTEST_SHAPE(A, B, M, K, BLOCKS)                                                    \
  if (s.a == Element::A && s.b == Element::B && s.m == M && s.k == K && s.blocks == BLOCKS) \
    return Pick::template kernel<Element::A, Element::B, M, K, BLOCKS>();
#define ATTEST_SHAPE_8BIT(A, B) ATTEST_SHAPE(A, B, 16, 32, 1) ATTEST_SHAPE(A, B, 32, 16, 1)
#define ATTEST_SHAPE_16BIT(A)   \
  ATTEST_SHAPE(A, A, 16, 16, 1) \
  ATTEST_SHAPE(A, A, 32, 8, 1) ATTEST_SHAPE(A, A, 32, 4, 2) ATTEST_SHAPE(A, A, 16, 4, 4)
  ATTEST_SHAPE_16BIT(bf16)
  ATTEST_SHAPE_16BIT(f16)
  ATTEST_SHAPE_8BIT(fp8, fp8)
  ATTEST_SHAPE_8BIT(fp8, bf8)
  ATTEST_SHAPE_8BIT(bf8, fp8)
  ATTEST_SHAPE_8BIT(bf8, bf8)
  ATTEST_SHAPE(xf32, xf32, 16, 8, 1)
  ATTEST_SHAPE(xf32, xf32, 32, 4, 1)
#undef ATTEST_SHAPE_16BIT
#undef ATTEST_SHAPE_8BIT
#undef ATTEST_SHAPE
  if (s.a == Element::i8) {
    if (s.m == 16 && s.k == 32) return i8_kernel<16, 32, 1>;
    if (s.m == 32 && s.k == 16) return i8_kernel<32, 16, 1>;
    if (s.m == 16 && s.k == 4) return i8_kernel<16, 4, 4>;
    if (s.m == 32 && s.k == 4) return i8_kernel<32, 4, 2>;
  }
  if constexpr (has_fma) {
    if (s.a == Element::f32) {
      if (s.m == 16 && s.k == 4) return f32_kernel<16, 4, 1>;
      if (s.m == 32 && s.k == 2) return f32_kernel<32, 2, 1>;
      if (s.m == 16 && s.k == 1) return f32_kernel<16, 1, 4>;
      if (s.m == 32 && s.k == 1) return f32_kernel<32, 1, 2>;
    }
  }
  return nullptr;
}

}  // namespace
}  // namespace attest::device::sim::matrix
