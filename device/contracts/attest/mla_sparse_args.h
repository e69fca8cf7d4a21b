// SPDX-License-Identifier: MIT
//
// The launch contract of attest's own sparse MLA attention, shared by the kernels and the host: C++17,
// fixed-width types only.
//
//   mla_sparse_<q>_<kv>   bf16_bf16, bf16_fp8, fp8_fp8, bf16_ds
//     grid   (ceil(heads / 16), total_q, num_splits) workgroups
//     block  256
//     writes out and lse when num_splits is 1, else partial_out and partial_lse; then split_reduce follows
//            (mla_decode_args.h)
//
// A list entry below 0 or not below num_slots is a hole. Nothing is written for query tokens from *total_rows
// on.
#pragma once

#include "device/contracts/attest/mla_decode_args.h"

namespace attest::contract {

inline constexpr int ds_row_bytes = 656;
inline constexpr int ds_scales_offset = 512;
inline constexpr int ds_rope_offset = 528;

struct MlaSparseArgs {
  const void* q;                   ///< [total_q, heads, 576] bf16 or fp8
  const void* kv_pool;             ///< pages of page_size rows
  const std::int32_t* indices;     ///< [total_q, topk] slots
  const std::int32_t* lengths;     ///< [total_q] 0..topk
  const std::int32_t* total_rows;  ///< query tokens that are to be done; null: all of the grid
  void* out;                       ///< [total_q, heads, 512] bf16
  float* lse;                      ///< [total_q, heads], natural logarithm; may be null
  float* partial_out;              ///< [total_q, heads, num_splits, 512]; null when num_splits is 1
  float* partial_lse;              ///< [total_q, heads, num_splits], -inf when empty
  std::uint32_t page_stride;       ///< bytes from one page to the next, a multiple of 16
  std::int32_t page_size;          ///< slots
  std::int32_t heads;
  std::int32_t topk;
  std::int32_t num_slots;  ///< of the pool
  std::int32_t num_splits;
  float score_scale;  ///< sm_scale * q_scale * kv_scale
  float out_scale;    ///< kv_scale
};
static_assert(sizeof(MlaSparseArgs) == 104, "the kernels read this layout");

}  // namespace attest::contract
