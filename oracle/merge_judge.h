// SPDX-License-Identifier: MIT
//
// The verdict on op merge_states: every row against the fp64 merge of the very states it was given, within a
// bound computed from them.
#pragma once

#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/precision.h"
#include "oracle/verdict.h"
#include "reference/merge.h"

namespace attest::oracle {

struct MergeBound {
  std::vector<double> element;  ///< [columns], |y - o| beyond the rounding cell of the output
  double lse = 0;               ///< in the base of the lse
};

/// The bound of one row that is not empty; derived in merge_judge.cpp. @param lse, out as for merge_states
MergeBound bound_merge(const std::vector<double>& lse, const reference::Matrix& out,
                       const reference::MergedState& merged, bool base_two, const PrecisionProfile& profile);

/// See judge in oracle/judge.h: what it says of op merge_states, guard zones aside. In an Element `position`
/// is the token.
Verdict judge_merge_states(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs,
                           const PrecisionProfile& profile);

}  // namespace attest::oracle
