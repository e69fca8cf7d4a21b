// SPDX-License-Identifier: MIT
//
// Two things a value can be besides its bits: made of data nobody wrote, and made by an operation whose bits
// are not the hardware's (exec/fidelity.h). Both spread alike, so one structure carries both.
//
// Granularity decides whether a detector is believed. A wave leaves lanes it does not use full of garbage,
// compares them, selects around them, and packs halves of registers one after the other; none of it matters
// as long as the garbage reaches nothing. So never-written is known per byte of each lane of a vector
// register and per bit of a scalar register (a lane mask is a scalar: one garbage lane must not spoil the
// other 63). Not-exact is known per lane and per scalar bit.
//
// Where a value came from is kept once per register: good enough to name an instruction, and free when
// nothing is tainted.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "device/simulator/core/wave.h"
#include "device/simulator/detect/effects.h"
#include "device/simulator/detect/gate.h"
#include "device/simulator/detect/live_in.h"

namespace attest::device::sim::detect {

/// Where a taint entered: an instruction of the program (number + 1), a register as it was at entry, or one of
/// the two by way of LDS or scratch (sources.h).
using Origin = std::uint32_t;
namespace origin {
inline constexpr Origin none = 0;
inline constexpr Origin kept = 0x40000000;                         ///< + 64 * number + lane of the load
inline constexpr Origin vector = 0x80000000, scalar = 0xc0000000;  ///< + row, + operand code
constexpr Origin instruction(std::uint32_t index) {
  return index + 1;
}
constexpr bool is_instruction(Origin o) {
  return o != none && o < kept;
}
constexpr bool is_kept(Origin o) {
  return o >= kept && o < vector;
}
}  // namespace origin

/// Of one 32-bit value per lane: bit l of undefined[b] says that byte b of lane l was never written.
struct LaneTaint {
  std::array<std::uint64_t, 4> undefined{};
  std::uint64_t inexact = 0;
  Origin undefined_from = origin::none, inexact_from = origin::none;

  [[nodiscard]] std::uint64_t undefined_lanes() const {
    return undefined[0] | undefined[1] | undefined[2] | undefined[3];
  }
  [[nodiscard]] bool clean() const { return (undefined_lanes() | inexact) == 0; }
  void all_bytes(std::uint64_t lanes_undefined) { undefined.fill(lanes_undefined); }
  /// Takes over where the other came from, for colours that have taint there and none here.
  void adopt_origins(const LaneTaint& other) {
    if (undefined_lanes() == 0) undefined_from = other.undefined_from;
    if (inexact == 0) inexact_from = other.inexact_from;
  }
  LaneTaint& operator|=(const LaneTaint& other) {
    adopt_origins(other);
    for (std::size_t b = 0; b < 4; ++b) undefined[b] |= other.undefined[b];
    inexact |= other.inexact;
    return *this;
  }
};

/// Of a scalar of up to 64 bits.
struct BitTaint {
  std::uint64_t undefined = 0, inexact = 0;
  Origin undefined_from = origin::none, inexact_from = origin::none;

  [[nodiscard]] bool clean() const { return (undefined | inexact) == 0; }
  void adopt_origins(const BitTaint& other) {
    if (undefined == 0) undefined_from = other.undefined_from;
    if (inexact == 0) inexact_from = other.inexact_from;
  }
  BitTaint& operator|=(const BitTaint& other) {
    adopt_origins(other);
    undefined |= other.undefined;
    inexact |= other.inexact;
    return *this;
  }
};

/// The taint of one wave's registers.
class WaveTaint {
 public:
  /// At entry: v0 (for all lanes), EXEC, and the SGPRs that the ABI fills hold something, nothing else does.
  /// @param read_first scalars that may be read before they are written; of others nothing is said
  WaveTaint(std::uint32_t vgprs, std::uint64_t defined_sgprs, const ScalarSet& read_first);

