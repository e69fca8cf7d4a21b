// SPDX-License-Identifier: MIT
//
// The encoding table: (encoding, opcode number) to operation, and back.
#pragma once

#include <cstdint>

#include "device/simulator/isa/instruction.h"

namespace attest::device::sim {

/// What an encoding of an operation allows beyond its operands. Bits not allowed must be zero in the machine
/// word.
namespace form {
inline constexpr std::uint32_t suffix = 1u << 0,  ///< spelled with _e32 or _e64: there is the other one too
    mod0 = 1u << 1, mod1 = 1u << 2, mod2 = 1u << 3,  ///< VOP3 and DPP: neg and abs of source i
    clamp = 1u << 4, omod = 1u << 5,
                               op_sel = 1u << 6,  ///< VOP3: a bit per modified source and one for the result
    dpp = 1u << 7, sdwa = 1u << 8,                ///< VOP1, VOP2, VOPC: exists with that extension
    sdwa_omod = 1u << 9, sdwa_float0 = 1u << 10,
                               sdwa_float1 = 1u << 11,  ///< source i has neg and abs; otherwise it has sext
    sdwa_dword = 1u << 12,                              ///< dst_sel is always DWORD
    pair = 1u << 13,                                    ///< DS: two 8-bit offsets
    lds = 1u << 14;                                     ///< MUBUF: exists with the lds bit
constexpr std::uint32_t mods(unsigned sources) {
  return (mod0 | mod1 | mod2) & ((2u << sources) - 1);
}
}  // namespace form

struct EncodingInfo {
  Encoding encoding;
  std::uint16_t number;
  Op op;
  std::uint32_t forms;

  [[nodiscard]] constexpr bool has(std::uint32_t bits) const { return (forms & bits) != 0; }
};

/// nullptr: the number is reserved.
const EncodingInfo* find_encoding(Encoding encoding, unsigned number);

/// nullptr: the operation does not exist in that encoding.
const EncodingInfo* find_encoding(Encoding encoding, Op op);

}  // namespace attest::device::sim
