// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/relation.h"
#include "oracle/verdict.h"

namespace attest::oracle {

/// The column of a wrong Element; its head is the step, its request the row, its position the entry: of the
/// row's own list, of an indptr, or, behind the last row (request = rows), of kv_indices as a whole.
enum class BlockTableList : std::uint8_t {
  kv_indices,
  kernel_block_table,
  kv_indptr,
  qo_indptr,
  last_page_len
};
const char* name(BlockTableList list);

/// Every list of every step, exactly (reference/block_table.h), from outputs "step<i>.<list>":
///
///   qo_indptr, kv_indptr   [max_requests + 1], the live part and then its last value
///   last_page_len          [max_requests]
///   kernel_block_table     [rows, table_width * manager_block / kernel_block], the live blocks of each row
///   kv_indices             [index_capacity], the live slots and, in a graph, -1 behind them
Verdict judge_block_table_expand(const cases::Case& c, const cases::Inputs& inputs,
                                 const cases::Outputs& outputs);

/// With other kernel blocks the slots are the same.
std::vector<Relation> block_table_relations(const cases::Case& c, const cases::Inputs& inputs);

}  // namespace attest::oracle
