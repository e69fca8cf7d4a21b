// SPDX-License-Identifier: MIT
#pragma once

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/verdict.h"

namespace attest::oracle {

/// See judge in oracle/judge.h: what it says of op index_remap, guard zones aside. Output "slots", int32
/// [slot_indptr[rows]]; every entry must be the reference's.
Verdict judge_index_remap(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs);

}  // namespace attest::oracle
