// SPDX-License-Identifier: MIT
//
// Machine words to a decoded instruction.
//
//   Decoded d = decode(words);               // words: the code from this instruction on
//   if (!d) ... d.why ...                    // "reserved opcode 0x1e of VOP2"
//   words = words.subspan(d.instruction.size_bytes / 4);
//
// Accepts what LLVM 19's disassembler accepts for gfx942 and refuses the rest: reserved numbers, registers
// that do not exist, bits that must be zero. tests/decode_test.cpp lists the few differences with their
// reasons.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "device/simulator/isa/instruction.h"

namespace attest::device::sim {

struct Decoded {
  Instruction instruction;  ///< when refused: op invalid, size_bytes 4
  std::string why;          ///< why not, in words; empty when accepted

  explicit operator bool() const { return instruction.op != Op::invalid; }
};

/// Decodes the instruction that starts at words[0]. Reads one to three dwords, never past the end.
Decoded decode(std::span<const std::uint32_t> words);

}  // namespace attest::device::sim
