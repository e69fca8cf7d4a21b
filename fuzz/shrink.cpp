// SPDX-License-Identifier: MIT
#include "fuzz/shrink.h"

#include <utility>
#include <vector>

#include "fuzz/generate.h"

namespace attest::fuzz {

ShrinkResult shrink(Pool& pool, const std::string& kernel, const std::string& signature,
                    const cases::Case& start, const Evaluation& evaluation, std::size_t budget,
                    const std::function<void(const ShrinkResult&)>& progress) {
  ShrinkResult best{.c = start, .evaluation = evaluation};
  for (bool improved = true; improved;) {
    improved = false;
    const std::vector<cases::Case> candidates = shrink_candidates(best.c);
    std::size_t asked = 0;
    const std::size_t allowed = budget - best.evaluations;
    pool.run(
        [&]() -> std::optional<Pool::Task> {
          if (asked == candidates.size() || asked == allowed) return std::nullopt;
          return Pool::Task{kernel, candidates[asked++]};
        },
        [&](std::size_t index, Evaluation e) {
          ++best.evaluations;
          const bool same = signature_of(kernel, candidates[index], e.verdict) == signature;
          if (same) {
            best.c = candidates[index];
            best.evaluation = std::move(e);
            ++best.steps;
            improved = true;
          }
          if (progress) progress(best);
          return !same;
        });
    if (!improved) best.minimal = allowed >= candidates.size();
    if (best.evaluations >= budget) break;
  }
  return best;
}

}  // namespace attest::fuzz
