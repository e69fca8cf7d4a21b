// SPDX-License-Identifier: MIT
#include "device/simulator/isa/encodings.h"

#include <array>
#include <cstddef>

namespace attest::device::sim {
namespace {

using namespace form;

constexpr EncodingInfo rows[] = {
#define ATTEST_ENCODING(encoding, number, op, forms) {Encoding::encoding, number, Op::op, forms},
#include "device/simulator/isa/encodings.def"
#undef ATTEST_ENCODING
};
constexpr std::size_t row_count = sizeof rows / sizeof rows[0];

constexpr std::size_t encodings = static_cast<std::size_t>(Encoding::scratch) + 1;
constexpr std::size_t numbers = 1024;

/// Row + 1 at [encoding][number].
using ByNumber = std::array<std::array<std::uint16_t, numbers>, encodings>;
constexpr ByNumber make_by_number() {
  ByNumber table{};
  for (std::size_t i = 0; i < row_count; ++i)
    table[static_cast<std::size_t>(rows[i].encoding)][rows[i].number] = static_cast<std::uint16_t>(i + 1);
  return table;
}
constexpr ByNumber by_number = make_by_number();

/// Row + 1 at [0: short, 1: VOP3][op]. No operation has more than one encoding of each kind.
using ByOp = std::array<std::array<std::uint16_t, op_count>, 2>;
constexpr ByOp make_by_op() {
  ByOp table{};
  for (std::size_t i = 0; i < row_count; ++i)
    table[rows[i].encoding == Encoding::vop3][static_cast<std::size_t>(rows[i].op)] =
        static_cast<std::uint16_t>(i + 1);
  return table;
}
constexpr ByOp by_op = make_by_op();

}  // namespace

const EncodingInfo* find_encoding(Encoding encoding, unsigned number) {
  if (number >= numbers) return nullptr;
  const auto row = by_number[static_cast<std::size_t>(encoding)][number];
  return row == 0 ? nullptr : &rows[row - 1];
}

const EncodingInfo* find_encoding(Encoding encoding, Op op) {
  const auto row = by_op[encoding == Encoding::vop3][static_cast<std::size_t>(op)];
  return row == 0 || rows[row - 1].encoding != encoding ? nullptr : &rows[row - 1];
}

}  // namespace attest::device::sim
