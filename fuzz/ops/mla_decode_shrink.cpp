// SPDX-License-Identifier: MIT
//
// Simpler mla_decode cases. Requests and their lengths go first, which cost most to run; then the other
// dimensions; then what only changes the kind of the problem. Heads try every smaller value that differs in
// kind, not only halves.
#include "fuzz/ops/mla_decode_shrink.h"

#include "fuzz/ops/shrink_attention.h"

namespace attest::fuzz {

using namespace cases;

std::vector<Case> shrink_mla_decode(const Case& c) {
  std::vector<Case> candidates;
  const MlaDecode& problem = std::get<MlaDecode>(c.problem);
  AttentionShrinker<MlaDecode> shrinker(c, candidates);
  shrinker.requests();
  const int heads = problem.heads, page = problem.page_size, splits = problem.num_splits;
  shrinker.dimension(&MlaDecode::heads, {1, 2, 3, 4, 8, 16, 17, 32, heads / 2, heads / 16 * 16, heads - 1});
  shrinker.dimension(&MlaDecode::page_size, {1, 2, 3, 16, page / 2, page / 16 * 16, page - 1});
  shrinker.dimension(&MlaDecode::num_splits, {1, 2, 3, splits / 2, splits - 1});
  shrinker.formats();
  shrinker.with([](MlaDecode& p) { p.causal = true; });
  shrinker.with([](MlaDecode& p) { p.return_lse = true; });
  return candidates;
}

std::int64_t mla_decode_complexity(const Case& c) {
  const MlaDecode& p = std::get<MlaDecode>(c.problem);
  const std::int64_t sum = p.heads + p.page_size + p.num_splits + (p.causal ? 0 : 1) + (p.return_lse ? 0 : 1);
  return sum + formats_complexity(p) + request_complexity(p.requests);
}

}  // namespace attest::fuzz
