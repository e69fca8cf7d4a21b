// SPDX-License-Identifier: MIT
//
// The launch contract of attest's attention of speculative verification, shared by the kernel and the host:
// C++17, fixed-width types only.
//
//   verify_attention_<kv>   kv in {bf16, fp8}
//     grid   (ceil(max over requests of its rows / 4), batch, 1) workgroups
//     block  256: one wave per row
//
// Takes its struct by value, passed as one buffer (HIP_LAUNCH_PARAM_BUFFER_POINTER).
//
// Rows. q of a request is [positions, heads, 576]; its rows are numbered position * heads + head. A caller
// that folds heads passes heads / fold heads and fold times as many positions, which leaves every byte where
// it is; `fold` positions then are one token. The first `lead` tokens of every request are padding: their
// rows are neither read nor written. Token lead + i is node i of the request's tree and sees the context,
// which is all of the cache but the last `nodes` tokens, and the nodes in its mask.
#pragma once

#include <cstdint>

namespace attest::contract {

inline constexpr int verify_threads = 256;
inline constexpr int rows_per_verify = 4;  ///< rows of a workgroup: one per wave
inline constexpr int most_tree_nodes = 64;

struct VerifyAttentionArgs {
  const void* q;                        ///< [positions, heads, 576] bf16, of all requests
  const void* kv_pool;                  ///< pages of page_size rows of 576, bf16 or fp8 e4m3 FNUZ
  const std::int32_t* q_indptr;         ///< [batch + 1] positions of q
  const std::int32_t* node_indptr;      ///< [batch + 1] entries of mask
  const std::uint64_t* mask;            ///< [nodes] bit j: sees node j of its request; other bits are garbage
  const std::int32_t* kv_indptr;        ///< [batch + 1] entries of kv_page_indices
  const std::int32_t* kv_page_indices;  ///< [kv_indptr[batch]]
  const std::int32_t* kv_last_page_len;  ///< [batch] tokens in the last page, 1..page_size
  void* out;                             ///< [positions, heads, 512] bf16
  float* lse;                            ///< [positions, heads], natural logarithm; may be null
  std::uint32_t page_stride;             ///< bytes from one page to the next, a multiple of 16
  std::int32_t page_size;                ///< tokens
  std::int32_t heads;                    ///< of q as passed
  std::int32_t fold;                     ///< positions per token, 1 when not folded
  std::int32_t lead;                     ///< tokens
  float score_scale;                     ///< sm_scale * kv_scale
  float out_scale;                       ///< kv_scale
  std::int32_t reserved;
};
static_assert(sizeof(VerifyAttentionArgs) == 112, "the kernels read this layout");

}  // namespace attest::contract
