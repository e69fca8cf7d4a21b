// SPDX-License-Identifier: MIT
//
// Sequences of batches on one plan object: grown, shrunk, the same again, of the same size and longest
// context but another profile (vllm-project/vllm#47042), after its memory was freed (ROCm/aiter#5193).
// Lengths around the granularity and shorter than the query (ROCm/aiter#2106, #4711), workgroups in number 1,
// around 16, and far more than there is work; q_len on both sides of what has a kernel
// (vllm-project/vllm#39616, #45227).
#include <algorithm>
#include <utility>
#include <vector>

#include "fuzz/ops/draw.h"
#include "fuzz/ops/op_generator.h"
#include "fuzz/ops/simpler.h"

namespace attest::fuzz {
namespace {

using namespace cases;

int draw_kv_len(int q_len, int granularity, int longest) {
  switch (between(0, 4)) {
    case 0:
      return between(0, longest);
    case 1:
      return std::min(longest, between(0, q_len + 1));
    default:
      return std::clamp(between(0, std::max(longest / granularity, 1)) * granularity + between(-1, q_len), 0,
                        longest);
  }
}

std::vector<Request> draw_batch(const WorkPlan& p, int longest, int most_requests) {
  std::vector<Request> requests;
  const int batch = between(1, most_requests);
  const bool ragged = coin();
  const int q_len = chance(1, 4) ? between(1, 16) : between(1, p.persistent_q_len);
  for (int i = 0; i < batch; ++i) {
    const int q = ragged ? between(0, q_len) : q_len;
    requests.push_back({q, draw_kv_len(q, p.granularity, longest)});
  }
  return requests;
}

/// The next batch, of the last one.
std::vector<Request> draw_next(const WorkPlan& p, std::vector<Request> last, int longest, int most_requests) {
  switch (between(0, 5)) {
    case 0:
      return last;
    case 1:
      if (last.size() > 1) last.resize(last.size() / 2);
      return last;
    case 2:
      for (Request& r : draw_batch(p, longest, most_requests)) last.push_back(r);
      if (last.size() > 64) last.resize(64);
      return last;
    case 3:
    case 4: {
      // As many requests, the same longest context, the rest of it otherwise.
      const auto most = std::max_element(
          last.begin(), last.end(), [](const Request& a, const Request& b) { return a.kv_len < b.kv_len; });
      const int kv_len = most->kv_len;
      for (Request& r : last) r.kv_len = draw_kv_len(r.q_len, p.granularity, kv_len);
      last[static_cast<std::size_t>(between(0, static_cast<int>(last.size()) - 1))].kv_len = kv_len;
      return last;
    }
    default:
      return draw_batch(p, longest, most_requests);
  }
}

Case draw_case() {
  WorkPlan p;
  p.slots = any_of<int>({1, 2, 3, 5, 8, 15, 16, 16, 17, 32, 33, 64, 80, 304});
  p.granularity = any_of<int>({1, 2, 4, 16, 16, 32, 64});
  p.tile_tokens = any_of<int>({1, 1, 2, 3, 4, 4, 8});
  p.persistent_q_len = any_of<int>({1, 2, 4, 4, 4, 8, 16});
  p.causal = !chance(1, 6);
  const bool many = chance(1, 8);
  const int longest = many ? 60 : any_of<int>({20, 100, 260, 400});
  const int most_requests = many ? 40 : any_of<int>({1, 1, 2, 3, 6});
  p.steps.push_back({false, draw_batch(p, longest, most_requests)});
  const int steps = any_of<int>({1, 1, 2, 2, 3, 4});
  for (int i = 1; i < steps; ++i)
    p.steps.push_back({chance(1, 4), draw_next(p, p.steps.back().requests, longest, most_requests)});
  const bool any_query = std::any_of(p.steps.begin(), p.steps.end(), [](const WorkPlanStep& s) {
    return std::any_of(s.requests.begin(), s.requests.end(), [](const Request& r) { return r.q_len > 0; });
  });
  if (!any_query) p.steps.front().requests.front() = {1, std::max(1, longest / 2)};

  Case c;
  const std::vector<Poison> poisons = {Poison::nan, Poison::inf, Poison::large, Poison::stale, Poison::zero};
  if (coin()) {
    c.memory.output = any_of(poisons);
    c.memory.scratch = any_of(poisons);
    if (chance(1, 8)) c.memory.guard_bytes = any_of<int>({256, 512, 65536});
  }
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  c.problem = std::move(p);
  return c;
}

class Shrinker {
 public:
  explicit Shrinker(const Case& c) : case_(c), problem_(std::get<WorkPlan>(c.problem)) {}

