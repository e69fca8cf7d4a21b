// SPDX-License-Identifier: MIT
#pragma once

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/precision.h"
#include "oracle/verdict.h"

namespace attest::oracle {

/// See judge in oracle/judge.h: what it says of op dense_switch, guard zones aside.
///
/// Each token is held to the form it is due. Where both forms are mathematically the same a kernel may take
/// either, and the bounds let it, as far as the inputs are the same; they are not when a cache is fp8 or a
/// list was never filled.
Verdict judge_dense_switch(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs,
                           const PrecisionProfile& profile);

}  // namespace attest::oracle
