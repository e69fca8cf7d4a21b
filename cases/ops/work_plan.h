// SPDX-License-Identifier: MIT
//
// op work_plan: a persistent split schedule, made on the device and then run: which workgroup takes which
// query rows over which part of the KV, which partial results are merged into which rows.
//
// A case is a sequence of batches that share one plan object, because the faults of plans are those of
// reuse: a plan cached under too weak a key is right for the first batch and silently wrong for the next one
// (vllm-project/vllm#47042), a plan in memory that was freed and used again (ROCm/aiter#5193).
//
//   "shape": {"slots": 8, "granularity": 16, "tile_tokens": 4, "persistent_q_len": 4, "causal": true,
//             "steps": [{"freed": false, "requests": [{"q_len": 4, "kv_len": 100}]}]}
//
// What is run is attention with one head of 64 columns whose scores are whole multiples of ln 2, given per
// key, and whose values are small integers: softmax, splits and merges as in decode, with sums that are exact
// in fp32.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/vocabulary.h"

namespace attest::cases {

struct Case;
class JsonObject;
class JsonWriter;

struct WorkPlanStep {
  bool freed = false;             ///< the plan's memory was used for something else since the last step
  std::vector<Request> requests;  ///< 1..64; kv_len 0..4096
  bool operator==(const WorkPlanStep&) const = default;
};

struct WorkPlan {
  static constexpr const char* op = "work_plan";

  int slots = 8;         ///< 1..304 workgroups
  int granularity = 16;  ///< 1..256 tokens, a power of two: cuts lie at multiples of it
  int tile_tokens = 4;   ///< 1..16 query tokens that one work can hold
  int persistent_q_len =
      4;  ///< 1..16: with a longer query in the batch there is no plan, and the kernel does without
  bool causal = true;               ///< bottom-right aligned
  std::vector<WorkPlanStep> steps;  ///< 1..8, at least one with a query
  bool operator==(const WorkPlan&) const = default;
};

struct WorkPlanInputs {
  static constexpr int columns = 64;
  static constexpr int most_score = 3;  ///< of 0..most_score: the key's weight is 2 to it
  static constexpr int most_value = 8;  ///< of -most_value..most_value

  struct Step {
    std::vector<std::int32_t> qo_indptr;  ///< [batch + 1]
    std::vector<std::int32_t> kv_indptr;  ///< [batch + 1]
    std::vector<std::int32_t> scores;     ///< [kv_indptr[batch]] in ln 2
    std::vector<float> values;            ///< [kv_indptr[batch], 64]
  };
  std::vector<Step> steps;
};

/// Row tiles of a step at most, over all steps; works are at most that plus slots.
int most_tiles(const WorkPlan& p);

void read(const JsonObject& root, WorkPlan& p);
void write(JsonWriter& writer, const WorkPlan& p);
/// Throws CaseError. Refuses fills other than normal.
void validate(const Case& c, const WorkPlan& p);
WorkPlanInputs materialise(const Case& c, const WorkPlan& p);

}  // namespace attest::cases
