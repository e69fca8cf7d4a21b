// SPDX-License-Identifier: MIT
//
// A decoded instruction as text: exactly what llvm-objdump 19 prints for gfx942, without its leading blanks.
//
//   disassemble(decode({{0x02000501}}).instruction)     "v_add_f32_e32 v0, v1, v2"
#pragma once

#include <string>

#include "device/simulator/isa/instruction.h"

namespace attest::device::sim {

/// Op::invalid gives "<invalid>". Expects an instruction as decode() made it.
std::string disassemble(const Instruction& instruction);

/// "v[2:3]", "vcc", "0.5", "0x1234": operand @p code, as @p instruction uses it in a slot of that shape.
std::string operand_text(const Instruction& instruction, std::uint16_t code, Slot slot);

}  // namespace attest::device::sim
