// SPDX-License-Identifier: MIT
//
// index_remap. Every value of a small k and a small page is worth trying; what costs is rows times k, so
// large k come with few rows. Lists that are padded only at the end hide what happens to an entry without a
// key in front of others, so half the cases have another pattern.
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

Case draw_case() {
  IndexRemap p;
  const bool large = chance(1, 8);
  p.k = large ? any_of<int>({512, 1000, 1024, 2048}) : chance(1, 2) ? between(1, 40) : between(1, 300);
  p.page_size = any_of<int>({1, 1, 2, 3, 16, 48, 64, 64, 128, 256, 784, 1024});
  if (p.page_size == p.k) p.page_size = p.k == 1 ? 2 : p.k - 1;
  if (coin()) p.layout = SlotLayout::ragged;
  if (chance(2, 5)) p.invalid = InvalidEntry::slot_zero;
  if (coin()) p.indices = static_cast<IndexPattern>(between(0, static_cast<int>(IndexPattern::hostile)));
  if (chance(1, 4)) p.table_padding = any_of<int>({1, 3, 64});

  int rows_left = large ? 6 : any_of<int>({4, 12, 40, 100});
  const int batch = between(1, 5);
  const bool decode = coin();
  for (int i = 0; i < batch; ++i) {
    Request r;
    r.q_len = decode ? 1 : between(0, std::min(rows_left, 9));
    if (i == 0) r.q_len = std::max(r.q_len, 1);
    rows_left -= r.q_len;
    switch (between(0, 3)) {
      case 0:
        r.kv_len = between(0, 2 * p.k);
        break;
      case 1:
        r.kv_len = std::max(p.k + between(-1, 1), 0);
        break;
      case 2:
        r.kv_len = std::max(p.page_size * between(1, 3) + between(-1, 1), 0);
        break;
      default:
        r.kv_len = between(0, large ? 5000 : 300);
        break;
    }
    if (i == 0) r.kv_len = std::max(r.kv_len, 2);
    p.requests.push_back(r);
    if (rows_left <= 0) break;
  }

  Case c;
  c.memory = draw_memory_of_indices({p.requests, p.page_size, static_cast<std::uint64_t>(p.page_size)});
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  c.problem = std::move(p);
  return c;
}

std::vector<Case> shrink(const Case& c) {
  const auto& problem = std::get<IndexRemap>(c.problem);
  std::vector<Case> candidates;
  const auto with = [&](const std::function<void(IndexRemap&)>& change) {
    Case s = c;
    change(std::get<IndexRemap>(s.problem));
    if (s != c) candidates.push_back(std::move(s));
  };
  for (const std::vector<Request>& simpler : simpler_requests(problem.requests, problem.page_size))
    with([&](IndexRemap& p) { p.requests = simpler; });
  for (const int k : smaller({1, 2, 3, 4, problem.k / 2, problem.k - 1}, 1, problem.k))
    with([&](IndexRemap& p) { p.k = k; });
  for (const int page :
       smaller({1, 2, 3, 16, problem.page_size / 2, problem.page_size - 1}, 1, problem.page_size))
    with([&](IndexRemap& p) { p.page_size = page; });
  for (const int padding : smaller({0, 1}, 0, problem.table_padding))
    with([&](IndexRemap& p) { p.table_padding = padding; });
  for (int pattern = 0; pattern < static_cast<int>(problem.indices); ++pattern)
    with([&](IndexRemap& p) { p.indices = static_cast<IndexPattern>(pattern); });
  with([](IndexRemap& p) { p.layout = SlotLayout::dense; });
  with([](IndexRemap& p) { p.invalid = InvalidEntry::minus_one; });
  return candidates;
}

std::int64_t complexity_of(const Case& c) {
  const auto& p = std::get<IndexRemap>(c.problem);
  return p.k + p.page_size + p.table_padding + static_cast<int>(p.indices) + static_cast<int>(p.layout) +
         static_cast<int>(p.invalid) + request_complexity(p.requests);
}

std::int64_t work_of(const Case& c) {
  const auto& p = std::get<IndexRemap>(c.problem);
  std::int64_t rows = 0;
  for (const Request& r : p.requests) rows += r.q_len;
  return rows * (1 + p.k / 64);
}

}  // namespace

const OpGenerator index_remap_generator{draw_case, shrink, complexity_of, work_of};

}  // namespace attest::fuzz
