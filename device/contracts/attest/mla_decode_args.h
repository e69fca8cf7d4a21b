// SPDX-License-Identifier: MIT
//
// The launch contract of attest's own MLA decode, shared by the kernels and the host: C++17, fixed-width
// types only.
//
//   mla_decode_<q>_<kv>   q, kv in {bf16, fp8}: mla_decode_bf16_bf16, mla_decode_bf16_fp8, mla_decode_fp8_fp8
//     grid   (ceil(max over requests of q_len * heads / 16), batch, num_splits) workgroups
//     block  256
//     writes out and lse when num_splits is 1, else partial_out and partial_lse
//
//   split_reduce          only when num_splits > 1
//     grid   (ceil(total_q * heads / 4), 1, 1) workgroups
//     block  256
//     reads the partials, writes out and lse
//
// Each kernel takes its struct by value, passed as one buffer (HIP_LAUNCH_PARAM_BUFFER_POINTER).
//
// Tensors are contiguous and at least 16-byte aligned. A cache row is 576 elements: 512 latent columns, which
// are V as well, then 64 rope columns, which are K only. Formats: bf16, and fp8 e4m3 FNUZ as gfx942 has it.
#pragma once

#include <cstdint>

namespace attest::contract {

inline constexpr int kv_lora_rank = 512;
inline constexpr int qk_rope_head_dim = 64;
inline constexpr int row_width = kv_lora_rank + qk_rope_head_dim;

inline constexpr int threads = 256;        ///< work-items of a workgroup, both kernels: four waves
inline constexpr int rows_per_group = 16;  ///< query rows of an mla_decode workgroup
inline constexpr int tile_tokens = 32;     ///< KV tokens staged at a time; splits begin at multiples of it
inline constexpr int rows_per_reduce = 4;  ///< rows of a split_reduce workgroup: one per wave
inline constexpr int max_splits = 32;

struct MlaDecodeArgs {
  const void* q;                        ///< [total_q, heads, 576] bf16 or fp8
  const void* kv_pool;                  ///< pages of page_size rows of 576, bf16 or fp8
  const std::int32_t* qo_indptr;        ///< [batch + 1] rows of q
  const std::int32_t* kv_indptr;        ///< [batch + 1] entries of kv_page_indices
  const std::int32_t* kv_page_indices;  ///< [kv_indptr[batch]]
  const std::int32_t*
      kv_last_page_len;       ///< [batch] tokens in the last page, 1..page_size; unread without pages
  void* out;                  ///< [total_q, heads, 512] bf16
  float* lse;                 ///< [total_q, heads], natural logarithm; may be null
  float* partial_out;         ///< [total_q, heads, num_splits, 512] normalised; null when num_splits is 1
  float* partial_lse;         ///< [total_q, heads, num_splits] natural logarithm, -inf when empty
  std::uint32_t page_stride;  ///< bytes from one page to the next, a multiple of 16
  std::int32_t page_size;     ///< tokens
  std::int32_t heads;
  std::int32_t num_splits;
  std::int32_t causal;  ///< 0 or 1
  float score_scale;    ///< sm_scale * q_scale * kv_scale
  float out_scale;      ///< kv_scale
};
static_assert(sizeof(MlaDecodeArgs) == 112, "the kernels read this layout");

struct SplitReduceArgs {
  const float* partial_out;  ///< as above
  const float* partial_lse;  ///< as above
  void* out;                 ///< [rows, 512] bf16
  float* lse;                ///< [rows]; may be null
  std::int32_t rows;         ///< total_q * heads
  std::int32_t num_splits;   ///< 1..32
};
static_assert(sizeof(SplitReduceArgs) == 40, "the kernels read this layout");

}  // namespace attest::contract
