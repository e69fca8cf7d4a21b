// SPDX-License-Identifier: MIT
#include "cases/domain.h"

#include <algorithm>

#include "cases/paging.h"

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
  if (!domain.heads.empty() &&
      std::find(domain.heads.begin(), domain.heads.end(), p.heads) == domain.heads.end())
    p.heads = domain.heads[static_cast<std::size_t>(p.heads) % domain.heads.size()];

  if (!domain.page_sizes.empty() &&
      std::find(domain.page_sizes.begin(), domain.page_sizes.end(), p.page_size) == domain.page_sizes.end())
    p.page_size = domain.page_sizes[static_cast<std::size_t>(p.page_size) % domain.page_sizes.size()];

  const bool fp8_q = domain.q_format != Format::bf16, fp8_kv = domain.kv_format != Format::bf16;
  p.q_format = domain.q_format;
  p.kv_format = domain.kv_format;
  if (!fp8_q) p.q_scale = 1.0F;
  p.kv_layout = domain.kv_layout;
  if (!fp8_kv || p.kv_layout != KvLayout::rows) p.kv_scale = 1.0F;
  if (domain.causal_only) p.causal = true;
  if (!domain.return_lse) p.return_lse = false;
  if (!domain.page_padding) c.memory.page_padding_bytes = 0;
  // A wider cache row may take a pool beyond the 16 GiB that a case may address.
  const int stride = p.page_size * static_cast<int>(cache_row_bytes(p)) + c.memory.page_padding_bytes;
  if (c.memory.placement == Placement::high && stride > 200'000) c.memory.placement = Placement::beyond_2gib;
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

  p.num_splits = wrap(p.num_splits, domain.num_splits_min, domain.num_splits_max);
  if (domain.keys_for_every_row)
    for (Request& r : p.requests) {
      r.q_len = std::max(r.q_len, 1);
      r.kv_len = std::max(r.kv_len, r.q_len);
    }
  if (domain.tokens_per_split > 0) {
    for (Request& r : p.requests) {
      // The first position sees kv_len - q_len + 1 keys.
      const int chunks = (r.kv_len - r.q_len + domain.tokens_per_split) / domain.tokens_per_split;
      p.num_splits = std::clamp(chunks, domain.num_splits_min, p.num_splits);
    }
    for (Request& r : p.requests)
      r.kv_len = std::max(r.kv_len, (p.num_splits - 1) * domain.tokens_per_split + r.q_len);
  }
  if (p.num_splits == 1 && !domain.lse_with_one_split) p.return_lse = false;
  if (domain.unit_scales) p.q_scale = p.kv_scale = 1.0F;
  if (domain.finite_unused && (c.memory.unused == Poison::nan || c.memory.unused == Poison::inf))
    c.memory.unused = Poison::stale;
  return c;
}

}  // namespace attest::cases
