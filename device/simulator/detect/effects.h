// SPDX-License-Identifier: MIT
//
// What an instruction does to the state of its wave, without executing it: the registers it reads and writes,
// the unit that executes it, the counters that say when its result is there.
//
//   const Effects e = effects_of(instruction);                 // once per instruction of a program
//   for (const Registers& r : e.vector_reads) ...              // rows r.first .. r.first + r.count - 1
//   const Effects now = effects_of(instruction, wave.mode, wave.sgpr[operand::m0]);   // if depends_on_m0(e,
//   wave.mode)
//
// Vector registers are rows of Wave::vgpr, a-registers folded behind the v-registers as core/program.h does
// it. Of an instruction that was only decoded, aN is row 256 + N. Scalar registers are operand codes 0..127,
// so vcc is 106 and 107; scc and the MODE register follow as 128 and 129. What an instruction does to EXEC
// beside naming it as an operand is `exec_masked`; it is not repeated in the lists.
//
// Most of it is what isa/opcodes.def says of an operation, applied to the operands of one instruction.
// tests/effects_test.cpp compares the lists with LLVM's instruction descriptions for every row of
// isa/encodings.def.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/simulator/core/wave.h"
#include "device/simulator/isa/instruction.h"

namespace attest::device::sim::detect {

namespace scalar {
inline constexpr std::uint16_t scc = 128, mode = 129, count = 130;
}  // namespace scalar

/// Consecutive 32-bit registers.
struct Registers {
  std::uint16_t first = 0;
  std::uint8_t count = 0;
  std::uint8_t bytes = 0xf;  ///< bit i: byte i of each is read or written; partial writes keep the rest

  [[nodiscard]] bool overlaps(const Registers& other) const {
    return first < other.first + other.count && other.first < first + count;
  }
  bool operator==(const Registers&) const = default;
};

template <std::size_t capacity>
class RegisterList {
 public:
  void add(unsigned first, unsigned count, unsigned bytes = 0xf) {
    if (count == 0) return;
    items_[size_++] = {static_cast<std::uint16_t>(first), static_cast<std::uint8_t>(count),
                       static_cast<std::uint8_t>(bytes)};
  }
  [[nodiscard]] const Registers* begin() const { return items_; }
  [[nodiscard]] const Registers* end() const { return items_ + size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const Registers& operator[](std::size_t k) const { return items_[k]; }

 private:
  Registers items_[capacity] = {};
  std::uint8_t size_ = 0;
};

/// What executes it.
enum class Unit : std::uint8_t {
  control,  ///< SOPP: s_nop, s_waitcnt, s_barrier, branches, messages
  salu,
  smem,
  valu,
  mfma,
  vmem,  ///< MUBUF, MTBUF, GLOBAL, SCRATCH
  flat,  ///< global memory or LDS, known only when it runs
  ds,
};

/// The MFMA classes between which wait states differ: f64 is dgemm, f32 sgemm, everything else xdl.
enum class Matrix : std::uint8_t { none, xdl, sgemm, dgemm };

struct Effects {
  RegisterList<5> vector_reads;
  RegisterList<2> vector_writes;
  RegisterList<8> scalar_reads;
  RegisterList<4> scalar_writes;

  Unit unit = Unit::control;
  Matrix matrix = Matrix::none;
  std::uint8_t passes = 0;  ///< MFMA: LLVM's SISchedule.td, SIDPGFX940FullSpeedModel

  bool exec_masked = false;  ///< reads and writes vector registers of the lanes in EXEC only
  bool relative = false;     ///< s_movrel: one of the registers is off by M0

  bool trans = false;
  bool dpp = false;
  bool sdwa = false;
  bool writes_part =
      false;         ///< SDWA with a dst_sel other than DWORD, VOP3 that op_sel sends to the high half
  bool dot = false;  ///< v_dot*

  // Memory.
  bool load = false, store = false, atomic = false;  ///< an atomic is load and store as well
  bool lds_dma = false;                              ///< moves between memory and LDS without a register

  // Counters, raised at issue and lowered when it is done.
  bool vmcnt = false;
  std::uint8_t lgkmcnt = 0;  ///< by how much: scalar loads of more than one dword count twice
};

Effects effects_of(const Instruction& instruction);
/// True when the registers are not those that the instruction names: s_movrel, and VALU instructions between
/// s_set_gpr_idx_on and s_set_gpr_idx_off.
constexpr bool depends_on_m0(const Effects& effects, std::uint32_t wave_mode) {
  return effects.relative || (effects.unit == Unit::valu && (wave_mode & mode::gpr_idx_en) != 0);
}
/// With the registers of this moment.
Effects effects_of(const Instruction& instruction, std::uint32_t mode, std::uint32_t m0);

/// The fields of an s_waitcnt: wait until at most so many are outstanding. The largest value waits for
/// nothing.
struct WaitCounts {
  std::uint8_t vmcnt, expcnt, lgkmcnt;
  static constexpr std::uint8_t vmcnt_max = 63, expcnt_max = 7, lgkmcnt_max = 15;
};
constexpr WaitCounts wait_counts(std::int32_t simm16) {
  const auto bits = static_cast<std::uint32_t>(simm16);
  return {static_cast<std::uint8_t>((bits & 15) | (bits >> 14 & 3) << 4),
          static_cast<std::uint8_t>(bits >> 4 & 7), static_cast<std::uint8_t>(bits >> 8 & 15)};
}

}  // namespace attest::device::sim::detect