  std::vector<Case> run() {
    for (std::size_t s = 0; problem_.steps.size() > 1 && s < problem_.steps.size(); ++s)
      with([s](WorkPlan& p) { p.steps.erase(p.steps.begin() + static_cast<std::ptrdiff_t>(s)); });
    // The same change to all steps keeps what they have in common.
    const std::size_t n = problem_.steps.front().requests.size();
    for (std::size_t i = 0; i < n; ++i) {
      with([i](WorkPlan& p) {
        for (WorkPlanStep& s : p.steps)
          if (s.requests.size() > 1 && i < s.requests.size())
            s.requests.erase(s.requests.begin() + static_cast<std::ptrdiff_t>(i));
      });
    }
    all([](Request& r) { r.q_len = std::min(r.q_len, 1); });
    all([](Request& r) { r.q_len = std::min(r.q_len, 2); });
    all([](Request& r) { r.q_len = std::max(r.q_len - 1, 0); });
    all([](Request& r) { r.kv_len /= 2; });
    all([](Request& r) { r.kv_len = std::max(r.kv_len - 1, 0); });
    for (std::size_t s = 0; s < problem_.steps.size(); ++s) {
      const auto& requests = problem_.steps[s].requests;
      with([s](WorkPlan& p) { p.steps[s].freed = false; });
      for (std::size_t i = 0; i < requests.size(); ++i) {
        if (requests.size() > 1)
          with([&](WorkPlan& p) {
            p.steps[s].requests.erase(p.steps[s].requests.begin() + static_cast<std::ptrdiff_t>(i));
          });
        const Request& r = requests[i];
        const int whole = r.kv_len > 0 ? (r.kv_len - 1) / problem_.granularity * problem_.granularity : 0;
        for (const int v : smaller({0, 1, 2, r.kv_len / 2, whole, whole + 1, r.kv_len - 1}, 0, r.kv_len))
          with([&](WorkPlan& p) { p.steps[s].requests[i].kv_len = v; });
        for (const int v : smaller({0, 1, 2, 3, r.q_len - 1}, 0, r.q_len))
          with([&](WorkPlan& p) { p.steps[s].requests[i].q_len = v; });
      }
    }
    const auto each = [&](int WorkPlan::* field, std::initializer_list<int> wanted) {
      for (const int v : smaller(wanted, 1, problem_.*field)) with([&](WorkPlan& p) { p.*field = v; });
    };
    each(&WorkPlan::slots, {1, 2, 3, 16, 17, problem_.slots / 2, problem_.slots - 1});
    each(&WorkPlan::granularity, {1, 2, 4, 16, problem_.granularity / 2});
    each(&WorkPlan::tile_tokens, {1, 2, 3, problem_.tile_tokens - 1});
    each(&WorkPlan::persistent_q_len, {1, 2, 3, problem_.persistent_q_len - 1});
    with([](WorkPlan& p) { p.causal = true; });
    return std::move(candidates_);
  }

 private:
  template <typename Change>
  void with(const Change& change) {
    Case s = case_;
    change(std::get<WorkPlan>(s.problem));
    if (s != case_) candidates_.push_back(std::move(s));
  }
  template <typename Change>
  void all(const Change& change) {
    with([&](WorkPlan& p) {
      for (WorkPlanStep& s : p.steps) std::for_each(s.requests.begin(), s.requests.end(), change);
    });
  }

  const Case& case_;
  const WorkPlan& problem_;
  std::vector<Case> candidates_;
};

std::vector<Case> shrink(const Case& c) {
  return Shrinker(c).run();
}

std::int64_t complexity_of(const Case& c) {
  const auto& p = std::get<WorkPlan>(c.problem);
  std::int64_t sum = p.slots + p.granularity + p.tile_tokens + p.persistent_q_len + (p.causal ? 0 : 1);
  for (const WorkPlanStep& s : p.steps) {
    sum += 1 + (s.freed ? 1 : 0);
    for (const Request& r : s.requests) sum += 1 + r.q_len + r.kv_len;
  }
  return sum;
}

/// A dozen instructions per row and key, some 200 per work.
std::int64_t work_of(const Case& c) {
  const auto& p = std::get<WorkPlan>(c.problem);
  std::int64_t units = 1;
  for (const WorkPlanStep& s : p.steps) {
    std::int64_t row_keys = 0;
    for (const Request& r : s.requests) row_keys += std::int64_t{r.q_len} * r.kv_len;
    units += 1 + row_keys / 256 + p.slots / 8;
  }
  return units;
}

}  // namespace

const OpGenerator work_plan_generator{draw_case, shrink, complexity_of, work_of};

}  // namespace attest::fuzz
