// SPDX-License-Identifier: MIT
#include "cases/domain.h"

#include <algorithm>

namespace attest::cases {
namespace {

/// A value of [low, high] that depends on all of `value`: neighbours stay neighbours.
int wrap(int value, int low, int high) {
  if (value >= low && value <= high) return value;
  return low + value % (high - low + 1);
}

}  // namespace

Case fit(Case c, const MlaDecodeDomain& domain) {
  auto& p = std::get<MlaDecode>(c.problem);
  if (std::find(domain.heads.begin(), domain.heads.end(), p.heads) == domain.heads.end())
    p.heads = domain.heads[static_cast<std::size_t>(p.heads) % domain.heads.size()];

  const bool fp8_q = domain.q_format != Format::bf16, fp8_kv = domain.kv_format != Format::bf16;
  p.q_format = domain.q_format;
  p.kv_format = domain.kv_format;
  if (!fp8_q) p.q_scale = 1.0F;
  if (!fp8_kv) p.kv_scale = 1.0F;
  if (domain.causal_only) p.causal = true;
  if (domain.single_split) p.num_splits = 1;
  if (!domain.return_lse) p.return_lse = false;
  if (!domain.page_padding) c.memory.page_padding_bytes = 0;
  if (std::find(domain.placements_excluded.begin(), domain.placements_excluded.end(), c.memory.placement) !=
      domain.placements_excluded.end())
    c.memory.placement = Placement::shuffled;

  int longest = 0;
  for (const Request& r : p.requests) longest = std::max(longest, r.q_len);
  const int wanted = wrap(longest, domain.longest_q_len_min, domain.longest_q_len_max);
  bool reached = false;
  for (Request& r : p.requests) {
    if (domain.uniform_q_len)
      r.q_len = wanted;
    else if (r.q_len > 0)
      r.q_len = r.q_len == longest ? wanted : wrap(r.q_len, 1, wanted);
    reached = reached || r.q_len == wanted;
  }
  if (!reached) p.requests.front().q_len = wanted;
  return c;
}

}  // namespace attest::cases
