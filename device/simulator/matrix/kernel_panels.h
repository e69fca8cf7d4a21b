// SPDX-License-Identifier: MIT
//
// A and B as the kernels want them, and where rows of C and D lie. Included by kernel sources only (see
// kernels.h).
//
// Nothing has to be transposed: sixteen neighbouring lanes of a register of A or B hold sixteen rows or
// columns of the same k, and a row of C is sixteen neighbouring lanes of one register. So a vector is sixteen
// columns of B or D, and an element of A is a scalar that is broadcast.
#pragma once

#include <cstdint>

#include "device/simulator/matrix/kernels.h"

namespace attest::device::sim::matrix {
namespace {

constexpr bool is_8bit(Element type) {
  return type == Element::fp8 || type == Element::bf8 || type == Element::i8;
}

/// Elements of one lane.
template <int M, int K, int Blocks>
constexpr int per_lane = K * M * Blocks / 64;

/// Offset, in dwords from the first register of C or D, of row i of a block.
template <int M>
constexpr int row_offset(int block, int i) {
  if constexpr (M == 32) return (16 * block + 4 * (i / 8) + i % 4) * 64 + 32 * (i / 4 % 2);
  return (4 * block + i % 4) * 64 + 16 * (i / 4);
}

/// Calls visit(word offset in dwords, block, first k, first row) for every run of M lanes of every register.
/// Words is the number of elements in a dword (0: a dword is half an element).
template <int M, int K, int Blocks, int Elements, class Visit>
inline void for_each_run(Visit visit) {
  for (int r = 0; r < per_lane<M, K, Blocks> / Elements; ++r)
    for (int q = 0; q < 64 / M; ++q)
      visit(r * 64 + q * M, q % Blocks, q / Blocks * per_lane<M, K, Blocks> + r * Elements);
}

}  // namespace
}  // namespace attest::device::sim::matrix
