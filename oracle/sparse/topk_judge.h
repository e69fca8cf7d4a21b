// SPDX-License-Identifier: MIT
#pragma once

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/verdict.h"

namespace attest::oracle {

/// See judge in oracle/judge.h: what it says of op topk, guard zones aside. Output "positions", int32
/// [rows, k]. The scores are given, so the tie band is zero; what order and NaN promise is the case's to say
/// (cases/ops/topk.h, reference/top_k.h).
Verdict judge_topk(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs);

}  // namespace attest::oracle
