// SPDX-License-Identifier: MIT
//
// The axes of dense_switch: prefill only, mixed and decode only; the longest prefill below, at and above
// topk; bf16 and fp8 (the matrix of vllm-project/vllm#49263, with the boundary itself added); scales that are
// handed over although the cache is bf16; and a batch that ran before on the same buffers and looked the same
// (vllm-project/vllm#47042).
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

Case draw_case() {
  DenseSwitch p;
  p.heads = any_of<int>({1, 2, 3, 4, 4, 8, 8, 12, 16, 20});
  p.page_size = any_of<int>({1, 2, 3, 16, 16, 64, 64});
  p.topk = any_of<int>({1, 2, 8, 16, 17, 32, 33, 64});
  const int decodes = chance(1, 3) ? 0 : between(1, 3);
  const int prefills = decodes == 0 || !chance(1, 5) ? between(1, 2) : 0;
  for (int i = 0; i < decodes; ++i)
    p.requests.push_back({1, chance(1, 2) ? between(1, 80) : std::max(1, p.topk + between(-2, 2))});
  // The longest prefill decides; the others stay below it.
  const int longest = std::max(2, p.topk + any_of<int>({-1, 0, 0, 0, 1, 1, 7, -p.topk / 2}));
  const int rows = std::max(2, 40 / p.heads);
  for (int i = 0; i < prefills; ++i) {
    Request r;
    r.kv_len = i == 0 ? longest : between(2, longest);
    r.q_len = chance(1, 3) ? r.kv_len : between(2, r.kv_len);
    if (r.q_len > rows) r.q_len = between(2, rows);
    p.requests.push_back(r);
  }
  if (prefills == 2 && coin()) std::swap(p.requests[p.requests.size() - 2], p.requests.back());
  if (chance(2, 3)) {
    for (const Request& r : p.requests)
      p.previous_kv_lens.push_back(std::max(r.q_len, r.kv_len + any_of<int>({-3, -1, 0, 0, 1, 2, 5})));
    // The same longest list, so that the batches look alike.
    if (coin()) {
      std::size_t at = 0;
      for (std::size_t i = 0; i < p.requests.size(); ++i)
        if (p.requests[i].kv_len > p.requests[at].kv_len) at = i;
      for (int& before : p.previous_kv_lens) before = std::min(before, p.requests[at].kv_len);
      p.previous_kv_lens[at] = p.requests[at].kv_len;
    }
    for (std::size_t i = 0; i < p.requests.size(); ++i)
      p.previous_kv_lens[i] = std::max(p.previous_kv_lens[i], p.requests[i].q_len);
  }
  if (chance(2, 5)) p.kv_format = Format::fp8_e4m3fnuz;
  if (coin()) {
    p.sm_scale = any_of<float>({0.07216878F, 0.041666668F, 0.0625F});
    p.q_scale = any_of<float>({1.0F, 2.0F, 0.5F});
    p.kv_scale = any_of<float>({1.0F, 3.0F, 0.37F, 2.0F});
  }

  Case c;
  c.data.fill = any_of<Fill>({Fill::normal, Fill::normal, Fill::mean_shifted, Fill::wide_scores});
  c.memory = draw_memory(cache_shape(p));
  c.memory.prefix_sharing = false;
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  c.problem = std::move(p);
  return c;
}

std::vector<Case> shrink(const Case& c) {
  std::vector<Case> candidates;
  const DenseSwitch& problem = std::get<DenseSwitch>(c.problem);
  AttentionShrinker<DenseSwitch> shrinker(c, candidates);
  // Requests and the batch before go together.
  for (std::size_t i = 0; problem.requests.size() > 1 && i < problem.requests.size(); ++i)
    shrinker.with([i](DenseSwitch& p) {
      p.requests.erase(p.requests.begin() + static_cast<std::ptrdiff_t>(i));
      if (!p.previous_kv_lens.empty())
        p.previous_kv_lens.erase(p.previous_kv_lens.begin() + static_cast<std::ptrdiff_t>(i));
    });
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    for (const int kv_len : smaller({1, 2, 3, r.q_len, r.kv_len / 2, r.kv_len - 1}, r.q_len, r.kv_len))
      shrinker.with([i, kv_len](DenseSwitch& p) { p.requests[i].kv_len = kv_len; });
    for (const int q_len : smaller({1, 2, 3, r.q_len / 2, r.q_len - 1}, 1, r.q_len)) {
      shrinker.with([i, q_len](DenseSwitch& p) { p.requests[i].q_len = q_len; });
      shrinker.with([i, q_len](DenseSwitch& p) {
        p.requests[i].kv_len -= p.requests[i].q_len - q_len;
        p.requests[i].q_len = q_len;
      });
    }
    // Length and topk together: what fits exactly goes on to fit.
    if (r.kv_len > r.q_len && problem.topk > 1)
      shrinker.with([i](DenseSwitch& p) {
        --p.requests[i].kv_len;
        --p.topk;
      });
  }
  shrinker.dimension(&DenseSwitch::heads, {1, 2, 3, problem.heads / 2, problem.heads - 1});
  shrinker.dimension(&DenseSwitch::page_size, {1, 2, 3, problem.page_size / 2, problem.page_size - 1});
  shrinker.dimension(&DenseSwitch::topk, {1, 2, 3, problem.topk / 2, problem.topk - 1});
  shrinker.with([](DenseSwitch& p) { p.previous_kv_lens.clear(); });
  for (std::size_t i = 0; i < problem.previous_kv_lens.size(); ++i) {
    const int now = problem.requests[i].kv_len, before = problem.previous_kv_lens[i];
    for (const int v : smaller({problem.requests[i].q_len, before / 2, now, before - 1}, 1, before))
      shrinker.with([i, v](DenseSwitch& p) { p.previous_kv_lens[i] = v; });
  }
  shrinker.with([](DenseSwitch& p) { p.kv_format = Format::bf16; });
  shrinker.with([](DenseSwitch& p) { p.q_scale = p.kv_scale = 1.0F; });
  shrinker.with([](DenseSwitch& p) { p.q_scale = 1.0F; });
  shrinker.with([](DenseSwitch& p) { p.kv_scale = 1.0F; });
  shrinker.with([](DenseSwitch& p) { p.sm_scale = DenseSwitch{}.sm_scale; });
  return candidates;
}

std::int64_t complexity(const Case& c) {
  const DenseSwitch& p = std::get<DenseSwitch>(c.problem);
  std::int64_t sum = p.heads + p.page_size + p.topk + (p.kv_format == Format::bf16 ? 0 : 1) +
                     scale_rank(p.q_scale) + scale_rank(p.kv_scale) +
                     (p.sm_scale == DenseSwitch{}.sm_scale ? 0 : 1) + request_complexity(p.requests);
  for (const int before : p.previous_kv_lens) sum += 1 + before;
  return sum;
}

/// A dense row of one key costs about an eighth of 16 sparse rows.
std::int64_t work_of(const Case& c) {
  const DenseSwitch& p = std::get<DenseSwitch>(c.problem);
  std::int64_t work = 20;
  for (const Request& r : p.requests)
    work += std::int64_t{r.q_len} * (std::min(r.kv_len, p.topk) + 8) * (head_tiles(p.heads) + p.heads / 8);
  return work;
}

}  // namespace

const OpGenerator dense_switch_generator{draw_case, shrink, complexity, work_of};

}  // namespace attest::fuzz
