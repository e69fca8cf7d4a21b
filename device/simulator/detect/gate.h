// SPDX-License-Identifier: MIT
//
// Why most instructions need no detector.
//
// A scalar instruction takes the simulator a few nanoseconds, and a call that finds nothing to do takes as
// much. What waits, wait_states and dataflow look for shows only when an instruction meets something that an
// earlier one left: a register that a load still fills, one that nobody wrote, a result a few wait states old.
// So each leaves word of that in the wave's Gate, and screen.h asks the gate instead of the detectors
// (observer.h, when).
//
// Registers are told by signature, a bit for several of them where there are many, so the gate may let through
// an instruction that meets nothing, which costs time; it never holds one back that does.
#pragma once

#include <cstdint>

#include "device/simulator/detect/effects.h"

namespace attest::device::sim::detect {

struct Gate {
  std::uint64_t pending_rows = 0, pending_scalars = 0;  ///< loads still fill them (waits)
  std::uint64_t tainted_rows = 0, tainted_scalars = 0;  ///< never written, or not exact (dataflow)
  /// Numbers of the wave's instructions from which on earlier ones lie too far back (wait_states): for
  /// whatever touches vector registers, for what reads scalar ones, for lane reads, DPP and MFMA; for all.
  std::uint64_t results_until = 0, scalars_until = 0, plain_until = 0, any_until = 0;
};

/// How many vector registers share a bit of a signature.
struct RowsPerBit {
  unsigned log2 = 3;

  /// The fewest for a kernel that has `vgprs` rows, at most 512.
  static constexpr RowsPerBit of(std::uint32_t vgprs) {
    return {vgprs <= 64 ? 0u : vgprs <= 128 ? 1u : vgprs <= 256 ? 2u : 3u};
  }
};
constexpr std::uint64_t row_bit(unsigned row, RowsPerBit share) {
  return std::uint64_t{1} << (row >> share.log2 & 63);
}
/// Two scalar registers to a bit. scc and the MODE register share theirs with flat_scratch.
constexpr std::uint64_t scalar_bit(unsigned code) {
  return std::uint64_t{1} << (code < 128 ? code / 2 : 51);
}

template <std::size_t capacity>
std::uint64_t row_signature(const RegisterList<capacity>& list, RowsPerBit share) {
  std::uint64_t signature = 0;
  for (const Registers& r : list)
    for (unsigned row = r.first; row < unsigned{r.first} + r.count; ++row) signature |= row_bit(row, share);
  return signature;
}
template <std::size_t capacity>
std::uint64_t scalar_signature(const RegisterList<capacity>& list) {
  std::uint64_t signature = 0;
  for (const Registers& r : list)
    for (unsigned code = r.first; code < unsigned{r.first} + r.count; ++code) signature |= scalar_bit(code);
  return signature;
}

/// Signatures of sets that are kept as bits, register n in bit n % 64 of word n / 64: what has to be done when
/// one register's bit has changed.
template <typename Words>
void update_row_signature(std::uint64_t& signature, const Words& words, unsigned row, RowsPerBit share) {
  const unsigned first = row >> share.log2 << share.log2;
  const std::uint64_t all = (std::uint64_t{1} << (1u << share.log2)) - 1, bit = row_bit(row, share);
  const bool any = (words[row / 64] >> (first % 64) & all) != 0;
  signature = any ? signature | bit : signature & ~bit;
}
template <typename Words>
void update_scalar_signature(std::uint64_t& signature, const Words& words, unsigned code) {
  if (code >= 128) code = 102;
  const std::uint64_t bit = scalar_bit(code);
  bool any = (words[code / 64] >> (code % 64 / 2 * 2) & 3) != 0;
  if (bit == scalar_bit(128)) any = any || words[2] != 0;
  signature = any ? signature | bit : signature & ~bit;
}

}  // namespace attest::device::sim::detect
