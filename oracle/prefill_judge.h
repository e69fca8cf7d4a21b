// SPDX-License-Identifier: MIT
#pragma once

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/precision.h"
#include "oracle/verdict.h"

namespace attest::oracle {

/// See judge in oracle/judge.h: what it says of op mla_prefill, guard zones aside. Every head of a request is
/// an attention of its own, judged by the bound of oracle/mla_bound.h over K of 192 columns.
Verdict judge_mla_prefill(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs,
                          const PrecisionProfile& profile);

}  // namespace attest::oracle
