// SPDX-License-Identifier: MIT
//
// Where control may go from an instruction of a program.
#pragma once

#include <array>
#include <cstdint>

#include "device/simulator/core/program.h"

namespace attest::device::sim::detect {

struct Successors {
  std::array<std::uint32_t, 2> index{};  ///< from Program::size() on: a Fault
  unsigned count = 0;
  bool anywhere = false;  ///< a jump whose target is computed
};

inline Successors successors(const Program& program, std::uint32_t index) {
  const Instruction& i = program.code()[index].instruction;
  const auto target = static_cast<std::uint32_t>(i.imm);
  if (info(i.op).has(op_flag::ends)) return {};
  if (!info(i.op).has(op_flag::branch)) return {{index + 1}, 1};
  if (i.op == Op::s_branch) return {{target}, 1};
  if (is_conditional_branch(i)) return {{index + 1, target}, 2};
  return {{}, 0, true};
}

}  // namespace attest::device::sim::detect
