// SPDX-License-Identifier: MIT
//
// The launch contract of attest's merge of partial attention states, shared by the kernel and the host:
// C++17, fixed-width types only.
//
//   merge_states_<state>_<out>   state, out in {bf16, f32}: merge_states_bf16_bf16, merge_states_bf16_f32, ...
//     grid   (ceil(tokens * heads / 4), 1, 1) workgroups
//     block  256: one wave per row
//
// Takes its struct by value, passed as one buffer (HIP_LAUNCH_PARAM_BUFFER_POINTER). Strides count elements;
// those of out and of the states are even, and buffers at least 4-byte aligned. out may be the memory of one
// state, with the same strides.
#pragma once

#include <cstdint>

namespace attest::contract {

inline constexpr int merge_threads = 256;
inline constexpr int rows_per_merge = 4;      ///< rows of a workgroup: one per wave
inline constexpr int max_merged_states = 32;  ///< half a wave looks at their lse

struct MergedStateArgs {
  const void* out;   ///< [tokens, heads, head_dim]; not read where lse is infinite
  const float* lse;  ///< +-inf: this state has no key
  std::int64_t token_stride;
  std::int64_t head_stride;
};
static_assert(sizeof(MergedStateArgs) == 32, "the kernels read this layout");

struct MergeStatesArgs {
  const MergedStateArgs* state;  ///< [states], in device memory
  void* out;                     ///< [tokens, heads, head_dim]
  float* lse;                    ///< may be null; -inf when no state has a key
  std::int64_t out_token_stride;
  std::int64_t out_head_stride;
  std::int64_t lse_token_stride;  ///< of every lse
  std::int64_t lse_head_stride;
  std::int32_t states;  ///< 1..32
  std::int32_t tokens;
  std::int32_t heads;
  std::int32_t head_dim;  ///< even
  std::int32_t base_two;  ///< 1: every lse is a base-2 logarithm; 0: natural
  std::int32_t reserved;
};
static_assert(sizeof(MergeStatesArgs) == 80, "the kernels read this layout");

}  // namespace attest::contract
