// SPDX-License-Identifier: MIT
//
// The launch contract of attest's persistent schedule, shared by the kernels and the host: C++17, fixed-width
// types only. One batch is three launches:
//
//   work_plan_build   grid 1, block 64            the plan, unless it is there for this very batch already
//   work_plan_run     grid slots, block 64        each workgroup its works; without a plan, its share of rows
//   work_plan_merge   grid max_tiles, block 64    split tiles, and tiles that see no key
//
// The lists are those of AITER's persistent MLA kernels (aiter/ops/attention.py, get_mla_metadata_v1), all
// int32:
//
//   work_indptr         [slots + 1] works of a workgroup
//   work_info_set       [works, 8] batch_idx, partial_qo_loc (-1: final rows), qo_start, qo_end, kv_start,
//                       kv_end, kv_offset (tokens of the request behind kv_end), 0
//   reduce_indptr       [max_tiles + 1] pieces of a merged tile; goes on with its last value
//   reduce_final_map    [max_tiles, 2] first and last row + 1 of a merged tile
//   reduce_partial_map  [pieces] first partial row of each piece
//
// A tile that sees no key has no work and no pieces, and is merged: from nothing, to the identity.
#pragma once

#include <cstdint>

namespace attest::contract {

inline constexpr int plan_threads = 64;
inline constexpr int plan_columns = 64;

/// Words of `header`.
enum PlanHeader { plan_persistent = 0, plan_works = 1, plan_merged_tiles = 2, plan_pieces = 3, plan_key = 4 };

struct WorkPlanArgs {
  const std::int32_t* qo_indptr;  ///< [batch + 1]
  const std::int32_t* kv_indptr;  ///< [batch + 1]
  const std::int32_t* scores;     ///< [keys] in ln 2
  const float* values;            ///< [keys, 64]
  std::int32_t*
      header;  ///< [4 + 1 + 2 (max_batch + 1)] see PlanHeader; from plan_key on: batch, both indptrs
  std::int32_t* work_indptr;
  std::int32_t* work_info_set;
  std::int32_t* reduce_indptr;
  std::int32_t* reduce_final_map;
  std::int32_t* reduce_partial_map;
  std::int32_t* memo;  ///< [2] the caller's, outlives the plan; may hold anything
  float* partial_out;  ///< [partial rows, 64] normalised
  float* partial_lse;  ///< [partial rows] natural logarithm, -inf when empty
  float* out;          ///< [queries, 64]
  float* lse;          ///< [queries]
  std::int32_t batch;
  std::int32_t max_batch;
  std::int32_t slots;
  std::int32_t granularity;
  std::int32_t tile_tokens;
  std::int32_t persistent_q_len;
  std::int32_t causal;
  std::int32_t max_tiles;
};
static_assert(sizeof(WorkPlanArgs) == 152, "the kernels read this layout");

}  // namespace attest::contract
