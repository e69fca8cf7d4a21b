// SPDX-License-Identifier: MIT
//
// The launch contract of attest's own top-k selection, shared by the kernels and the host: C++17, fixed-width
// types only.
//
//   topk_prefill   a row's range is [row_begin, row_end)
//   topk_decode    row t belongs to request t / next_n; its range is [0, kv_len - next_n + t % next_n + 1)
//     grid   (rows, 1, 1) workgroups
//     block  256
//     writes min(n, k) positions of each row, ascending, then -1; of equal scores the first ones. Scores are
//     ordered as IEEE 754 orders their bits: -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN
#pragma once

#include <cstdint>

namespace attest::contract {

inline constexpr int topk_threads = 256;

struct TopKArgs {
  const float* logits;            ///< [rows, row_stride]
  const std::int32_t* row_begin;  ///< [rows] prefill only
  const std::int32_t* row_end;    ///< [rows] prefill only; may lie before row_begin
  const std::int32_t* kv_lens;    ///< [requests] decode only
  std::int32_t* positions;        ///< [rows, k]
  std::int64_t row_stride;        ///< elements
  std::int32_t k;
  std::int32_t next_n;    ///< decode only
  std::int32_t absolute;  ///< 1: positions are columns of the logits; 0: counted from the row's first column
  std::int32_t reserved;
};
static_assert(sizeof(TopKArgs) == 64, "the kernels read this layout");

}  // namespace attest::contract
