// SPDX-License-Identifier: MIT
//
// The launch contract of attest's own indexer logits, shared by the kernels and the host: C++17, fixed-width
// types only.
//
//   indexer_logits_prefill   keys side by side; row t looks at columns [row_begin[t], row_end[t])
//   indexer_logits_decode    keys in pages; row t belongs to request t / next_n and looks at its positions
//                            [0, kv_len - next_n + t % next_n + 1)
//     grid   (rows, ceil(width / 64), 1) workgroups
//     block  256
//     writes every column of every row, -inf outside of the row's range
//
// fp8 is e4m3 FNUZ as gfx942 has it. A page holds page_size times 128 fp8, then page_size f32 scales.
#pragma once

#include <cstdint>

namespace attest::contract {

inline constexpr int indexer_threads = 256;
inline constexpr int indexer_tile = 64;  ///< keys of a workgroup: 16 per wave

struct IndexerLogitsArgs {
  const void* q;                    ///< [rows, heads, 128] fp8
  const float* q_scale;             ///< [rows, heads]
  const float* weights;             ///< [rows, heads]
  const void* keys;                 ///< prefill: [width, 128] fp8; decode: pages
  const float* k_scale;             ///< prefill: [width]
  const std::int32_t* row_begin;    ///< prefill: [rows]
  const std::int32_t* row_end;      ///< prefill: [rows]
  const std::int32_t* kv_lens;      ///< decode: [requests]
  const std::int32_t* block_table;  ///< decode: [requests, table_stride] pages
  float* logits;                    ///< [rows, width]
  std::uint64_t page_stride;        ///< decode: bytes from one page to the next, a multiple of 4
  std::int32_t heads;
  std::int32_t width;
  std::int32_t page_size;     ///< decode: tokens
  std::int32_t next_n;        ///< decode
  std::int32_t table_stride;  ///< decode: entries
  std::int32_t reserved;
};
static_assert(sizeof(IndexerLogitsArgs) == 112, "the kernels read this layout");

}  // namespace attest::contract
