// SPDX-License-Identifier: MIT
#include "device/simulator/isa/opcodes.h"

#include <array>

namespace attest::device::sim {
namespace {

constexpr std::array<OpInfo, op_count> make_table() {
  using namespace op_flag;
  return {{
      {"invalid", Slot::none, Slot::none, {Slot::none, Slot::none, Slot::none}, 0},
#define ATTEST_OP(name, dst, sdst, src0, src1, src2, flags) \
  {#name, Slot::dst, Slot::sdst, {Slot::src0, Slot::src1, Slot::src2}, flags},
#include "device/simulator/isa/opcodes.def"
#undef ATTEST_OP
  }};
}
constexpr std::array<OpInfo, op_count> table = make_table();

}  // namespace

const OpInfo& info(Op op) {
  return table[static_cast<std::size_t>(op)];
}

Op find_op(std::string_view mnemonic) {
  for (std::size_t i = 1; i < op_count; ++i)
    if (table[i].name == mnemonic) return static_cast<Op>(i);
  return Op::invalid;
}

}  // namespace attest::device::sim
