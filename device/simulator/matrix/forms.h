// SPDX-License-Identifier: MIT
//
// The matrix instructions of gfx942 and where their elements live in registers.
//
// An instruction multiplies `blocks` independent pairs of matrices, A [m, k] times B [k, n]. A lane holds
// per_lane() consecutive k of one row (of one column, for B), packed from the low bits up through consecutive
// registers. Which lane and which element of a lane hold a matrix element is given by formulas in AMD's
// "Instinct MI300 CDNA3 Instruction Set Architecture", section 7.1.4 (dense) and 7.4 (sparse); AMD's matrix
// instruction calculator (https://github.com/ROCm/amd_matrix_instruction_calculator) prints the same maps.
//
// Example, 16x16x16 bf16: lane l holds A[l % 16][4 * (l / 16) .. + 3] and B[4 * (l / 16) .. + 3][l % 16] in
// two registers; register r of C and D holds row 4 * (l / 16) + r, column l % 16. A row of D is sixteen
// neighbouring lanes.
//
// Sparse instructions (v_smfmac) store half of A: two of every four neighbouring k, with their places in an
// index register.
#pragma once

#include <cstdint>

#include "device/simulator/isa/opcodes.h"
#include "device/simulator/matrix/model.h"

namespace attest::device::sim::matrix {

struct Form {
  Op op;
  std::uint8_t m, n, k, blocks;
  Element a, b;
  bool sparse = false;

  /// k that are multiplied: of a sparse A the stored half.
  [[nodiscard]] constexpr int stored_k() const { return sparse ? k / 2 : k; }
  [[nodiscard]] constexpr int per_lane_a() const { return stored_k() * m * blocks / 64; }
  [[nodiscard]] constexpr int per_lane_b() const { return k * n * blocks / 64; }
  /// 32-bit registers of A, of B, and of C or D.
  [[nodiscard]] constexpr int registers_a() const { return per_lane_a() * bits_of(a) / 32; }
  [[nodiscard]] constexpr int registers_b() const { return per_lane_b() * bits_of(b) / 32; }
  [[nodiscard]] constexpr int registers_d() const {
    return m * n * blocks / 64 * (a == Element::f64 ? 2 : 1);
  }
};

/// nullptr if op is not a matrix multiplication.
const Form* form_of(Op op);
/// All of them, in opcode order.
struct FormList {
  const Form* first;
  const Form* last;
  [[nodiscard]] const Form* begin() const { return first; }
  [[nodiscard]] const Form* end() const { return last; }
};
FormList all_forms();

/// Element `item` of a lane; items are elements, not registers: item 5 of a lane of fp8 is byte 1 of its
/// second register.
struct Place {
  int lane, item;
};

/// A[block][i][k]; of a sparse A, k counts stored elements.
constexpr Place place_a(const Form& form, int block, int i, int k) {
  const int per_lane = form.per_lane_a();
  return {i + form.m * (block + form.blocks * (k / per_lane)), k % per_lane};
}

/// B[block][k][j].
constexpr Place place_b(const Form& form, int block, int k, int j) {
  const int per_lane = form.per_lane_b();
  return {j + form.n * (block + form.blocks * (k / per_lane)), k % per_lane};
}

/// C[block][i][j] and D[block][i][j]. Rows come in groups of four that share a lane, in f64 singly.
constexpr Place place_d(const Form& form, int block, int i, int j) {
  const int h = form.a == Element::f64 ? 1 : 4;
  const int lanes_per_group = form.m * form.n / h;
  const int blocks_per_item = lanes_per_group >= 64 ? 1 : 64 / lanes_per_group;
  const int rows_per_item = 64 / blocks_per_item / form.n;
  const int groups = form.m / (h * rows_per_item);
  return {j + form.n * (i / h % rows_per_item + rows_per_item * (block % blocks_per_item)),
          i % h + h * (i / (h * rows_per_item) + groups * (block / blocks_per_item))};
}

/// The lane whose A stands in for this lane's (section 7.1.5.1 there). abid < 2^cbsz <= blocks.
constexpr int broadcast_a(int lane, int cbsz, int abid) {
  const int width = 64 >> cbsz;
  return lane % width + width * abid;
}

/// The lane whose B stands in for this lane's (section 7.1.5.2).
constexpr int permute_b(int lane, int blgp) {
  switch (blgp) {
    case 1:
      return lane % 32;
    case 2:
      return lane % 32 + 32;
    case 3:
      return (lane + 16) % 64;
    case 4:
    case 5:
    case 6:
    case 7:
      return lane % 16 + 16 * (blgp - 4);
    default:
      return lane;
  }
}

/// Dense k of stored element `item` of a lane of a sparse A, less the lane's first k. indices: the lane's
/// index register; the set it is taken from is chosen by cbsz and abid.
constexpr int sparse_k(const Form& form, std::uint32_t indices, int cbsz, int abid, int item) {
  const int set_bits = 2 * form.per_lane_a(), sets = 32 / set_bits;
  const int set = (cbsz & 3) == 0 ? abid % sets : 0;
  return item / 2 * 4 + static_cast<int>(indices >> (set * set_bits + 2 * item) & 3);
}

}  // namespace attest::device::sim::matrix
