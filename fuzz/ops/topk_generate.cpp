// SPDX-License-Identifier: MIT
//
// topk. Most cases are a few rows of a few hundred scores, with k and the row's length close to each other:
// that is where counts go wrong. A few reach what only size shows: rows past a chunk of 2048 columns or a
// buffer of ties, a million columns, more than 65536 rows (https://github.com/sgl-project/sglang/pull/34948).
// Those are made as cheap as they can be: one row of a million, or rows of a column or two.
#include <algorithm>
#include <functional>

#include "fuzz/ops/draw.h"
#include "fuzz/ops/draw_memory.h"
#include "fuzz/ops/op_generator.h"
#include "fuzz/ops/shrink_requests.h"
#include "fuzz/ops/simpler.h"

namespace attest::fuzz {
namespace {

using namespace cases;

enum class Focus { small, wide, huge, many_rows };

int draw_length(int k, int most) {
  switch (between(0, 3)) {
    case 0:
      return std::clamp(k + between(-1, 1), 0, most);
    case 1:
      return std::clamp(256 * between(1, 2) + between(-1, 1), 0, most);
    default:
      return between(0, most);
  }
}

void draw_small(TopK& p) {
  p.k = any_of<int>({between(1, 8), between(1, 64), between(1, 64), between(64, 300)});
  if (p.form == TopKForm::decode) {
    const int next_n = any_of<int>({1, 1, 2, 3, 4, 5, 6, 7, 8});
    const int batch = between(1, std::max(24 / next_n, 1) > 4 ? 4 : std::max(24 / next_n, 1));
    for (int i = 0; i < batch; ++i)
      p.requests.push_back({next_n, chance(1, 6) ? between(0, next_n) : draw_length(p.k, 600)});
  } else {
    const int batch = between(1, 4);
    for (int i = 0; i < batch; ++i)
      p.requests.push_back({between(i == 0 ? 1 : 0, 6), draw_length(p.k, batch > 2 ? 300 : 600)});
  }
  Request& first = p.requests.front();
  first.kv_len = std::max(first.kv_len, 1);
}

void draw_wide(TopK& p) {
  p.k = any_of<int>({between(1, 64), 512, between(1025, 1500), 2047, 2048});
  const int next_n = p.form == TopKForm::decode ? between(1, 2) : 1;
  const int kv_len = any_of<int>({2048, 4096, 8192, 8320, between(2049, 9000)}) + between(-1, 2);
  if (coin()) p.requests.push_back({next_n, between(1, 700)});
  p.requests.push_back({next_n, kv_len});
}

void draw_huge(TopK& p) {
  p.k = any_of<int>({1, 512, 2048});
  p.requests.push_back({1, any_of<int>({65536, 262144, 1 << 20}) - between(0, 1)});
}

void draw_many_rows(TopK& p) {
  p.form = TopKForm::prefill;
  p.k = between(1, 3);
  p.requests.push_back({65536 + between(1, 4), between(1, 3)});
}

Case draw_case() {
  TopK p;
  Case c;
  const int focus = between(1, 400);
  const Focus f = focus <= 6    ? Focus::many_rows
                  : focus <= 9  ? Focus::huge
                  : focus <= 45 ? Focus::wide
                                : Focus::small;
  if (coin()) p.form = TopKForm::decode;
  switch (f) {
    case Focus::small:
      draw_small(p);
      break;
    case Focus::wide:
      draw_wide(p);
      break;
    case Focus::huge:
      draw_huge(p);
      break;
    case Focus::many_rows:
      draw_many_rows(p);
      break;
  }
  if (chance(1, 3)) p.order = TopKOrder::ascending;
  if (chance(1, 4)) p.coordinates = Coordinates::absolute;
  if (coin()) p.nan = NanOrder::ordered;
  if (f == Focus::small && chance(1, 4)) p.row_padding = any_of<int>({1, 3, 64, 256});
  if (chance(2, 3))
    c.data.fill = any_of<Fill>({Fill::mean_shifted, Fill::mean_shifted, Fill::constant_scores,
                                Fill::few_values, Fill::few_values, Fill::zero_ties, Fill::zero_ties,
                                Fill::infinities, Fill::nans, Fill::ascending, Fill::descending});
  c.memory = draw_memory_of_indices({p.requests, 1 << 20, 0});
  c.memory.placement = Placement::shuffled;
  c.memory.prefix_sharing = false;
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  c.problem = std::move(p);
  return c;
}

std::vector<Case> shrink(const Case& c) {
  const auto& problem = std::get<TopK>(c.problem);
  std::vector<Case> candidates;
  const auto with = [&](const std::function<void(TopK&)>& change) {
    Case s = c;
    change(std::get<TopK>(s.problem));
    if (s != c) candidates.push_back(std::move(s));
  };
  for (const std::vector<Request>& simpler : simpler_requests(problem.requests, 256))
    with([&](TopK& p) { p.requests = simpler; });
  // In decode form only all q_len together can change.
  for (const int q_len :
       smaller({1, 2, 3, problem.requests.front().q_len - 1}, 1, problem.requests.front().q_len))
    with([&](TopK& p) {
      for (Request& r : p.requests) r.q_len = std::min(r.q_len, q_len);
    });
  for (const int k :
       smaller({1, 2, 3, 4, problem.k / 2, problem.k - problem.k / 4, problem.k - 1}, 1, problem.k)) {
    // With every row as much shorter, its place in the row stays.
    with([&](TopK& p) {
      for (Request& r : p.requests) r.kv_len = std::max(r.kv_len - (p.k - k), 0);
      p.k = k;
    });
    with([&](TopK& p) { p.k = k; });
  }
  for (const int padding : smaller({0, 1}, 0, problem.row_padding))
    with([&](TopK& p) { p.row_padding = padding; });
  with([](TopK& p) { p.form = TopKForm::prefill; });
  with([](TopK& p) { p.order = TopKOrder::any; });
  with([](TopK& p) { p.nan = NanOrder::unspecified; });
  with([](TopK& p) { p.coordinates = Coordinates::local; });
  return candidates;
}

std::int64_t complexity_of(const Case& c) {
  const auto& p = std::get<TopK>(c.problem);
  return p.k + p.row_padding + static_cast<int>(p.form) + static_cast<int>(p.order) +
         static_cast<int>(p.nan) + static_cast<int>(p.coordinates) + request_complexity(p.requests);
}

/// A selection takes some 3000 wave instructions and one for every score; a short row a hundred.
std::int64_t work_of(const Case& c) {
  const auto& p = std::get<TopK>(c.problem);
  std::int64_t instructions = 0;
  for (const Request& r : p.requests) {
    const int selecting = std::clamp(r.kv_len - p.k, 0, r.q_len);
    instructions +=
        std::int64_t{selecting} * (3000 + r.kv_len) + std::int64_t{r.q_len - selecting} * (100 + p.k);
  }
  return 1 + instructions / 300;
}

}  // namespace

const OpGenerator topk_generator{draw_case, shrink, complexity_of, work_of};

}  // namespace attest::fuzz
