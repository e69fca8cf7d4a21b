// SPDX-License-Identifier: MIT
//
// Persistent decode: which workgroup computes which query rows over which part of the KV, and which partial
// results are then reduced into which output rows.
//
// Two planners. `plan_v1_2` follows AITER's (get_mla_metadata_v1_2, the sequential one, dense; its parallel
// form gives the same plan): its choices are under test. `plan_simple` is a plain valid schedule
// that stays inside what every kernel documents, so that a failure under `plan_v1_2` alone blames the plan
// and not the kernel.
//
// Source: ROCm/aiter, csrc/kernels/mla/metadata/v1_2_device.cuh, commit e4048607a5.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace attest::device::aiter {

/// One entry of work_info_set. Rows count query tokens of the folded batch; kv positions count entries of
/// kv_page_indices.
struct WorkInfo {
  std::int32_t batch_idx = 0;
  std::int32_t partial_qo_loc = -1;  ///< first partial row; -1 = this piece writes the final output
  std::int32_t qo_start = 0, qo_end = 0;
  std::int32_t kv_start = 0, kv_end = 0;
  std::int32_t kv_offset = 0;  ///< tokens, never pages, of this request behind kv_end
  std::int32_t pad = 0;
};
static_assert(sizeof(WorkInfo) == 32);

struct WorkPlan {
  std::vector<std::int32_t> work_indptr;         ///< [slots + 1]
  std::vector<WorkInfo> work_info_set;           ///< [works]
  std::vector<std::int32_t> reduce_indptr;       ///< [tiles + 1], the tail padded with the total
  std::vector<std::int32_t> reduce_final_map;    ///< [tiles, 2]
  std::vector<std::int32_t> reduce_partial_map;  ///< [pieces of split tiles]
  int partial_rows = 0;                          ///< rows of the partial buffers
};

struct PlanRequest {
  std::span<const std::int32_t> qo_indptr;  ///< [batch + 1]
  std::span<const std::int32_t> kv_indptr;  ///< [batch + 1], tokens
  int fold = 1;                             ///< each request becomes `fold` requests that share its KV
  int heads = 16;                           ///< after folding
  int max_q_len = 1;
  int granularity = 16;          ///< tokens; a power of two
  int slots = 304;               ///< workgroups: compute units of an MI300X
  int max_split_per_batch = -1;  ///< -1 = no limit
  bool causal = true;
  /// Above 1 kv_indptr, granularity and the plan's KV ranges count pages; there is no trim and no tail rule
  /// then. plan_v1_2 with fold 1 only: folded, AITER reads kv_last_page_lens past its end.
  int page_size = 1;
  std::span<const std::int32_t> kv_last_page_lens = {};  ///< [batch]; unread for page_size 1
};

WorkPlan plan_v1_2(const PlanRequest& request);

/// Every request in ceil(kv_len / pieces) rounded up to the granularity, dealt out to the slots in turn; no
/// internal cut leaves fewer than max_q_len tokens behind it.
WorkPlan plan_simple(const PlanRequest& request, int pieces);

/// What is wrong with a plan, in words; empty when nothing is: works non-empty and in range, every query
/// row's visible KV covered exactly once, partial rows disjoint, reduce maps naming exactly the pieces of the
/// split tiles.
std::string plan_defect(const WorkPlan& plan, const PlanRequest& request);

}  // namespace attest::device::aiter
