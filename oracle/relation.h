// SPDX-License-Identifier: MIT
//
// Checks that need no reference: the same kernel on a changed case must give the same, or a related, result.
//
// Two kinds of fault escape a comparison with the reference: those within its bound (a page order that
// changes the order of a sum changes bits it should not), and those that a wrong reference would share. A
// relation catches both: page permutation, future keys changed, batch neighbours changed, all indices instead
// of none.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/precision.h"
#include "oracle/verdict.h"

namespace attest::oracle {

struct Relation {
  std::string name;  ///< the stage of a verdict that it fails: "page permutation"
  /// What the kernel runs in the second place; when it is of another op, what the correct kernel of that op
  /// and the same contract runs.
  cases::Case c;
  cases::Inputs inputs;
  /// Given what both runs returned; pass, or fail with a diagnosis.
  std::function<Verdict(const cases::Outputs& original, const cases::Outputs& changed)> compare;
};

/// The relations to try on this case, chosen by its seed so that a campaign covers all of them at a fraction
/// of the cost; a pure function of the case. Empty for most cases.
/// They refer to the case, the inputs and the profile.
std::vector<Relation> relations(const cases::Case& c, const cases::Inputs& inputs,
                                const PrecisionProfile& profile);

}  // namespace attest::oracle
