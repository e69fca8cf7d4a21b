// SPDX-License-Identifier: MIT
//
// The numbers an output format can hold, as a grid on the real line.
//
// Rounding to it is the last thing a kernel does and the only error it cannot avoid, so the judge keeps it
// apart from the bound: a correct y is the rounding of some z with |z - o| <= E. That is exact where a
// widened tolerance is not. Written with integer operations on the bits of a double, so that a loop over a
// row is a loop over vectors.
#pragma once

#include <bit>
#include <cstdint>

#include "cases/case.h"

namespace attest::oracle {

struct RoundingGrid {
  int digits = 8;  ///< of the significand, the hidden one included
  double max_finite = 0;
  double smallest_step = 0;  ///< of the subnormals

  /// For bf16, f16, f32. @throws std::invalid_argument for a format that no kernel writes results in
  static RoundingGrid of(cases::Format format);

  /// The distance between neighbours at |x|: one unit in the last place.
  [[nodiscard]] double step(double x) const {
    const std::uint64_t exponent = std::bit_cast<std::uint64_t>(x) & 0x7ff0000000000000ULL;
    const double step =
        std::bit_cast<double>(exponent) * std::bit_cast<double>(std::uint64_t(1023 - digits + 1) << 52);
    return step < smallest_step ? smallest_step : step;
  }

  /// To nearest, ties to even. Does not overflow: beyond max_finite it goes on as if the exponent had no end.
  /// Adding 1.5 * 2^52 steps leaves no room for a fraction of a step; the addition itself rounds.
  [[nodiscard]] double nearest(double x) const {
    const double shift = step(x) * 0x1.8p52;
    return (x + shift) - shift;
  }

  /// The largest magnitude that still rounds to a finite number, to nearest.
  [[nodiscard]] double overflow_threshold() const { return max_finite + step(max_finite) / 2; }
};

}  // namespace attest::oracle
