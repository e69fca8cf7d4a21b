// SPDX-License-Identifier: MIT
//
// The launch contract of attest's block table expansion, shared by the kernels and the host: C++17,
// fixed-width types only. Three launches make the lists of one batch:
//
//   block_table_prepare   grid 1                      lengths of padded requests, qo_indptr, kv_indptr,
//                                                     last_page_len
//   block_table_map       grid (blocks_per_row, rows)      manager blocks to kernel blocks
//   block_table_fill      grid (blocks_per_row, rows + 1)  slots; the last row of workgroups writes the tail
//
// each with 256 work-items per workgroup. The second and third read what the first one wrote into the
// *metadata* of the batch; `scratch` is lent by the builder for the duration of one launch and may be
// overwritten by the next batch before the second launch of this one.
#pragma once

#include <cstdint>

namespace attest::contract {

inline constexpr int block_table_threads = 256;

struct BlockTableExpandArgs {
  const std::int32_t* query_start_loc;  ///< [rows + 1]
  const std::int32_t* seq_lens;         ///< [rows] tokens
  const std::int32_t* block_table;      ///< [rows, table_width] manager blocks; negative: block 0
  std::int32_t* qo_indptr;              ///< [max_requests + 1]
  std::int32_t* kv_indptr;              ///< [max_requests + 1]
  std::int32_t* last_page_len;          ///< [max_requests]
  std::int32_t* kernel_block_table;     ///< [rows, table_width * manager_block / kernel_block]
  std::int32_t* kv_indices;             ///< [index_capacity]
  std::int32_t* scratch;                ///< [rows] the builder's
  std::int32_t rows;
  std::int32_t max_requests;  ///< at least rows; the indptrs go on with their last value
  std::int32_t num_tokens;    ///< queries, padding included
  std::int32_t table_width;
  std::int32_t manager_block;   ///< tokens
  std::int32_t kernel_block;    ///< tokens, divides manager_block
  std::int32_t index_capacity;  ///< entries of kv_indices; those behind the live ones become -1
  std::int32_t reserved;        ///< 0
};
static_assert(sizeof(BlockTableExpandArgs) == 104, "the kernels read this layout");

}  // namespace attest::contract
