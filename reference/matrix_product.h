// SPDX-License-Identifier: MIT
//
// C += A * B in fp64 or fp32, with the same bits on every machine.
//
// The problem. A verdict must not depend on where it was computed: same case, same used budget, same digits
// in the event stream that shards are merged from. Eigen's product does not give that. Its blocking follows
// the cache sizes of the machine, its kernels follow the instruction set it was compiled for, and some of
// them keep two partial sums; each choice is another order of additions and so other last bits. Compiling it
// for AVX-512 besides would also break the one-definition rule (the same inline functions, compiled twice)
// and the baseline x86-64.
//
// The rule here. Every element of C is the sum a human would write:
//
//   for (p = 0; p < depth; ++p) c[i][j] = c[i][j] + a[i][p] * b[p][j];     two roundings a step, p ascending
//
// The rounding of c[i][j] thus depends on nothing but its own row of A and column of B. Vectors run along j,
// tiles along i and j, and a blocked p stores and reloads an exact double in between: none of them touches
// the order of one element's additions, so vector width, tile shape, blocking and the size of the whole
// problem cannot show. The price is no fused multiply-add, whose single rounding SSE2 cannot reproduce
// (contraction is off for the whole project). It is nothing on CPUs with separate adders (Zen), a factor 2 at
// most elsewhere. matrix_product_test.cpp holds every compiled version to the bits of the loop above.
//
// The error of such a sum is below depth * 2^-53 * sum |a||b| (Higham, Accuracy and Stability of Numerical
// Algorithms, section 3.1): 1.5e-11 relative at depth 131072, orders below the bounds the oracle derives
// for fp32 accumulation.
#pragma once

#include <Eigen/Core>

#include "reference/simd.h"

namespace attest::reference {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// A matrix or a block of one; the elements of a row are contiguous.
using ConstBlock = Eigen::Ref<const Matrix, 0, Eigen::OuterStride<>>;
using MutableBlock = Eigen::Ref<Matrix, 0, Eigen::OuterStride<>>;

/// fp32, for bounds: what has to be safe and repeatable rather than close.
using MatrixF = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstBlockF = Eigen::Ref<const MatrixF, 0, Eigen::OuterStride<>>;
using MutableBlockF = Eigen::Ref<MatrixF, 0, Eigen::OuterStride<>>;

/// c [rows, columns] += a [rows, depth] * b [depth, columns]. c overlaps neither a nor b.
/// Throws std::invalid_argument when the shapes do not fit.
void add_product(const ConstBlock& a, const ConstBlock& b, MutableBlock c, Simd simd = widest_simd());
void add_product(const ConstBlockF& a, const ConstBlockF& b, MutableBlockF c, Simd simd = widest_simd());

}  // namespace attest::reference
