// SPDX-License-Identifier: MIT
//
// The launch contract of attest's prefill in the MHA form of MLA, shared by the kernel and the host: C++17,
// fixed-width types only.
//
//   mla_prefill_<qkv>_<cache>   qkv, cache in {bf16, fp8}
//     grid   (ceil(max over requests of q_len * heads / 4), batch, chunks + 1) workgroups
//     block  256: one wave per row
//     writes a partial state per chunk of context, the last one for the keys of the call
//
//   merge_states_f32_bf16       merges the chunks + 1 states (merge_states_args.h)
//
// Takes its struct by value, passed as one buffer (HIP_LAUNCH_PARAM_BUFFER_POINTER).
#pragma once

#include <cstdint>

namespace attest::contract {

inline constexpr int prefill_threads = 256;
inline constexpr int rows_per_prefill = 4;  ///< rows of a workgroup: one per wave
inline constexpr int prefill_k_columns = 192;
inline constexpr int prefill_v_columns = 128;

struct MlaPrefillArgs {
  const void* q;                    ///< [total_q, heads, 192] bf16 or fp8 e4m3 FNUZ
  const void* k;                    ///< [total_kv, heads, 192] in the format of q
  const void* v;                    ///< [total_kv, heads, v_stride], 128 of each, in the format of q
  const void* context_pool;         ///< pages of page_size tokens of [heads, 320], K then V, bf16 or fp8
  const std::int32_t* qo_indptr;    ///< [batch + 1] tokens of q
  const std::int32_t* kv_indptr;    ///< [batch + 1] tokens of k and v
  const std::int32_t* context_len;  ///< [batch] tokens in the cache
  const std::int32_t* page_indptr;  ///< [batch + 1] entries of page_indices
  const std::int32_t* page_indices;
  float* partial_out;         ///< [chunks + 1, total_q, heads, 128] normalised
  float* partial_lse;         ///< [chunks + 1, total_q, heads] natural logarithm, -inf without keys
  std::uint64_t page_stride;  ///< bytes from one page to the next, a multiple of 16
  std::int32_t total_q;
  std::int32_t heads;
  std::int32_t page_size;     ///< tokens
  std::int32_t chunk_len;     ///< tokens of context per chunk
  std::int32_t chunks;        ///< of the longest context
  std::int32_t v_stride;      ///< elements from one head of v to the next
  float call_score_scale;     ///< sm_scale
  float context_score_scale;  ///< sm_scale * kv_scale
  float context_out_scale;    ///< kv_scale
  std::int32_t reserved;
};
static_assert(sizeof(MlaPrefillArgs) == 136, "the kernels read this layout");

}  // namespace attest::contract
