// SPDX-License-Identifier: MIT
#include "reference/block_table.h"

#include <algorithm>
#include <cstddef>

namespace attest::reference {

int dummy_query_len(std::span<const std::int32_t> query_start_loc, int num_tokens) {
  const int rows = static_cast<int>(query_start_loc.size()) - 1;
  if (num_tokens <= query_start_loc.back() || num_tokens % rows != 0) return 0;
  const int u = num_tokens / rows;
  bool padding = false;
  for (std::size_t r = 0; r + 1 < query_start_loc.size(); ++r) {
    const int q_len = query_start_loc[r + 1] - query_start_loc[r];
    if (q_len != 0 && (q_len != u || padding)) return 0;
    padding = q_len == 0;
  }
  return u > 1 ? u : 0;
}

TokenLists expand_block_table(const BlockTableBatch& batch) {
  const int dummy = dummy_query_len(batch.query_start_loc, batch.num_tokens);
  const int ratio = batch.manager_block / batch.kernel_block;
  TokenLists lists;
  lists.qo_indptr = {0};
  lists.kv_indptr = {0};
  for (std::size_t r = 0; r < batch.seq_lens.size(); ++r) {
    int queries = batch.query_start_loc[r + 1] - batch.query_start_loc[r];
    int length = batch.seq_lens[r];
    if (queries == 0 && dummy > 0) queries = length = dummy;

    std::vector<std::int32_t>& blocks = lists.kernel_blocks.emplace_back();
    for (int first = 0; first < length; first += batch.kernel_block) {
      const auto column = static_cast<std::size_t>(first / batch.manager_block);
      const std::int32_t named = batch.block_table[r * static_cast<std::size_t>(batch.table_width) + column];
      blocks.push_back(std::max(named, 0) * ratio + first % batch.manager_block / batch.kernel_block);
    }
    for (int t = 0; t < length; ++t) {
      const std::int32_t block = blocks[static_cast<std::size_t>(t / batch.kernel_block)];
      lists.kv_indices.push_back(block * batch.kernel_block + t % batch.kernel_block);
    }
    lists.qo_indptr.push_back(lists.qo_indptr.back() + queries);
    lists.kv_indptr.push_back(lists.kv_indptr.back() + length);
    lists.last_page_len.push_back(1);
  }
  return lists;
}

}  // namespace attest::reference
