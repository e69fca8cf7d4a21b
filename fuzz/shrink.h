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
#include <vector>

#include "cases/case.h"
#include "fuzz/evaluate.h"
#include "fuzz/pool.h"

namespace attest::fuzz {

struct ShrinkResult {
  cases::Case c;
  Evaluation evaluation;
  std::size_t evaluations = 0;  ///< candidates tried
  std::size_t steps = 0;        ///< candidates taken
  bool minimal = false;         ///< no candidate fails any more; false = budget spent
};

/// The descent as a stream of tasks and results (fuzz/pool.h), to run beside others and to be taken up again
/// after a kill: its state is a ShrinkResult, always the best so far.
class Descent {
 public:
  /// @param start fails on `kernel` with `signature`, as its evaluation shows; with its `evaluations` and
  ///   `steps` when a descent is taken up again at a case it had taken
  /// @param budget at most so many evaluations
  Descent(std::string kernel, std::string signature, ShrinkResult start, std::size_t budget);

  std::optional<Pool::Task> next();
  /// True when the case got smaller.
  bool take(std::size_t index, Evaluation evaluation);
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] const ShrinkResult& best() const { return best_; }

 private:
  void open_generation();

  std::string kernel_, signature_;
  ShrinkResult best_;
  std::size_t budget_;
  std::vector<cases::Case> candidates_;
  std::size_t asked_ = 0;    ///< tasks given, in all
  std::size_t first_ = 0;    ///< index of candidates_[0]; older results are of no interest
  std::size_t allowed_ = 0;  ///< of candidates_, by the budget
  bool finished_ = false;
};

/// A descent alone.
/// @param progress called after every evaluation with the best so far
ShrinkResult shrink(Pool& pool, const std::string& kernel, const std::string& signature,
                    const cases::Case& start, const Evaluation& evaluation, std::size_t budget,
                    const std::function<void(const ShrinkResult&)>& progress = {});

}  // namespace attest::fuzz
