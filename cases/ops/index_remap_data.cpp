// SPDX-License-Identifier: MIT
#include <algorithm>

#include "cases/case.h"
#include "cases/inputs.h"
#include "cases/ops/index_remap.h"
#include "cases/paging.h"
#include "cases/random.h"

namespace attest::cases {

IndexRemapInputs materialise(const Case& c, const IndexRemap& p) {
  const CacheShape cache{p.requests, p.page_size, static_cast<std::uint64_t>(p.page_size)};
  const PagePlan plan = plan_pages(cache, c.memory, c.seed);

  IndexRemapInputs in;
  in.table_width = 1;
  for (std::size_t r = 0; r < p.requests.size(); ++r)
    in.table_width = std::max(in.table_width, plan.kv_indptr[r + 1] - plan.kv_indptr[r]);
  in.table_stride = in.table_width + p.table_padding;

  // Past the pages of a request lies what an earlier, longer one left there, or what the poison says.
  const auto requests = static_cast<std::ptrdiff_t>(p.requests.size());
  in.block_table = poison_integers(c, c.memory.unused, static_cast<std::size_t>(requests * in.table_stride),
                                   "block_table");
  for (std::ptrdiff_t r = 0; r < requests; ++r) {
    std::copy(plan.pages.begin() + plan.kv_indptr[static_cast<std::size_t>(r)],
              plan.pages.begin() + plan.kv_indptr[static_cast<std::size_t>(r) + 1],
              in.block_table.begin() + r * in.table_stride);
  }

  const auto k = static_cast<std::size_t>(p.k);
  in.slot_indptr.push_back(0);
  for (std::size_t r = 0; r < p.requests.size(); ++r) {
    const Request& request = p.requests[r];
    for (int i = 0; i < request.q_len; ++i) {
      const int visible = std::max(request.kv_len - request.q_len + i + 1, 0);
      const std::size_t row = in.request_of_row.size();
      in.request_of_row.push_back(static_cast<std::int32_t>(r));
      in.indices.resize(in.indices.size() + k);
      index_list(c.seed, p.indices, static_cast<std::uint32_t>(row), visible, in.table_width * p.page_size,
                 std::span(in.indices).last(k));
      const int live = p.layout == SlotLayout::dense ? p.k : std::min(visible, p.k);
      in.slot_indptr.push_back(in.slot_indptr.back() + live);
    }
  }
  return in;
}

}  // namespace attest::cases
