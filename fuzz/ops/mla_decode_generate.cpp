// SPDX-License-Identifier: MIT
//
// The axes of mla_decode and how likely each of their values is. Where the values come from: public reports
// of wrong kernels. Heads other than 16 and 128 took a padded or folded path (ROCm/aiter#2636,
// vllm-project/vllm#46952); query lengths 2, 3, 5..8 another kernel than 1 and 4 (ROCm/aiter#2720, #5679);
// faults sat in bands of 4 to 15 context lengths (ROCm/aiter#2106), on page sizes of 16 but not 32
// (ROCm/composable_kernel#1649), on one split with LSE (ROCm/aiter#3606), on byte offsets past 2^31
// (ROCm/aiter#5765), on scales that were 1 in every test (sgl-project/sglang#18396).
//
// Three rules of those reports shape the distribution:
//   * Dimensions that agree by accident hide exchanged ones: they are drawn pairwise different, mostly.
//   * Every feature at once hides the simple trigger behind another failure: each case switches off a random
//     half of the features (swarm testing: Groce et al., ISSTA 2012).
//   * Small cases find nearly everything and let a campaign run thousands: `work` is bounded, by a budget
//   drawn first.

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "cases/paging.h"
#include "fuzz/ops/draw.h"
#include "fuzz/ops/draw_attention.h"
#include "fuzz/ops/draw_memory.h"
#include "fuzz/ops/mla_decode_shrink.h"
#include "fuzz/ops/op_generator.h"

