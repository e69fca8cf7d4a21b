// SPDX-License-Identifier: MIT
//
// What arithmetic a kernel declares. The bounds of oracle/mla_bound.h are equations in these numbers.
#pragma once

#include <limits>
#include <string_view>

namespace attest::oracle {

enum class OutputRounding { nearest_even, truncate, either };
enum class RowSum { from_unrounded, from_rounded };

struct PrecisionProfile {
  std::string_view name;
  double p_roundoff = 0x1p-8;     ///< unit roundoff of P as fed to P*V: f32 2^-24, bf16 2^-8, truncated 2^-7, e4m3 2^-4
  double p_floor = 0.0;           ///< absolute rounding floor of P scaled to a maximum of 1; FNUZ e4m3 2^-11
  RowSum row_sum = RowSum::from_unrounded;
  double accumulator = 0x1p-24;   ///< unit roundoff of the accumulator
  double exp2_ulp = 1.0;          ///< error of exp2 in ulp
  int tile = 16;                  ///< keys per rescale; the smallest plausible when unknown
  OutputRounding output = OutputRounding::nearest_even;
  double partial_roundoff = 0.0;  ///< of split partials: f32 0, bf16 2^-8
  double lse_empty = -std::numeric_limits<double>::infinity();  ///< lse of an empty row
};

/// Shipped profiles: "bf16", "bf16-trunc", "bf16-any", "bf16-sumrounded", "fp8p-fnuz", "fp8p-ocp", "fp32p".
/// Throws std::invalid_argument for an unknown name, listing the known ones.
const PrecisionProfile& profile(std::string_view name);

}  // namespace attest::oracle
