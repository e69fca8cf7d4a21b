// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/verdict.h"

namespace attest::oracle {

/// The lists of a plan (device/contracts name them; all int32).
struct PlanLists {
  bool persistent = false;
  int works = 0, merged_tiles = 0, pieces = 0;
  std::span<const std::int32_t> work_indptr;         ///< [slots + 1]
  std::span<const std::int32_t> work_info_set;       ///< [at least works, 8]
  std::span<const std::int32_t> reduce_indptr;       ///< [max_tiles + 1]
  std::span<const std::int32_t> reduce_final_map;    ///< [max_tiles, 2]
  std::span<const std::int32_t> reduce_partial_map;  ///< [at least pieces]
};

/// What is wrong with a plan for a batch: short, stable, without numbers; empty when nothing is. Whoever made
/// it and however it cuts, a plan is right when
///
///   there is one exactly where a kernel supports the longest q_len;
///   the works of the slots follow each other from 0 to their number;
///   no work is empty, none holds more rows than a kernel can, none leaves its request;
///   each cut lies at a multiple of the granularity, counted from the request's first key;
///   kv_offset counts the request's keys behind the work;
///   every query row sees every key up to its bound exactly once;
///   a row range that one work covers is written by it (partial_qo_loc -1), and otherwise its pieces have
///   partial rows that nobody shares, which the reduce lists name, in order, for just these rows;
///   rows that see no key are in the reduce lists, with no pieces;
///   reduce_indptr goes on with its last value.
std::string plan_defect(const PlanLists& plan, const cases::WorkPlan& problem,
                        const cases::WorkPlanInputs::Step& step);

/// Outputs "step<i>.<list>" for the lists, "header" [4 and more] and "out" [queries, 64], "lse" [queries]
/// f32.
Verdict judge_work_plan(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs);

}  // namespace attest::oracle
