// SPDX-License-Identifier: MIT
//
// The oracle's front door: is this output right?
#pragma once

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/precision.h"
#include "oracle/verdict.h"

namespace attest::oracle {

/// Where the time of a judgement goes, for benchmarks. MLA attention alone fills it in.
struct JudgeCost {
  double reference_seconds = 0;  ///< the reference and its bound; the rest is comparing and diagnosing
};

/// Judges `outputs` against the fp64 reference on the very bytes of `inputs`. Deterministic.
/// The kind of the result is pass, fail, mistrusted, or harness_error (outputs missing or of the wrong size).
Verdict judge(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs,
              const PrecisionProfile& profile, JudgeCost* cost = nullptr);

}  // namespace attest::oracle
