// SPDX-License-Identifier: MIT
//
// Sequences of batches for one metadata builder. What they are made of, and the reports behind it:
//
//   block sizes   1, powers of two, and those of hybrid models (48, 528, 784); kernel blocks that divide
//                 them (vllm-project/vllm#39616, #27224)
//   lengths       around multiples of the block: the last block is the one that goes wrong (#15893)
//   verify        one q_len for the batch, 1..16; ragged in some eager batches (#39616)
//   padding       a graph for more requests than are alive: none, one, many; and batches that just miss the
//                 rule for dummies: a ragged q_len, a gap, a remainder (#45227)
//   sequences     grow, shrink, the same again; eager batches prepared before the first is filled
//                 (vllm-project/vllm#46993, flashinfer-ai/flashinfer#5015)
#include <algorithm>
#include <vector>

#include "fuzz/ops/draw.h"
#include "fuzz/ops/op_generator.h"
#include "fuzz/ops/simpler.h"

namespace attest::fuzz {
namespace {

using namespace cases;

int draw_kernel_block(int manager_block) {
  if (chance(1, 3)) return manager_block;
  std::vector<int> divisors;
  for (int d = 1; d <= manager_block; ++d)
    if (manager_block % d == 0) divisors.push_back(d);
  return any_of(divisors);
}

int draw_length(int q_len, int block, int longest) {
  int length = 0;
  switch (between(0, 3)) {
    case 0:
      length = between(0, longest);
      break;
    case 1:
      length = q_len;
      break;
    default:
      length = between(0, std::max(longest / block, 1)) * block + between(-1, 1);
      break;
  }
  return std::clamp(length, q_len, std::max(longest, q_len));
}

BlockTableStep draw_step(const BlockTableExpand& p, int longest, int most_requests, int q_len) {
  BlockTableStep step;
  const int live = between(1, most_requests);
  const bool ragged = chance(1, 5);
  for (int i = 0; i < live; ++i) {
    const int queries = ragged ? between(0, q_len) : q_len;
    step.requests.push_back({queries, draw_length(queries, p.manager_block, longest)});
  }
  if (!p.graph || chance(1, 6)) return step;
  const int padded = any_of<int>({0, 1, 1, 2, 3, 7});
  for (int i = 0; i < padded; ++i) step.requests.push_back({0, 0});
  if (padded > 0 && live > 1 && chance(1, 10)) std::swap(step.requests[0], step.requests.back());
  // A query's worth of room for each, exactly; or something that the rule must not take for it.
  step.num_tokens = static_cast<int>(step.requests.size()) * q_len + (chance(1, 10) ? between(1, 3) : 0);
  int queries = 0;
  for (Request& r : step.requests) {
    if (r.q_len == 0) r.kv_len = 0;
    queries += r.q_len;
  }
  step.num_tokens = std::max(step.num_tokens, queries);
  return step;
}

void fit_graph(BlockTableExpand& p, int slack_requests, int slack_indices) {
  p.max_requests = p.index_capacity = 1;
  for (const BlockTableStep& s : p.steps) {
    p.max_requests = std::max(p.max_requests, static_cast<int>(s.requests.size()));
    p.index_capacity = std::max(p.index_capacity, static_cast<int>(most_tokens(s)));
  }
  p.max_requests += slack_requests;
  p.index_capacity += slack_indices;
}

Case draw_case() {
  BlockTableExpand p;
  p.manager_block = coin() ? any_of<int>({1, 2, 16, 64})
                           : any_of<int>({1, 3, 4, 8, 16, 32, 48, 64, 128, 256, 528, 784, 1024});
  p.kernel_block = draw_kernel_block(p.manager_block);
  p.graph = coin();
  const int steps = any_of<int>({1, 1, 2, 2, 2, 3, 4});
  p.interleaved = !p.graph && steps > 1 && chance(2, 3);
  p.spare_columns = any_of<int>({0, 0, 1, 3, 17});
  const bool large = chance(1, 12);
  const int most_requests = large ? any_of<int>({33, 65, 257, 300}) : any_of<int>({1, 3, 5, 9});
  const int longest = large ? 64 : any_of<int>({8, 40, 100, 300, 1200});
  const std::vector<int> q_lens = {1, 1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 9, 12, 16};
  const bool same_q_len = coin();
  const int q_len = any_of(q_lens);
  for (int i = 0; i < steps; ++i)
    p.steps.push_back(draw_step(p, longest, most_requests, same_q_len ? q_len : any_of(q_lens)));
  if (steps > 1 && chance(1, 6)) p.steps.back() = p.steps.front();
  const bool any_token = std::any_of(p.steps.begin(), p.steps.end(), [](const BlockTableStep& s) {
    return std::any_of(s.requests.begin(), s.requests.end(), [](const Request& r) { return r.kv_len > 0; });
  });
  if (!any_token) p.steps.front().requests.front() = {1, 1};
  if (p.graph) {
    BlockTableStep& first = p.steps.front();
    int queries = 0;
    for (const Request& r : first.requests) queries += r.q_len;
    if (first.num_tokens > 0) first.num_tokens = std::max(first.num_tokens, queries);
    fit_graph(p, any_of<int>({0, 0, 1, 5}), any_of<int>({0, 1, 64, 500}));
  }

  Case c;
  const bool any_memory = coin();
  const std::vector<Poison> poisons = {Poison::nan, Poison::inf, Poison::large, Poison::stale, Poison::zero};
  if (any_memory) {
    c.memory.placement = static_cast<Placement>(between(0, static_cast<int>(Placement::beyond_2gib)));
    c.memory.unused = any_of(poisons);
    c.memory.output = any_of(poisons);
    c.memory.scratch = any_of(poisons);
    if (chance(1, 8)) c.memory.guard_bytes = any_of<int>({256, 512, 65536});
  }
  c.memory.prefix_sharing = chance(1, 4);
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  c.problem = std::move(p);
  return c;
}

/// Graph buffers as small as the steps need; eager ones need none.
void tighten(BlockTableExpand& p) {
  if (!p.graph) {
    p.max_requests = p.index_capacity = 0;
    for (BlockTableStep& s : p.steps) s.num_tokens = 0;
    return;
  }
  const int requests = p.max_requests;
  const int indices = p.index_capacity;
  fit_graph(p, 0, 0);
  p.max_requests = std::min(p.max_requests, requests);
  p.index_capacity = std::min(p.index_capacity, indices);
}

class Shrinker {
 public:
  explicit Shrinker(const Case& c) : case_(c), problem_(std::get<BlockTableExpand>(c.problem)) {}

