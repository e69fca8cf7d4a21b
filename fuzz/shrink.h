// SPDX-License-Identifier: MIT
//
// Making a failing case small without losing the bug.
//
// Greedy descent over shrink_candidates (fuzz/generate.h), which strictly decrease a well-founded measure:
// the first candidate, in order, that fails with the same signature becomes the new case. A candidate that
// fails otherwise is another bug and is not taken: RapidCheck's own loop takes any failure and slips from one
// bug to the next. Candidates are tried in parallel but accepted in order, so the result does not depend on
// the number of workers; the budget counts evaluations, not seconds, for the same reason.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "cases/case.h"
#include "fuzz/evaluate.h"
#include "fuzz/worker.h"

namespace attest::fuzz {

struct ShrinkResult {
  cases::Case c;
  Evaluation evaluation;
  std::size_t evaluations = 0;  ///< candidates tried
  std::size_t steps = 0;        ///< candidates taken
  bool minimal = false;         ///< no candidate fails any more; false = budget spent
};

/// @param start fails on `kernel` with `signature`, as `evaluation` shows
/// @param budget at most so many evaluations
/// @param progress called after every evaluation with the best so far
ShrinkResult shrink(Pool& pool, const std::string& kernel, const std::string& signature,
                    const cases::Case& start, const Evaluation& evaluation, std::size_t budget,
                    const std::function<void(const ShrinkResult&)>& progress = {});

}  // namespace attest::fuzz