namespace attest::fuzz {
namespace {

using namespace cases;

/// What a request with a query costs beside its keys, per split: a workgroup that starts and ends.
constexpr std::int64_t keys_per_workgroup = 8;

/// @param cap most tokens the budget allows
int draw_kv_len(int q_len, int page_size, std::int64_t cap, bool long_context) {
  if (long_context) {
    const int around = any_up_to({1024, 2048, 4096}, cap - 1);
    if (around < cap) return around + between(-1, 1);
  }
  const int limit = static_cast<int>(std::min<std::int64_t>(cap, 300));
  if (chance(1, 2)) return between(0, limit);
  if (chance(1, 8)) return between(0, std::min(limit, q_len));
  const int tile = chance(1, 3) ? page_size : any_up_to({16, 32, 64, 128}, limit);
  const int tiles = between(tile <= limit ? 1 : 0, std::max(limit / tile, 0));
  return std::clamp(tiles * tile + between(-1, std::max(q_len, 1)), 0, limit);
}

/// One dimension may take the whole budget; no case can have them all large.
enum class Focus { balanced, many_requests, long_context };

void draw_requests(MlaDecode& p, std::int64_t budget, bool distinct, Focus focus) {
  const bool long_context = focus == Focus::long_context;
  const bool longer_queries = !long_context && (focus == Focus::balanced ? chance(2, 3) : chance(1, 4));
  const bool ragged = coin();
  const bool idle_members = chance(1, 4);  // no query, no context, or both
  const bool uneven = coin();              // one request may take what is left

  const std::int64_t tiles = head_tiles(p.heads);
  const std::int64_t overhead = keys_per_workgroup * p.num_splits;
  const std::vector<int> q_lens = {1, 1, 2, 2, 3,  3,  4,  5,  5,  6,  6,  7,
                                   7, 8, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16};
  const int longest = longer_queries ? any_up_to(q_lens, budget / (tiles * (overhead + 16))) : 1;
  // Every request opens at least a page, which is poison where it is not rows: a few megabytes at most.
  const std::int64_t most_requests = std::min(budget / (tiles * longest * (overhead + 8)),
                                              most_pool_bytes / (std::int64_t{p.page_size} * 1152));
  int batch = focus == Focus::many_requests && most_requests >= 6
                  ? any_up_to({6, 9, 17, 33, 64, 65, 128, 256}, most_requests)
                  : static_cast<int>(
                        std::clamp<std::int64_t>(between(1, long_context ? 2 : 5), 1, most_requests + 1));
  if (distinct && batch > 1 && (batch == p.heads || batch == p.page_size)) --batch;

  std::set<int> lengths;
  std::int64_t left = budget;
  for (int i = 0; i < batch; ++i) {
    Request r{.q_len = ragged && chance(1, 2) ? between(1, longest) : longest, .kv_len = 0};
    if (i == 0) r.q_len = longest;
    const std::int64_t cost = tiles * r.q_len;
    const std::int64_t fair = left / (batch - i);
    const std::int64_t share = uneven && chance(1, 3) ? std::max(fair, left - fair) : fair;
    const std::int64_t cap = std::max<std::int64_t>(share / cost - overhead, 3);
    r.kv_len = draw_kv_len(r.q_len, p.page_size, cap, long_context);
    for (int tries = 0; tries < 3 && r.kv_len + 1 <= cap && lengths.count(r.kv_len) != 0; ++tries) ++r.kv_len;
    lengths.insert(r.kv_len);
    left = std::max<std::int64_t>(left - cost * (r.kv_len + overhead), 0);
    p.requests.push_back(r);
  }
  if (idle_members) {
    // First, middle, last: each has had its own faults.
    for (Request& r : p.requests) {
      if (!chance(1, 3)) continue;
      if (coin()) r.q_len = 0;
      if (coin()) r.kv_len = 0;
    }
  }
  // A batch in which nobody sees a key proves nothing.
  const auto sees = [](const Request& r) { return r.q_len > 0 && r.kv_len > 0; };
  if (std::none_of(p.requests.begin(), p.requests.end(), sees)) {
    Request& r = p.requests[static_cast<std::size_t>(between(0, batch - 1))];
    r = {.q_len = std::max(r.q_len, 1), .kv_len = std::max(r.kv_len, 1)};
  }
}

Case draw_case() {
  std::vector<Focus> focuses(24, Focus::balanced);
  focuses[0] = Focus::long_context;
  focuses[1] = focuses[2] = Focus::many_requests;
  MlaDecode p;
  const Focus focus = any_of<Focus>(focuses);
  const std::int64_t budget = focus == Focus::balanced        ? draw_budget()
                              : focus == Focus::many_requests ? any_of<int>({300, 600, 1200, 4600})
                                                              : any_of<int>({1300, 2400, 4600});
  const bool distinct = chance(7, 8);
  const bool any_page_size = coin();
  const bool any_splits = chance(2, 3);
  p.heads = focus == Focus::long_context || (focus == Focus::many_requests && coin())
                ? any_of<int>({1, 4, 8, 12, 16})
                : draw_heads();
  p.page_size = draw_page_size(any_page_size);
  if (distinct && p.page_size == p.heads)
    p.page_size = draw_page_size(any_page_size) == p.heads ? 3 : p.page_size + 1;
  if (focus == Focus::many_requests && p.page_size > 64) p.page_size = any_of<int>({2, 3, 32});
  if (any_splits)
    p.num_splits =
        any_up_to({1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32}, budget / (32 * head_tiles(p.heads)) + 1);
  if (distinct && p.num_splits > 1 && (p.num_splits == p.heads || p.num_splits == p.page_size))
    --p.num_splits;
  draw_requests(p, budget, distinct, focus);
  p.causal = !chance(1, 8);
  p.return_lse = !chance(1, 8);

  Case c;
  c.data.fill = draw_fill();
  draw_formats(p, c.data.fill);
  c.memory = draw_memory(cache_shape(p));
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  c.problem = std::move(p);
  return c;
}

std::int64_t work_of(const Case& c) {
  const MlaDecode& p = std::get<MlaDecode>(c.problem);
  std::int64_t rows = 0;
  for (const Request& r : p.requests)
    rows += std::int64_t{r.q_len} * (r.kv_len + keys_per_workgroup * p.num_splits);
  return head_tiles(p.heads) * rows;
}

}  // namespace

const OpGenerator mla_decode_generator{draw_case, shrink_mla_decode, mla_decode_complexity, work_of};

}  // namespace attest::fuzz