  [[nodiscard]] const LaneTaint& row(std::uint32_t number) const { return rows_[number]; }
  void set_row(std::uint32_t number, const LaneTaint& taint) {
    rows_[number] = taint;
    note_row(number);
  }
  /// Of a row without never-written bytes, before and after: nothing but what is not exact changes.
  void set_inexact(std::uint32_t number, std::uint64_t inexact, Origin from) {
    rows_[number].inexact = inexact;
    if (inexact != 0) rows_[number].inexact_from = from;
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    std::uint64_t& dirty = dirty_rows_[number / 64];
    dirty = inexact == 0 ? dirty & ~bit : dirty | bit;
    update_row_signature(row_signature_, dirty_rows_, number, share_);
  }
  /// Something clean goes to those bytes of those lanes.
  void clean_row(std::uint32_t number, unsigned bytes, std::uint64_t lanes_written) {
    LaneTaint& row = rows_[number];
    for (std::size_t b = 0; b < 4; ++b)
      if ((bytes >> b & 1) != 0) row.undefined[b] &= ~lanes_written;
    if (bytes == 0xf) row.inexact &= ~lanes_written;
    note_row(number);
  }
  /// False: all of the rows are clean.
  [[nodiscard]] bool dirty_rows(const Registers& r) const { return any(dirty_rows_, r); }
  /// False: all bytes of all of the rows were written.
  [[nodiscard]] bool undefined_rows(const Registers& r) const { return any(undefined_rows_, r); }
  [[nodiscard]] bool undefined_row(std::uint32_t number) const {
    return (undefined_rows_[number / 64] >> (number % 64) & 1) != 0;
  }

  /// Scalars by operand code; scalar::scc has one bit.
  [[nodiscard]] BitTaint scalar32(std::uint32_t code) const { return scalars_[code]; }
  [[nodiscard]] BitTaint scalar64(std::uint32_t code) const;
  void set_scalar32(std::uint32_t code, BitTaint taint);
  void set_scalar64(std::uint32_t code, const BitTaint& taint);
  void clean_scalar(std::uint32_t code) {
    if ((dirty_scalars_[code / 64] >> (code % 64) & 1) != 0) set_scalar32(code, BitTaint());
  }
  [[nodiscard]] bool dirty_scalars(const std::array<std::uint64_t, 3>& mask) const {
    return ((mask[0] & dirty_scalars_[0]) | (mask[1] & dirty_scalars_[1]) | (mask[2] & dirty_scalars_[2])) !=
           0;
  }
  /// What is tainted, as gate.h tells registers.
  [[nodiscard]] std::uint64_t row_signature() const { return row_signature_; }
  [[nodiscard]] std::uint64_t scalar_signature() const { return scalar_signature_; }
  [[nodiscard]] bool dirty_exec() const { return (dirty_scalars_[1] >> (operand::exec - 64) & 3) != 0; }

 private:
  void note_row(std::uint32_t number) {
    const LaneTaint& taint = rows_[number];
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    std::uint64_t& dirty = dirty_rows_[number / 64];
    std::uint64_t& undefined = undefined_rows_[number / 64];
    dirty = taint.clean() ? dirty & ~bit : dirty | bit;
    update_row_signature(row_signature_, dirty_rows_, number, share_);
    undefined = taint.undefined_lanes() == 0 ? undefined & ~bit : undefined | bit;
  }
  using RowBits = std::array<std::uint64_t, 10>;
  static bool any(const RowBits& rows, const Registers& r) {
    const std::uint32_t word = r.first / 64, shift = r.first % 64;
    std::uint64_t bits = rows[word] >> shift;
    if (shift + r.count > 64) bits |= rows[word + 1] << (64 - shift);
    return (bits & ((std::uint64_t{1} << r.count) - 1)) != 0;
  }

  RowsPerBit share_;
  std::vector<LaneTaint> rows_;
  std::array<BitTaint, scalar::count> scalars_;
  RowBits dirty_rows_{}, undefined_rows_{};
  std::array<std::uint64_t, 3> dirty_scalars_{};
  std::uint64_t row_signature_ = 0, scalar_signature_ = 0;
};

}  // namespace attest::device::sim::detect
