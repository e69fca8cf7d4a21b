// SPDX-License-Identifier: MIT
//
// How a vector operation is described to the machinery that runs it.
//
// A kernel is the operation itself over all 64 lanes: sources and result are rows of 64 dwords (64-bit
// values: two consecutive rows), it knows nothing of EXEC, modifiers, constants or register numbers, rounds
// to nearest and keeps denormals. Everything around it is common to all operations and written once in
// vector_execute.cpp:
//
//   operands ── read, broadcast, DPP, SDWA, op_sel, neg/abs, flush ──▶ kernel ──▶ omod, clamp, flush, halves,
//   EXEC
//
// That is the general path. Shorter ones give the same result when nothing special is asked for: `plain` (no
// modifiers: rows are used in place, a uniform source is sixteen equal lanes read again and again); `direct`,
// the same compiled for one kernel and one shape of operands; and for the operations that matter most, all
// sources vectors and all lanes active, the operation inlined into its handler.
#pragma once

#include <cstdint>

#include "device/simulator/core/wave.h"
#include "device/simulator/isa/instruction.h"

namespace attest::device::sim::vector {

struct Rows {
  std::uint32_t* dst = nullptr;
  const std::uint32_t* src[3] = {};
  std::uint32_t step[3] = {~0u, ~0u, ~0u};  ///< 0: a uniform source, only the first 16 lanes are there
  std::uint64_t mask_in = 0;                ///< VCC or the SGPR pair of src2: carry in, select
  std::uint64_t mask_out = 0;               ///< carry out or comparison, one bit per lane, all lanes
  std::uint32_t mode = 0;
  const Instruction* instruction = nullptr;

  /// Where source k has lane `lane` (a multiple of 16, or of 8 for 64-bit ones).
  [[nodiscard, gnu::always_inline]] const std::uint32_t* at(unsigned k, std::uint32_t lane) const {
    return src[k] + (lane & step[k]);
  }
};
using Kernel = void (*)(Rows& rows);

/// What the result is, for clamp, omod, flushing and partial writes.
enum class Result : std::uint8_t {
  bits,  ///< nothing applies
  b16,   ///< low half, the high half is written with zeros
  f16,
  f32,
  f64,
  v2f16,
  v2f32,
  mask,  ///< Rows::mask_out to VCC or an SGPR pair
};

struct Entry {
  Kernel kernel = nullptr;
  Kernel flush =
      nullptr;  ///< the same with f32 denormals flushed, sources and result; else the general path does it
  Kernel clamped = nullptr;  ///< saturating twin of an integer operation
  Result result = Result::bits;
  bool rounds = false;      ///< MODE's rounding applies (kernels of f16 read it from Rows::mode)
  bool flushes = false;     ///< MODE's denormal bits apply to the sources, and to a floating result
  bool keeps_half = false;  ///< a 16-bit result leaves the other half alone (instructions new in GFX9)
  bool simple = true;       ///< the plain path is allowed
  bool direct_takes_op_sel = false;  ///< `direct` looks at op_sel, op_sel_hi and neg itself
  bool reads_old = false;  ///< src2 is the destination, though the table of operations does not say so
  bool mixes = false;      ///< v_fma_mix*: op_sel_hi says which sources are halves
  bool high_half = false;  ///< v_fma_mixhi_f16
  std::uint8_t bytes_written = 0;              ///< fp8 conversions: 2 or 1 bytes at the place op_sel names
  std::uint32_t mode_mask = 0, mode_keep = 0;  ///< plain when (MODE & mask) == keep
  Handler direct = nullptr;                    ///< no modifiers
  Handler inlined = nullptr;                   ///< no modifiers, all sources vectors
};

/// Built once per SIMD level. No library container: its inline functions would be compiled for that level.
struct Table {
  Entry entries[op_count];
  Entry& operator[](Op op) { return entries[static_cast<std::size_t>(op)]; }
  const Entry& operator[](Op op) const { return entries[static_cast<std::size_t>(op)]; }
};

// Faults are made where no SIMD level is in force.
[[noreturn]] void unmodelled_operand(const Instruction& instruction, std::uint16_t code);
[[noreturn]] void register_outside(const Instruction& instruction, std::uint32_t row, std::uint32_t rows);
[[noreturn]] void unknown_dpp_control(const Instruction& instruction);

}  // namespace attest::device::sim::vector
