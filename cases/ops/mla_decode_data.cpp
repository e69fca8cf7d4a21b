// SPDX-License-Identifier: MIT
//
// Puts the pieces together: rows from fills.h, places from paging.h, and poison wherever neither reaches.
#include <algorithm>

#include "cases/cache_pool.h"
#include "cases/case.h"
#include "cases/fills.h"
#include "cases/ops/mla_decode.h"
#include "cases/paging.h"
#include "cases/poison.h"
#include "cases/random.h"

namespace attest::cases {
namespace {

constexpr int row_width = RowMaker::width;

/// What a kernel finds that reads past the live page indices. Poisoned pages rather than wild ids where
/// possible: wrong data names its cause, a crash does not. `inf` stands for the sentinels of graph-padded
/// tables.
void append_slack(const Case& c, const PagePlan& plan, std::vector<std::int32_t>& indices) {
  const Counter draw(c.seed, Draw::garbage_index, 0, 0);
  const auto pick = [&](std::uint32_t i, const std::vector<std::int32_t>& from) {
    return from[draw.below(i, static_cast<std::uint32_t>(from.size()))];
  };
  for (std::uint32_t i = 0; i < index_slack; ++i) {
    switch (c.memory.unused) {
      case Poison::inf:
        indices.push_back(i % 2 == 0 ? -1 : 2147480000);
        break;
      case Poison::stale:
        indices.push_back(pick(i, plan.pages.empty() ? plan.unowned_pages : plan.pages));
        break;
      case Poison::zero:
        indices.push_back(0);
        break;
      case Poison::nan:
      case Poison::large:
        indices.push_back(pick(i, plan.unowned_pages));
        break;
    }
  }
}

}  // namespace

MlaDecodeInputs materialise(const Case& c, const MlaDecode& p) {
  const RowMaker rows(c);
  const CacheShape shape = cache_shape(p);
  const PagePlan plan = plan_pages(shape, c.memory, c.seed);

  MlaDecodeInputs in;
  in.kv_pool = make_pool(c, rows, {.format = p.kv_format, .layout = p.kv_layout}, shape, plan);
  in.page_stride_bytes = plan.footprint.page_stride_bytes;
  in.num_pages = plan.footprint.first_page + plan.footprint.content_pages;
  in.kv_indptr = plan.kv_indptr;
  in.kv_page_indices = plan.pages;
  append_slack(c, plan, in.kv_page_indices);

  in.qo_indptr.push_back(0);
  for (const Request& r : p.requests) {
    in.qo_indptr.push_back(in.qo_indptr.back() + r.q_len);
    in.kv_last_page_len.push_back(r.kv_len == 0 ? 0 : (r.kv_len - 1) % p.page_size + 1);
  }

  const std::size_t q_row_bytes = row_width * element_bytes(p.q_format);
  in.q.resize(static_cast<std::size_t>(in.qo_indptr.back()) * static_cast<std::size_t>(p.heads) *
              q_row_bytes);
  std::byte* out = in.q.data();
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    for (int position = 0; position < p.requests[i].q_len; ++position) {
      for (int head = 0; head < p.heads; ++head, out += q_row_bytes) {
        rows.q_row(static_cast<int>(i), position, head, p.q_format, out);
      }
    }
  }
  return in;
}

}  // namespace attest::cases
