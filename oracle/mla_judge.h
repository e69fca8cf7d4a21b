// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/diagnosis.h"
#include "oracle/judge.h"
#include "oracle/precision.h"
#include "oracle/verdict.h"

namespace attest::oracle {

/// See judge in oracle/judge.h: what it says of the ops that are MLA attention, guard zones aside.
Verdict judge_mla(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs,
                  const PrecisionProfile& profile, JudgeCost* cost = nullptr);

/// See alternative in oracle/diagnosis.h, of a failing case; nullopt for one that passes.
std::optional<Alternative> alternative_mla(const cases::Case& c, const cases::Inputs& inputs,
                                           const cases::Outputs& outputs, const PrecisionProfile& profile);

}  // namespace attest::oracle
