// SPDX-License-Identifier: MIT
//
// indexer_logits. Heads, pages and requests are drawn pairwise different; next_n takes every value of 1..8
// and lengths lie around pages and tiles of 64 keys, now and then around 2048
// (https://github.com/vllm-project/vllm/issues/39303).
#include <algorithm>
#include <functional>

#include "cases/paging.h"
#include "fuzz/ops/draw.h"
#include "fuzz/ops/draw_memory.h"
#include "fuzz/ops/op_generator.h"
#include "fuzz/ops/shrink_requests.h"
#include "fuzz/ops/simpler.h"

namespace attest::fuzz {
namespace {

using namespace cases;

/// A wave does 16 keys of a row in some 100 instructions and 25 more for every 16 heads.
std::int64_t work_of_tiles(std::int64_t row_tiles, int heads) {
  return row_tiles * 4 * (4 + (heads + 15) / 16) / 12 + 1;
}

int draw_length(int page_size, int most) {
  switch (between(0, 3)) {
    case 0:
      return std::clamp(64 * between(1, 3) + between(-1, 1), 0, most);
    case 1:
      return std::clamp(page_size * between(1, 4) + between(-1, 1), 0, most);
    default:
      return between(0, most);
  }
}

Case draw_case() {
  IndexerLogits p;
  p.heads = any_of<int>({1, 2, 3, 4, 8, 12, 16, 17, 32, 32, 48, 64, 64, 128});
  p.page_size = any_of<int>({1, 2, 3, 16, 16, 32, 48, 64, 64, 128, 256});
  if (p.page_size == p.heads) ++p.page_size;
  if (coin()) p.scale_format = ScaleFormat::ue8m0;
  if (chance(2, 5)) p.form = TopKForm::prefill;
  const bool is_long = chance(1, 30);
  const int next_n = any_of<int>({1, 1, 2, 3, 3, 4, 5, 6, 7, 8});
  const int batch = is_long ? 1 : between(1, 4);
  for (int i = 0; i < batch; ++i) {
    Request r;
    r.q_len =
        p.form == TopKForm::decode ? (is_long ? std::min(next_n, 3) : next_n) : between(i == 0 ? 1 : 0, 6);
    r.kv_len = is_long        ? 2048 + between(-1, 2)
               : chance(1, 8) ? between(0, r.q_len)
                              : draw_length(p.page_size, batch > 2 ? 150 : 300);
    if (i == 0) r.kv_len = std::max(r.kv_len, 2);
    p.requests.push_back(r);
  }
  Case c;
  if (coin())
    c.data.fill = any_of<Fill>({Fill::exact, Fill::exact, Fill::outlier_channels, Fill::saturating});
  c.memory =
      p.form == TopKForm::decode ? draw_memory(cache_shape(p)) : draw_memory_of_indices(cache_shape(p));
  if (p.form == TopKForm::prefill) c.memory.placement = Placement::shuffled;
  c.memory.prefix_sharing = false;
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  c.problem = std::move(p);
  return c;
}

std::vector<Case> shrink(const Case& c) {
  const auto& problem = std::get<IndexerLogits>(c.problem);
  std::vector<Case> candidates;
  const auto with = [&](const std::function<void(IndexerLogits&)>& change) {
    Case s = c;
    change(std::get<IndexerLogits>(s.problem));
    if (s != c) candidates.push_back(std::move(s));
  };
  for (const std::vector<Request>& simpler : simpler_requests(problem.requests, problem.page_size))
    with([&](IndexerLogits& p) { p.requests = simpler; });
  // In decode form only all q_len together can change.
  for (const int q_len :
       smaller({1, 2, 3, problem.requests.front().q_len - 1}, 1, problem.requests.front().q_len))
    with([&](IndexerLogits& p) {
      for (Request& r : p.requests) r.q_len = std::min(r.q_len, q_len);
    });
  for (const int heads : smaller({1, 2, 3, 16, 17, problem.heads / 2, problem.heads - 1}, 1, problem.heads))
    with([&](IndexerLogits& p) { p.heads = heads; });
  for (const int page :
       smaller({1, 2, 3, 16, problem.page_size / 2, problem.page_size - 1}, 1, problem.page_size))
    with([&](IndexerLogits& p) { p.page_size = page; });
  with([](IndexerLogits& p) { p.form = TopKForm::prefill; });
  with([](IndexerLogits& p) { p.scale_format = ScaleFormat::f32; });
  return candidates;
}

std::int64_t complexity_of(const Case& c) {
  const auto& p = std::get<IndexerLogits>(c.problem);
  return p.heads + p.page_size + static_cast<int>(p.form) + static_cast<int>(p.scale_format) +
         request_complexity(p.requests);
}

std::int64_t work_of(const Case& c) {
  const auto& p = std::get<IndexerLogits>(c.problem);
  std::int64_t rows = 0, keys = 0, longest = 1;
  for (const Request& r : p.requests) {
    rows += r.q_len;
    keys += r.kv_len;
    longest = std::max<std::int64_t>(longest, r.kv_len);
  }
  const std::int64_t width = p.form == TopKForm::decode ? longest : std::max<std::int64_t>(keys, 1);
  return work_of_tiles(rows * ((width + 63) / 64), p.heads);
}

}  // namespace

const OpGenerator indexer_logits_generator{draw_case, shrink, complexity_of, work_of};

}  // namespace attest::fuzz