  std::vector<Case> run() {
    for (std::size_t i = 0; problem_.steps.size() > 1 && i < problem_.steps.size(); ++i)
      with([i](BlockTableExpand& p) { p.steps.erase(p.steps.begin() + static_cast<std::ptrdiff_t>(i)); });
    for (std::size_t s = 0; s < problem_.steps.size(); ++s) shrink_requests(s);
    for (std::size_t s = 0; s < problem_.steps.size(); ++s) shrink_step(s);
    const int block = problem_.manager_block;
    for (const int v : smaller({1, 2, 3, 16, block / 2, block - 1}, 1, block)) {
      with([v](BlockTableExpand& p) { p.manager_block = p.kernel_block = std::min(v, p.kernel_block); });
      if (v % problem_.kernel_block == 0) with([v](BlockTableExpand& p) { p.manager_block = v; });
    }
    for (int v = 1; v < problem_.kernel_block; ++v)
      if (block % v == 0) with([v](BlockTableExpand& p) { p.kernel_block = v; });
    with([](BlockTableExpand& p) { p.spare_columns = 0; });
    with([](BlockTableExpand& p) { p.interleaved = false; });
    with([](BlockTableExpand& p) { p.graph = false; });
    if (problem_.graph) shrink_capacities();
    return std::move(candidates_);
  }

 private:
  /// The change, with buffers made tight and without.
  template <typename Change>
  void with(const Change& change) {
    for (const bool tight : {true, false}) {
      Case s = case_;
      auto& p = std::get<BlockTableExpand>(s.problem);
      change(p);
      if (tight || !p.graph) tighten(p);
      const bool any_token = std::any_of(p.steps.begin(), p.steps.end(),
                                         [](const BlockTableStep& step) { return most_tokens(step) > 0; });
      if (any_token && s != case_) candidates_.push_back(std::move(s));
    }
  }

  void shrink_requests(std::size_t s) {
    const std::size_t n = problem_.steps[s].requests.size();
    const auto keep = [&](std::size_t begin, std::size_t end) {
      with([&](BlockTableExpand& p) {
        const auto first = problem_.steps[s].requests.begin();
        p.steps[s].requests.assign(first + static_cast<std::ptrdiff_t>(begin),
                                   first + static_cast<std::ptrdiff_t>(end));
        rescale_tokens(p.steps[s], n);
      });
    };
    if (n < 2) return;
    keep(0, n / 2);
    keep(n / 2, n);
    for (std::size_t chunk = std::max<std::size_t>(n / 4, 1);; chunk /= 2) {
      for (std::size_t begin = 0; begin < n; begin += chunk) {
        with([&](BlockTableExpand& p) {
          auto& requests = p.steps[s].requests;
          const auto from = requests.begin() + static_cast<std::ptrdiff_t>(begin);
          requests.erase(from, from + static_cast<std::ptrdiff_t>(std::min(chunk, n - begin)));
          rescale_tokens(p.steps[s], n);
        });
      }
      if (chunk == 1) break;
    }
  }

