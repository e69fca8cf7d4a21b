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
  switch (i.op) {
    case Op::s_branch:
      return {{target}, 1};
    case Op::s_cbranch_scc0:
    case Op::s_cbranch_scc1:
    case Op::s_cbranch_vccz:
    case Op::s_cbranch_vccnz:
    case Op::s_cbranch_execz:
    case Op::s_cbranch_execnz:
      return {{index + 1, target}, 2};
    default:
      return {{}, 0, true};
  }
}

}  // namespace attest::device::sim::detect
