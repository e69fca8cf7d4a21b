// SPDX-License-Identifier: MIT
//
// What arithmetic a kernel declares. The bounds of oracle/mla_bound.h are equations in these numbers.
//
//   const PrecisionProfile& p = profile("bf16");          // scores and sums in f32, P rounded to bf16
//   const PrecisionProfile& q = profile("bf16+part16");   // and split partials stored in bf16
//
// A profile is a claim about the kernel. One that is too generous hides faults; one that is too strict
// rejects a correct kernel, and the way it does so is telling: fp8 P taken for bf16 fails elements, a row sum
// of rounded P taken for unrounded fails the lse only.
#pragma once

#include <limits>
#include <string_view>
#include <vector>

#include "reference/ds_layout.h"

namespace attest::oracle {

enum class OutputRounding { nearest_even, truncate, either };
enum class RowSum { from_unrounded, from_rounded };
enum class EmptyOutput { zero, any };

struct PrecisionProfile {
  std::string_view name;
  double p_roundoff =
      0x1p-8;  ///< unit roundoff of P as fed to P*V: f32 2^-24, bf16 2^-8, truncated 2^-7, e4m3 2^-4
  double p_floor = 0.0;  ///< absolute rounding floor of P scaled to a maximum of 1; FNUZ e4m3 2^-11
  RowSum row_sum = RowSum::from_unrounded;
  double accumulator = 0x1p-24;  ///< unit roundoff of the accumulator
  double exp2_ulp = 1.0;         ///< error of exp2 in ulp
  int tile = 16;                 ///< keys per rescale; the smallest plausible when unknown
  OutputRounding output = OutputRounding::nearest_even;
  double partial_roundoff = 0.0;  ///< of split partials: f32 0, bf16 2^-8
  /// The lse of an empty row; NaN accepts anything. Kernels differ: AITER's reduction writes +inf.
  double lse_empty = -std::numeric_limits<double>::infinity();
  /// How latents of a cache with scales in it become bf16, which decides what K and V are.
  reference::Restoring restoring = reference::Restoring::nearest_even;
  EmptyOutput empty = EmptyOutput::zero;  ///< what an empty row of the output must hold
};

/// The shipped profiles, in this order:
///
///   bf16             P rounded to bf16, row sum of the unrounded P, output to nearest even
///   bf16-trunc       P and output truncated to bf16
///   bf16-any         the widest of the bf16 kind: where to start with an unknown binary kernel
///   bf16-sumrounded  as bf16, the row sum taken from the rounded P
///   fp8p-fnuz        P in [0, 1] converted to e4m3fnuz without a scale
///   fp8p-ocp         the same in e4m3fn
///   fp32p            P stays f32: reference kernels
std::vector<std::string_view> profile_names();

/// A shipped profile by name, with any of these suffixes: "+part16" split partials in bf16, "+u14" a matrix
/// unit with a short accumulator (2^-14), "+emptyinf" lse +inf on empty rows, "+emptyany" empty rows
/// undefined, "+dstrunc" latents of a ds cache truncated to bf16. Throws std::invalid_argument for an unknown name, listing the known ones. The reference stays
/// valid forever.
const PrecisionProfile& profile(std::string_view name);

}  // namespace attest::oracle
