// SPDX-License-Identifier: MIT
//
// The launch contract of attest's own index remap, shared by the kernel and the host: C++17, fixed-width
// types only.
//
//   index_remap
//     grid   (rows, ceil(k / 256), 1) workgroups
//     block  256
//     entry c of row t:  in indices[t][c], out slots[slot_indptr[t] + c] where that is below slot_indptr[t +
//     1]
#pragma once

#include <cstdint>

namespace attest::contract {

inline constexpr int index_remap_threads = 256;

struct IndexRemapArgs {
  const std::int32_t* indices;         ///< [rows, k] positions in the request; negative: none
  const std::int32_t* request_of_row;  ///< [rows]
  const std::int32_t* block_table;     ///< [requests, table_stride] pages
  const std::int32_t* slot_indptr;     ///< [rows + 1] entries of slots
  std::int32_t* slots;                 ///< [slot_indptr[rows]]
  std::int32_t k;
  std::int32_t page_size;     ///< tokens
  std::int32_t table_width;   ///< blocks that a row of the table has
  std::int32_t table_stride;  ///< entries from one row of the table to the next
  std::int32_t invalid_slot;  ///< what an entry without a key becomes: -1 or 0
};
static_assert(sizeof(IndexRemapArgs) == 64, "the kernel reads this layout");

}  // namespace attest::contract
