// SPDX-License-Identifier: MIT
#pragma once

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/verdict.h"

namespace attest::oracle {

/// Outputs "tokens" [requests + padded, max_spec_len + 1] and "nodes" [requests + padded, max_spec_len],
/// int32.
///
/// Every request by the rules of reference/speculative.h, exactly, except where fp32 arithmetic may decide
/// either way (see the .cpp): there both ways are right. In repeated cases also the distribution of what each
/// row of probabilities emitted, by Pearson's statistic.
Verdict judge_spec_verify(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs);

}  // namespace attest::oracle