  void shrink_capacities() {
    BlockTableExpand least = problem_;
    fit_graph(least, 0, 0);
    const auto to = [&](int max_requests, int index_capacity) {
      Case s = case_;
      auto& p = std::get<BlockTableExpand>(s.problem);
      p.max_requests = max_requests;
      p.index_capacity = index_capacity;
      if (s != case_) candidates_.push_back(std::move(s));
    };
    for (const int v : smaller({least.index_capacity, least.index_capacity + 1, problem_.index_capacity - 1},
                               least.index_capacity, problem_.index_capacity))
      to(problem_.max_requests, v);
    for (const int v : smaller({least.max_requests, least.max_requests + 1, problem_.max_requests - 1},
                               least.max_requests, problem_.max_requests))
      to(v, problem_.index_capacity);
  }

  /// Fewer requests in a padded batch: as many tokens for each as before.
  static void rescale_tokens(BlockTableStep& step, std::size_t before) {
    step.num_tokens =
        static_cast<int>(static_cast<std::size_t>(step.num_tokens) / before * step.requests.size());
  }

  void shrink_step(std::size_t s) {
    const BlockTableStep& step = problem_.steps[s];
    int queries = 0;
    for (const Request& r : step.requests) queries += r.q_len;
    const int rows = static_cast<int>(step.requests.size());
    with([s](BlockTableExpand& p) { p.steps[s].num_tokens = 0; });
    for (const int v : smaller({queries, 2 * rows, 3 * rows, step.num_tokens - rows, step.num_tokens - 1},
                               std::max(queries, 1), step.num_tokens))
      with([&](BlockTableExpand& p) { p.steps[s].num_tokens = v; });
    // All queries together: what a padded batch is about is that they are equal.
    int longest = 0;
    for (const Request& r : step.requests) longest = std::max(longest, r.q_len);
    for (const int q : smaller({1, 2, 3, longest - 1}, 1, longest)) {
      with([&](BlockTableExpand& p) {
        BlockTableStep& to = p.steps[s];
        for (Request& r : to.requests) r.q_len = std::min(r.q_len, q);
        to.num_tokens = std::min(to.num_tokens, static_cast<int>(to.requests.size()) * q);
      });
    }
    with([&](BlockTableExpand& p) {
      for (Request& r : p.steps[s].requests) r.kv_len = r.q_len;
    });
    // One by one only when few are left: a batch of hundreds would give thousands of candidates.
    for (std::size_t i = 0; step.requests.size() <= 24 && i < step.requests.size(); ++i) {
      const Request& r = step.requests[i];
      const int whole = r.kv_len > 0 ? (r.kv_len - 1) / problem_.manager_block * problem_.manager_block : 0;
      for (const int v :
           smaller({1, 2, r.q_len, r.kv_len / 2, whole, whole + 1, r.kv_len - 1}, r.q_len, r.kv_len))
        with([&](BlockTableExpand& p) { p.steps[s].requests[i].kv_len = v; });
      for (const int v : smaller({0, 1, 2, 3, r.q_len - 1}, 0, r.q_len))
        with([&](BlockTableExpand& p) { p.steps[s].requests[i].q_len = v; });
    }
  }

  const Case& case_;
  const BlockTableExpand& problem_;
  std::vector<Case> candidates_;
};

std::vector<Case> shrink(const Case& c) {
  return Shrinker(c).run();
}

std::int64_t complexity_of(const Case& c) {
  const auto& p = std::get<BlockTableExpand>(c.problem);
  std::int64_t sum = p.manager_block + p.kernel_block + (p.graph ? 1 : 0) + (p.interleaved ? 1 : 0) +
                     p.max_requests + p.index_capacity + p.spare_columns;
  for (const BlockTableStep& s : p.steps) {
    sum += 1 + s.num_tokens;
    for (const Request& r : s.requests) sum += 1 + r.q_len + r.kv_len;
  }
  return sum;
}

/// Some 25 instructions per 64 entries and wave, and 2000 to begin and end the launches of a step.
std::int64_t work_of(const Case& c) {
  const auto& p = std::get<BlockTableExpand>(c.problem);
  std::int64_t units = 0;
  for (const BlockTableStep& s : p.steps) {
    const auto rows = static_cast<std::int64_t>(s.requests.size());
    const std::int64_t tokens = p.graph ? p.index_capacity : most_tokens(s);
    units += 2 + rows / 4 * (p.graph ? std::min<std::int64_t>(4, 1 + tokens / 256) : 1) + tokens / 4000;
  }
  return units;
}

}  // namespace

const OpGenerator block_table_expand_generator{draw_case, shrink, complexity_of, work_of};

}  // namespace attest::fuzz
