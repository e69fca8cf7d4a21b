// SPDX-License-Identifier: MIT
//
// The oracle's front door: is this output right?
#pragma once

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/precision.h"
#include "oracle/verdict.h"

namespace attest::oracle {

/// Judges `outputs` against the fp64 reference on the very bytes of `inputs`. Deterministic.
/// The kind of the result is pass, fail, mistrusted, or harness_error (outputs missing or of the wrong size).
Verdict judge(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs,
              const PrecisionProfile& profile);

}  // namespace attest::oracle
