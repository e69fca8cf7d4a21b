// SPDX-License-Identifier: MIT
//
// The launch contract of attest's own dense_switch, shared by the kernels and the host: C++17, fixed-width
// types only. In this order:
//
//   switch_plan      grid (1, 1, 1), block 64; once per batch, metadata stays in its buffers between batches
//   switch_remap     grid (ceil(topk / 64), total_q, 1), block 64
//   mla_sparse_bf16_<kv> with total_rows = &plan->sparse_tokens (mla_sparse_args.h), into `latent`
//   switch_project   grid (total_q, 1, 1), block 128
//   switch_mha       grid (heads, total_q, 1), block 64
//
// Every launch covers all tokens of the batch and asks the plan which of them are its own, so that one
// captured graph serves both outcomes.
#pragma once

#include <cstdint>

namespace attest::contract {

inline constexpr int dense_width = 192;  ///< q and k of a head, dense form
inline constexpr int value_width = 128;  ///< v of a head, and the output
inline constexpr int switch_threads = 64;
inline constexpr int project_threads = 128;

struct SwitchPlan {
  std::int32_t dense;                      ///< 1: prefills run the dense form
  std::int32_t sparse_tokens;              ///< leading tokens that run the sparse form
  std::int32_t requests, tokens, longest;  ///< of the batch that this was made for
};

struct SwitchPlanArgs {
  const std::int32_t* qo_indptr;  ///< [requests + 1]
  const std::int32_t* kv_lens;    ///< [requests]
  SwitchPlan* plan;
  std::int32_t* lengths;     ///< [total_q] entries of a token's list: min(position + 1, topk)
  std::int32_t* request_of;  ///< [total_q]
  std::int32_t requests;
  std::int32_t topk;
};
static_assert(sizeof(SwitchPlanArgs) == 48, "the kernels read this layout");

struct SwitchRemapArgs {
  const SwitchPlan* plan;
  const std::int32_t* request_of;
  const std::int32_t* topk_ids;     ///< [total_q, topk] tokens of the request
  const std::int32_t* block_table;  ///< [requests, table_width]
  std::int32_t* indices;            ///< [total_q, topk] slots; -1 for what is no token
  std::int32_t topk;
  std::int32_t table_width;
  std::int32_t page_size;
  std::int32_t unused;
};
static_assert(sizeof(SwitchRemapArgs) == 56, "the kernels read this layout");

struct SwitchProjectArgs {
  const SwitchPlan* plan;
  const void* latent;             ///< [total_q, heads, 512] bf16
  const std::int32_t* v_columns;  ///< [heads, 128]
  void* out;                      ///< [total_q, heads, 128] bf16
  std::int32_t heads;
  std::int32_t unused;
};
static_assert(sizeof(SwitchProjectArgs) == 40, "the kernels read this layout");

struct SwitchMhaArgs {
  const SwitchPlan* plan;
  const std::int32_t* request_of;
  const std::int32_t* qo_indptr;
  const std::int32_t* kv_lens;
  const std::int32_t* k_indptr;  ///< [requests + 1] rows of k and v
  const void* q;                 ///< [total_q, heads, 192] bf16
  const void* k;                 ///< [k_indptr[requests], heads, 192] bf16
  const void* v;                 ///< [k_indptr[requests], heads, 128] bf16
  void* out;                     ///< [total_q, heads, 128] bf16
  std::int32_t heads;
  float sm_scale;
};
static_assert(sizeof(SwitchMhaArgs) == 80, "the kernels read this layout");

}  // namespace attest::contract
