// SPDX-License-Identifier: MIT
//
// The operations of gfx942 and what their operands look like, generated from one table, opcodes.def.
//
//   info(Op::v_fma_f64).name        "v_fma_f64"
//   dwords(info(Op::v_fma_f64).dst) 2
//
// One Op per meaning: v_add_f32 is the same Op as VOP2, VOP3, SDWA and DPP; Instruction::encoding tells them
// apart. Names and shapes are those of LLVM's AMDGPU assembler
// (https://llvm.org/docs/AMDGPU/AMDGPUAsmGFX940.html); meanings are in AMD's "Instinct MI300 CDNA3
// Instruction Set Architecture" manual.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attest::device::sim {

enum class Op : std::uint16_t {
  invalid,
#define ATTEST_OP(name, dst, sdst, src0, src1, src2, flags) name,
#include "device/simulator/isa/opcodes.def"
#undef ATTEST_OP
  count,
};
inline constexpr std::size_t op_count = static_cast<std::size_t>(Op::count);

/// What an operand slot holds: its size, and how an inline constant in it is read. 0.5 (code 240) is
/// 0x3f000000 in a b32 or f32 slot, 0x3800 in f16 and v2f16, 0x3f00 in bf16, 0x3fe0000000000000 in b64 and
/// f64.
enum class Slot : std::uint8_t {
  none,
  b16,
  f16,
  bf16,  ///< 16 bits in a 32-bit register
  b32,
  f32,  ///< b32 also where only some bits count (shift amounts, bytes)
  v2b16,
  v2f16,  ///< two halves of one register
  b64,
  f64,
  v2b32,
  v2f32,  ///< two registers
  b96,
  b128,
  b256,
  b512,
  b1024,
  v4f64,  ///< the accumulator of v_mfma_f64_16x16x4_f64: eight registers
  mask,   ///< one bit per lane: an SGPR pair
};

/// 32-bit registers the slot takes.
constexpr unsigned dwords(Slot slot) {
  switch (slot) {
    case Slot::none:
      return 0;
    case Slot::b16:
    case Slot::f16:
    case Slot::bf16:
    case Slot::b32:
    case Slot::f32:
    case Slot::v2b16:
    case Slot::v2f16:
      return 1;
    case Slot::b64:
    case Slot::f64:
    case Slot::v2b32:
    case Slot::v2f32:
    case Slot::mask:
      return 2;
    case Slot::b96:
      return 3;
    case Slot::b128:
      return 4;
    case Slot::b256:
    case Slot::v4f64:
      return 8;
    case Slot::b512:
      return 16;
    case Slot::b1024:
      return 32;
  }
  return 0;
}

/// Effects beside the named operands.
namespace op_flag {
inline constexpr std::uint32_t
    reads_scc = 1u << 0,
    writes_scc = 1u << 1, reads_vcc = 1u << 2,
    writes_vcc = 1u << 3,  ///< in at least one encoding without naming it
    reads_exec = 1u << 4,
    writes_exec = 1u << 5,  ///< reads_exec: scalar instructions only; vector ones all do
    reads_m0 = 1u << 6, reads_mode = 1u << 7, writes_mode = 1u << 8,
    reads_dst = 1u << 9,  ///< the old destination is a source (fmac) or partly kept (d16, mixlo)
    trans = 1u << 10,     ///< transcendental unit
    sgpr_dst = 1u << 11,  ///< a vector instruction whose dst is an SGPR
    branch = 1u << 12, ends = 1u << 13, load = 1u << 14, store = 1u << 15, atomic = 1u << 16,
    lds_dma = 1u << 17,  ///< memory to LDS without a register (besides the lds bit of MUBUF)
    literal = 1u << 18;  ///< always carries a literal: fmaak, fmamk, madak, madmk
}  // namespace op_flag

/// One row of opcodes.def. Memory operations: dst is what comes back, src[0] the address, src[1] and src[2]
/// the data.
struct OpInfo {
  std::string_view name;
  Slot dst, sdst, src[3];
  std::uint32_t flags;

  [[nodiscard]] constexpr bool has(std::uint32_t flag) const { return (flags & flag) != 0; }
};

/// Op::invalid is called "invalid" and has no operands.
const OpInfo& info(Op op);

/// Op::invalid when there is no such mnemonic.
Op find_op(std::string_view mnemonic);

}  // namespace attest::device::sim
