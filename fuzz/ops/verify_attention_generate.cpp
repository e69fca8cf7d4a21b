// SPDX-License-Identifier: MIT
//
// The axes of verify_attention. Trees of every shape that engines draw (chain, star, comb, binary, random),
// because a window by node order is right for a chain (sgl-project/sglang#39287); the numbers of nodes that
// had kernels of their own, 1, 2, 4, 8, and those between (ROCm/aiter#2720, #5679, vllm-project/vllm#55609);
// leading rows that bring 2 and 3 queries to 4, folded heads with contexts shorter than the fold
// (ROCm/aiter#2636), unequal requests, requests without nodes.
#include <algorithm>
#include <cmath>

#include "fuzz/ops/draw.h"
#include "fuzz/ops/op_generator.h"
#include "fuzz/ops/simpler.h"

namespace attest::fuzz {
namespace {

using namespace cases;

std::vector<int> draw_tree(int nodes) {
  enum { chain, star, comb, binary, random };
  const int shape = any_of<int>({chain, chain, star, comb, binary, random, random});
  std::vector<int> parents;
  for (int i = 0; i < nodes; ++i) {
    if (i == 0)
      parents.push_back(-1);
    else if (shape == chain)
      parents.push_back(i - 1);
    else if (shape == star)
      parents.push_back(0);
    else if (shape == comb)  // a spine of the even nodes, a leaf at each
      parents.push_back(i % 2 == 1 ? i - 1 : i - 2);
    else if (shape == binary)
      parents.push_back((i - 1) / 2);
    else
      parents.push_back(between(0, i - 1));
  }
  return parents;
}

int draw_nodes(bool large) {
  if (large) return any_of<int>({17, 24, 31, 32, 33, 48, 63, 64});
  return any_of<int>({1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 10, 11, 12, 13, 14, 15, 16});
}

/// A row and key take a wave some 80 instructions; 30 of them are a unit.
constexpr std::int64_t row_keys_per_unit = 30;

std::int64_t work(const Case& c) {
  const VerifyAttention& p = std::get<VerifyAttention>(c.problem);
  std::int64_t row_keys = 0;
  for (const TreeRequest& r : p.requests)
    row_keys += std::int64_t{p.heads} * r.nodes() * (r.context_len + r.nodes() + 8);
  return row_keys / row_keys_per_unit + 1;
}

Case draw_case() {
  VerifyAttention p;
  p.heads = any_of<int>({1, 2, 3, 4, 4, 8, 8, 12, 16, 16, 32, 64, 128});
  p.page_size =
      coin() ? any_of<int>({1, 1, 16, 64}) : any_of<int>({1, 2, 3, 7, 16, 32, 48, 64, 128, 256, 1024});
  const std::int64_t budget = any_of<int>({60, 100, 150, 200, 300, 400, 800}) * row_keys_per_unit;
  const bool large = chance(1, 10);
  const bool uniform = coin();
  int nodes = draw_nodes(large);
  while (nodes > 1 && std::int64_t{p.heads} * nodes * (nodes + 16) > budget) {
    if (p.heads > 4)
      p.heads /= 2;
    else
      --nodes;
  }
  const std::int64_t per_request = std::int64_t{p.heads} * nodes * (nodes + 16);
  const int batch = static_cast<int>(std::clamp<std::int64_t>(between(1, 4), 1, budget / per_request + 1));
  for (int i = 0; i < batch; ++i) {
    TreeRequest r;
    const int here = uniform || i == 0 ? nodes : between(chance(1, 4) ? 0 : 1, nodes);
    r.parents = draw_tree(here);
    const std::int64_t cap =
        std::clamp<std::int64_t>(budget / batch / (std::int64_t{p.heads} * nodes) - nodes, 3, 300);
    r.context_len = chance(1, 4)   ? between(0, 3)
                    : chance(1, 3) ? std::clamp(p.page_size * between(0, 3) - between(-1, here + 1), 0,
                                                static_cast<int>(cap))
                                   : between(0, static_cast<int>(cap));
    p.requests.push_back(std::move(r));
  }
  if (chance(1, 3)) p.lead = any_of<int>({1, 1, 2, 3, 4 - std::min(nodes, 4), 7});
  if (chance(1, 3))
    for (const int fold : {any_of<int>({2, 4, 8, 16}), 2})
      if (p.fold == 1 && p.heads % fold == 0) p.fold = fold;
  p.return_lse = !chance(1, 8);

  Case c;
  c.data.fill = coin() ? Fill::normal : static_cast<Fill>(between(0, static_cast<int>(Fill::exact)));
  if (chance(1, 3)) {
    p.kv_format = Format::fp8_e4m3fnuz;
    const bool power = c.data.fill == Fill::exact || c.data.fill == Fill::constant_scores;
    if (coin())
      p.kv_scale =
          power ? any_of<float>({0.0625F, 0.5F, 2.0F, 64.0F}) : any_of<float>({0.06F, 0.37F, 0.5F, 3.1F});
  }
  if (chance(1, 4)) p.sm_scale = any_of<float>({0.11472F, 0.041666668F, 0.0625F});
  MemoryRecipe& m = c.memory;
  if (coin())
    m.placement = any_of<Placement>({Placement::ordered, Placement::shuffled, Placement::reversed,
                                     Placement::beyond_2gib, Placement::beyond_4gib});
  if (chance(1, 4)) m.page_padding_bytes = any_of<int>({16, 48, 128, 1024});
  if (chance(1, 3)) {
    const std::vector<Poison> poisons = {Poison::nan, Poison::inf, Poison::large, Poison::stale,
                                         Poison::zero};
    m.unused = any_of(poisons);
    m.output = any_of(poisons);
  }
  if (chance(1, 8)) m.guard_bytes = any_of<int>({256, 512, 65536});
  m.prefix_sharing = batch > 1 && chance(1, 5);
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  c.problem = std::move(p);
  return c;
}

bool any_node(const VerifyAttention& p) {
  return std::any_of(p.requests.begin(), p.requests.end(),
                     [](const TreeRequest& r) { return r.nodes() > 0; });
}

/// Without one node that has no children.
std::vector<int> without_leaf(const std::vector<int>& parents, int leaf) {
  std::vector<int> kept;
  for (int i = 0; i < static_cast<int>(parents.size()); ++i) {
    const int parent = parents[static_cast<std::size_t>(i)];
    if (i != leaf) kept.push_back(parent > leaf ? parent - 1 : parent);
  }
  return kept;
}

std::vector<Case> shrink(const Case& c) {
  std::vector<Case> simpler;
  const VerifyAttention& now = std::get<VerifyAttention>(c.problem);
  const auto with = [&](const auto& change) {
    Case s = c;
    auto& p = std::get<VerifyAttention>(s.problem);
    change(p);
    if (any_node(p) && s != c) simpler.push_back(std::move(s));
  };
  const std::size_t batch = now.requests.size();
  for (std::size_t i = 0; batch > 1 && i < batch; ++i)
    with([&](VerifyAttention& p) { p.requests = {now.requests[i]}; });
  for (std::size_t i = 0; batch > 1 && i < batch; ++i)
    with([&](VerifyAttention& p) { p.requests.erase(p.requests.begin() + static_cast<std::ptrdiff_t>(i)); });
  for (std::size_t i = 0; i < batch; ++i) {
    const TreeRequest& r = now.requests[i];
    const int context = r.context_len;
    for (const int n :
         smaller({0, 1, context / 2, context / now.page_size * now.page_size, context - 1}, 0, context))
      with([&](VerifyAttention& p) { p.requests[i].context_len = n; });
    const int nodes = r.nodes();
    for (const int n : smaller({0, 1, 2, 3, nodes / 2, nodes - 1}, 0, nodes))
      with([&](VerifyAttention& p) { p.requests[i].parents.resize(static_cast<std::size_t>(n)); });
    for (int leaf = 1; leaf < nodes; ++leaf)
      if (std::find(r.parents.begin(), r.parents.end(), leaf) == r.parents.end())
        with([&](VerifyAttention& p) { p.requests[i].parents = without_leaf(r.parents, leaf); });
    for (int node = 2; node < nodes; ++node)
      for (const int parent : {node - 1, r.parents[static_cast<std::size_t>(node)] + 1})
        if (parent > r.parents[static_cast<std::size_t>(node)] && parent < node)
          with([&](VerifyAttention& p) { p.requests[i].parents[static_cast<std::size_t>(node)] = parent; });
  }
  with([](VerifyAttention& p) { p.fold = 1; });
  if (now.fold > 2 && now.heads % 2 == 0) with([](VerifyAttention& p) { p.fold = 2; });
  for (const int n : smaller({0, 1, 2, now.lead - 1}, 0, now.lead))
    with([n](VerifyAttention& p) { p.lead = n; });
  for (const int n :
       smaller({1, 2, 3, 4, now.fold, 2 * now.fold, now.heads / 2, now.heads - 1}, 1, now.heads))
    if (n % now.fold == 0) with([n](VerifyAttention& p) { p.heads = n; });
  const int page = now.page_size;
  for (const int n : smaller({1, 2, 3, 16, page / 2, page - 1}, 1, page))
    with([n](VerifyAttention& p) { p.page_size = n; });
  with([](VerifyAttention& p) {
    p.kv_format = Format::bf16;
    p.kv_scale = 1.0F;
  });
  with([](VerifyAttention& p) { p.kv_scale = 1.0F; });
  if (scale_rank(now.kv_scale) == 2)
    with([](VerifyAttention& p) { p.kv_scale = power_of_two_near(p.kv_scale); });
  with([](VerifyAttention& p) { p.sm_scale = VerifyAttention{}.sm_scale; });
  with([](VerifyAttention& p) { p.return_lse = true; });
  return simpler;
}

std::int64_t complexity(const Case& c) {
  const VerifyAttention& p = std::get<VerifyAttention>(c.problem);
  std::int64_t sum = p.heads + p.page_size + (p.fold - 1) + p.lead + (p.return_lse ? 0 : 1) +
                     (p.kv_format == Format::bf16 ? 0 : 1) + scale_rank(p.kv_scale) +
                     (p.sm_scale == VerifyAttention{}.sm_scale ? 0 : 1);
  for (const TreeRequest& r : p.requests) {
    sum += 1 + r.context_len;
    // A node counts more than its distance to a chain can be, so that taking one away is simpler.
    for (int node = 0; node < r.nodes(); ++node)
      sum += 64 + (node - 1 - r.parents[static_cast<std::size_t>(node)]);
  }
  return sum;
}

}  // namespace

const OpGenerator verify_attention_generator{draw_case, shrink, complexity, work};

}  // namespace attest::fuzz
