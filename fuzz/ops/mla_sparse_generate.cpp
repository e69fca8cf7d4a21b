// SPDX-License-Identifier: MIT
//
// The axes of mla_sparse. Beside those of attention in general (mla_decode_generate.cpp): lists with holes at
// the front, which tests with padding at the end never have (vllm-project/vllm#48364), ids that no cache has
// (tile-ai/tilelang#1939), lists shorter than their row with plausible ids behind (flashinfer-ai/
// flashinfer#5015), lengths around topk and below it (vllm-project/vllm#47327), 8 heads and other counts that
// are no multiple of 16 (ROCm/aiter#2821, vllm-project/vllm#36855), padded pages (vllm-project/vllm#47493).
#include <algorithm>
#include <vector>

#include "fuzz/ops/draw.h"
#include "fuzz/ops/draw_attention.h"
#include "fuzz/ops/draw_memory.h"
#include "fuzz/ops/op_generator.h"
#include "fuzz/ops/shrink_attention.h"
#include "fuzz/ops/simpler.h"

namespace attest::fuzz {
namespace {

using namespace cases;

/// What a query token costs beside its keys, per split: a workgroup that starts and ends.
constexpr std::int64_t keys_per_workgroup = 8;

/// A query token gathers keys of its own, and so does its reference: that many for the price of one.
constexpr std::int64_t gather_cost = 2;

std::int64_t token_cost(const MlaSparse& p, int kv_len) {
  return head_tiles(p.heads) * (std::min(kv_len, p.topk) + keys_per_workgroup * p.num_splits) * gather_cost;
}

int draw_kv_len(const MlaSparse& p, int q_len, int cap) {
  const int limit = std::min(cap, 300);
  // Around topk: the length at which a list stops holding everything.
  if (chance(1, 3) && p.topk + 40 <= cap) return p.topk + any_of<int>({-1, 0, 1, q_len - 1, q_len, 17, 37});
  if (chance(1, 8)) return between(0, std::min(limit, q_len));
  return between(0, limit);
}

Case draw_case() {
  MlaSparse p;
  const std::int64_t budget = draw_budget();
  const bool any_page_size = coin(), any_splits = chance(1, 3), any_lists = chance(3, 4);
  p.heads = chance(1, 8) ? 8 : draw_heads();
  p.page_size = draw_page_size(any_page_size);
  p.topk = any_up_to({1, 2, 16, 31, 32, 33, 40, 64, 65, 128, 128, 256, 512, 1024, 2048}, budget / 2);
  if (any_splits)
    p.num_splits = any_up_to({1, 2, 3, 4, 7, 8, 16, 31, 32}, budget / (32 * head_tiles(p.heads)) + 1);

  int batch = chance(1, 12) ? between(5, 12) : between(1, 4);
  batch = static_cast<int>(std::min<std::int64_t>(batch, budget / token_cost(p, 3) + 1));
  // Every request opens at least a page, which is poison where it is not rows.
  if (batch > 4 && p.page_size > 64) p.page_size = any_of<int>({2, 3, 32});
  const bool prefill = chance(1, 3), verify = coin();
  std::int64_t left = budget;
  for (int i = 0; i < batch; ++i) {
    const std::int64_t share = left / (batch - i);
    const int affordable = static_cast<int>(std::max<std::int64_t>(share / token_cost(p, 16), 1));
    Request r;
    if (prefill && coin())
      r.q_len = between(1, std::min(affordable, 96));
    else if (verify)
      r.q_len = between(1, std::min(affordable, 8));
    const std::int64_t per_token = share / std::max(r.q_len, 1) / (head_tiles(p.heads) * gather_cost);
    const std::int64_t keys = std::max<std::int64_t>(per_token - keys_per_workgroup * p.num_splits, 3);
    // Beyond topk a context costs its pages only.
    const int cap = static_cast<int>(keys >= p.topk ? std::max<std::int64_t>(300, p.topk + 40) : keys);
    r.kv_len = std::max(draw_kv_len(p, r.q_len, cap), 0);
    left = std::max<std::int64_t>(left - r.q_len * token_cost(p, r.kv_len), 0);
    p.requests.push_back(r);
  }
  if (chance(1, 4)) {
    for (Request& r : p.requests) {
      if (!chance(1, 3)) continue;
      if (coin()) r.q_len = 0;
      if (coin()) r.kv_len = 0;
    }
  }
  const auto sees = [](const Request& r) { return r.q_len > 0 && r.kv_len > 0; };
  if (std::none_of(p.requests.begin(), p.requests.end(), sees)) {
    Request& r = p.requests.front();
    r = {.q_len = std::max(r.q_len, 1), .kv_len = std::max(r.kv_len, r.q_len + 1)};
  }

  if (any_lists) {
    p.choice = any_of<ListChoice>({ListChoice::newest, ListChoice::shuffled, ListChoice::random,
                                   ListChoice::random, ListChoice::repeated});
    if (coin()) p.holes = static_cast<ListHoles>(between(0, static_cast<int>(ListHoles::row)));
    if (coin()) p.length = ListLength::ragged;
    if (coin()) p.hole_value = HoleValue::any;
  }
  p.return_lse = !chance(1, 8);

  Case c;
  c.data.fill = draw_fill();
  draw_formats(p, c.data.fill);
  if (p.kv_format != Format::bf16 && p.q_format == Format::bf16 && coin()) {
    p.kv_layout = KvLayout::ds;
    p.kv_scale = 1.0F;
  }
  c.memory = draw_memory(cache_shape(p));
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  c.problem = std::move(p);
  return c;
}

std::vector<Case> shrink(const Case& c) {
  std::vector<Case> candidates;
  const MlaSparse& problem = std::get<MlaSparse>(c.problem);
  AttentionShrinker<MlaSparse> shrinker(c, candidates);
  shrinker.requests();
  const int heads = problem.heads, page = problem.page_size, topk = problem.topk, splits = problem.num_splits;
  shrinker.dimension(&MlaSparse::heads, {1, 2, 3, 4, 8, 16, 17, 32, heads / 2, heads / 16 * 16, heads - 1});
  shrinker.dimension(&MlaSparse::page_size, {1, 2, 3, 16, page / 2, page / 16 * 16, page - 1});
  shrinker.dimension(&MlaSparse::topk, {1, 2, 3, 4, 8, 16, 17, 32, 33, topk / 2, topk / 16 * 16, topk - 1});
  shrinker.dimension(&MlaSparse::num_splits, {1, 2, 3, splits / 2, splits - 1});
  shrinker.with([](MlaSparse& p) {
    p.choice = ListChoice::newest;
    p.length = ListLength::full;
    p.holes = ListHoles::none;
    p.hole_value = HoleValue::minus_one;
  });
  shrinker.with([](MlaSparse& p) { p.choice = ListChoice::newest; });
  shrinker.with([](MlaSparse& p) { p.length = ListLength::full; });
  shrinker.with([](MlaSparse& p) { p.hole_value = HoleValue::minus_one; });
  for (int holes = 0; holes < static_cast<int>(problem.holes); ++holes)
    shrinker.with([holes](MlaSparse& p) { p.holes = static_cast<ListHoles>(holes); });
  shrinker.with([](MlaSparse& p) {
    p.kv_layout = KvLayout::rows;
    p.q_format = p.kv_format = Format::bf16;
    p.q_scale = p.kv_scale = 1.0F;
  });
  shrinker.with([](MlaSparse& p) { p.kv_layout = KvLayout::rows; });
  shrinker.formats();
  shrinker.with([](MlaSparse& p) { p.return_lse = true; });
  return candidates;
}

std::int64_t complexity(const Case& c) {
  const MlaSparse& p = std::get<MlaSparse>(c.problem);
  std::int64_t sum = p.heads + p.page_size + p.topk + p.num_splits + (p.return_lse ? 0 : 1) +
                     (p.choice == ListChoice::newest ? 0 : 1) + static_cast<std::int64_t>(p.length) +
                     static_cast<std::int64_t>(p.holes) + static_cast<std::int64_t>(p.hole_value) +
                     static_cast<std::int64_t>(p.kv_layout) + formats_complexity(p) +
                     request_complexity(p.requests);
  return sum;
}

std::int64_t work_of(const Case& c) {
  const MlaSparse& p = std::get<MlaSparse>(c.problem);
  std::int64_t work = 0;
  for (const Request& r : p.requests) work += r.q_len * token_cost(p, r.kv_len);
  return work;
}

}  // namespace

const OpGenerator mla_sparse_generator{draw_case, shrink, complexity, work_of};

}  // namespace attest::fuzz
