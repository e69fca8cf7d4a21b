// SPDX-License-Identifier: MIT
//
// Which lane's value ends up in which lane, for instructions that move data across lanes: DPP modifiers,
// ds_bpermute, ds_permute, ds_swizzle.
//
// The rules are exec's. Here the instruction is executed on a wave of our own whose data register holds lane
// numbers, and the result is read off.
#pragma once

#include <array>
#include <cstdint>

#include "device/simulator/core/wave.h"
#include "device/simulator/isa/instruction.h"

namespace attest::device::sim::detect {

struct LaneMap {
  static constexpr std::int8_t zero = -1;   ///< the lane gets 0
  static constexpr std::int8_t keeps = -2;  ///< the lane is not written

  std::array<std::int8_t, lanes> from;  ///< a lane number, zero, or keeps

  /// Bit l of the result: bit from[l] of `bits`; 0 where there is no source.
  [[nodiscard]] std::uint64_t move(std::uint64_t bits) const;
  /// Lanes that are written.
  [[nodiscard]] std::uint64_t written() const;
};

/// For source 0 of an instruction with a DPP modifier.
LaneMap dpp_map(const Instruction& instruction, std::uint64_t exec);
/// For ds_bpermute_b32, ds_permute_b32, ds_swizzle_b32: the lanes that `wave` would move.
LaneMap exchange_map(const Instruction& instruction, const Wave& wave);

}  // namespace attest::device::sim::detect
