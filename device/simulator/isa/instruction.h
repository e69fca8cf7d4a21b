// SPDX-License-Identifier: MIT
//
// One decoded gfx942 machine instruction: what the words say, before anything is executed.
//
// The decoder (isa/decode.h) fills it from one or two dwords, the disassembler prints it in LLVM's
// syntax, the executor binds a handler to it. Fields that an encoding does not have keep their defaults.
//
// Operand codes form one space, the ISA's 9-bit source space with the accumulation registers behind it:
//
//   0..101     s0..s101            128..192   0..64
//   102..107   flat_scratch, xnack_mask, vcc  193..208   -1..-16
//   108..123   ttmp0..15           235..238   shared/private base/limit
//   124        m0                  240..248   +-0.5, +-1, +-2, +-4, 1/(2 pi)
//   126, 127   exec                251..253   vccz, execz, scc
//   255        literal             256..511   v0..v255       512..767   a0..a255
#pragma once

#include <cstdint>

#include "device/simulator/isa/opcodes.h"

namespace attest::device::sim {

enum class Encoding : std::uint8_t {
  sop1,
  sop2,
  sopc,
  sopk,
  sopp,
  smem,
  vop1,
  vop2,
  vopc,
  vop3,
  vop3p,
  mai,
  ds,
  mubuf,
  mtbuf,
  flat,
  global,
  scratch,
};

/// What the dword behind a VOP1, VOP2 or VOPC means (src0 code 249 or 250), if it is not a literal.
enum class Extension : std::uint8_t { none, sdwa, dpp };

namespace operand {
inline constexpr std::uint16_t none = 0xffff;
inline constexpr std::uint16_t vcc = 106, m0 = 124, exec = 126, zero = 128, scc = 253, literal = 255;
inline constexpr std::uint16_t vgpr0 = 256, agpr0 = 512;
}  // namespace operand

struct Instruction {
  Op op = Op::invalid;
  Encoding encoding = Encoding::sopp;
  Extension extension = Extension::none;
  std::uint8_t size_bytes = 4;  ///< 4 or 8

  // Vector and scalar arithmetic.
  std::uint16_t dst = operand::none;   ///< VDST, SDST; of VOPC: 106 (vcc) or the SGPR pair
  std::uint16_t sdst = operand::none;  ///< the carry or mask result of VOP3B, or vcc of the VOP2 carry forms
  std::uint16_t src[3] = {operand::none, operand::none, operand::none};  ///< a mask source of VOP2 is vcc
  std::uint32_t literal = 0;
  std::int32_t imm = 0;  ///< SIMM16 (sign-extended) of SOPK/SOPP; byte offset of SMEM, DS, MUBUF, FLAT.
                         ///< In a Program: of direct branches, the number of the target instruction
  std::uint8_t neg = 0, abs = 0;           ///< bit i: source i. VOP3P: neg is neg_lo, abs is neg_hi
  std::uint8_t op_sel = 0, op_sel_hi = 0;  ///< VOP3: op_sel bit 3 is the destination half
  std::uint8_t omod = 0;                   ///< 0 none, 1 *2, 2 *4, 3 /2
  bool clamp = false;
  std::uint8_t cbsz = 0, abid = 0, blgp = 0;  ///< MAI

  // DPP.
  std::uint16_t dpp_ctrl = 0;
  std::uint8_t row_mask = 0xf, bank_mask = 0xf;
  bool bound_ctrl = false;

  // SDWA: 0..3 byte, 4..5 word, 6 dword.
  std::uint8_t dst_sel = 6, dst_unused = 0, src_sel[2] = {6, 6};
  std::uint8_t sext = 0;  ///< bit i: source i is sign-extended

  // Memory.
  std::uint16_t addr = operand::none;  ///< VADDR; DS address
  std::uint16_t data[2] = {operand::none,
                           operand::none};  ///< store data (DS: data0, data1; MUBUF: VDATA of stores)
  std::uint16_t saddr = operand::none;      ///< SMEM SBASE, MUBUF SRSRC, FLAT SADDR (first SGPR); none = off
  std::uint16_t soffset = operand::none;    ///< MUBUF SOFFSET, SMEM SOFFSET
  std::uint8_t offset1 = 0;                 ///< DS two-address forms: imm holds offset0
  bool sc0 = false, sc1 = false, nt = false, lds = false, idxen = false, gds = false;
  bool offen = false;  ///< MUBUF, MTBUF: addr holds an offset. SMEM: the word has an immediate offset (imm)
  std::uint8_t format =
      0;  ///< MTBUF: data format in bits 3:0, number format in 6:4. s_atc_probe: its operand
};

}  // namespace attest::device::sim
