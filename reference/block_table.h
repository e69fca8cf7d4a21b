// SPDX-License-Identifier: MIT
//
// From the block table of a serving engine to the token-level lists an attention kernel with pages of one
// token takes: what a metadata builder of the AITER MLA backend has to produce, in exact integers.
//
//   engine:  request r owns manager blocks table[r, 0..], each of `manager_block` tokens
//   kernel:  blocks of `kernel_block` tokens; manager block b is kernel blocks b (M/K) .. b (M/K) + M/K - 1
//   list:    token t of request r lies in slot  kernel_blocks[r, t / K] * K + t % K
//
// A captured graph runs with more requests than are alive. With one query each the padded ones stay empty.
// With q_len u > 1 they may not: the kernel computes u rows for each of them, and a row without a key has no
// softmax. So padded requests are given u queries and u keys, from their own row of the table; see
// `dummy_query_len`.
//
// Source: vLLM's AITER MLA metadata builder as of vllm-project/vllm#45227 (lengths of padded requests,
// qo_indptr), #39616 (any block size), #31282 (last_page_len).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attest::reference {

struct BlockTableBatch {
  int manager_block = 1;                          ///< tokens
  int kernel_block = 1;                           ///< tokens, divides manager_block
  int table_width = 0;                            ///< columns of the table
  std::span<const std::int32_t> query_start_loc;  ///< [rows + 1]
  std::span<const std::int32_t> seq_lens;         ///< [rows] tokens
  /// [rows, table_width]. Only the first ceil(length / manager_block) entries of a row mean anything; a
  /// negative one among them is the null block, 0.
  std::span<const std::int32_t> block_table;
  int num_tokens = 0;  ///< query tokens of the batch, padding included; at least query_start_loc[rows]
};

struct TokenLists {
  std::vector<std::int32_t> qo_indptr;      ///< [rows + 1]
  std::vector<std::int32_t> kv_indptr;      ///< [rows + 1]
  std::vector<std::int32_t> kv_indices;     ///< [kv_indptr[rows]] slots
  std::vector<std::int32_t> last_page_len;  ///< [rows] always 1: a page is a token
  /// Row r: the kernel blocks of request r, ceil(length / kernel_block) of them.
  std::vector<std::vector<std::int32_t>> kernel_blocks;
};

/// The q_len u that padded requests take; 0 when they stay empty. u = num_tokens / rows, if that is a whole
/// number above 1, more tokens are asked for than there are, every request with a query has u of them, and
/// the requests without one are the last of the batch.
int dummy_query_len(std::span<const std::int32_t> query_start_loc, int num_tokens);

TokenLists expand_block_table(const BlockTableBatch& batch);

}  // namespace attest::reference
