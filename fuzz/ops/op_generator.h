// SPDX-License-Identifier: MIT
//
// What an op brings to case generation and shrinking; fuzz/generate.h is the face of it.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/case.h"

namespace attest::fuzz {

struct OpGenerator {
  /// A valid case, whole: problem, fill, memory, seed. Called inside rc::gen::exec (fuzz/ops/draw.h).
  cases::Case (*draw)();
  /// Simpler problems, most aggressive first. The recipes, which all ops share, are shrunk elsewhere; what is
  /// invalid or a repetition is dropped there too.
  std::vector<cases::Case> (*shrink)(const cases::Case& c);
  /// Of the problem: a sum of non-negative integers, each of which `shrink` makes smaller or leaves.
  std::int64_t (*complexity)(const cases::Case& c);
  /// How much a kernel has to do, in units of about 25 microseconds of simulation.
  std::int64_t (*work)(const cases::Case& c);
};

extern const OpGenerator merge_states_generator;
extern const OpGenerator mla_decode_generator;
extern const OpGenerator mla_sparse_generator;
extern const OpGenerator dense_switch_generator;
extern const OpGenerator block_table_expand_generator;
extern const OpGenerator spec_verify_generator;
extern const OpGenerator work_plan_generator;
extern const OpGenerator mla_prefill_generator;
extern const OpGenerator verify_attention_generator;
extern const OpGenerator index_remap_generator;
extern const OpGenerator topk_generator;
extern const OpGenerator cache_write_generator;
extern const OpGenerator indexer_logits_generator;

}  // namespace attest::fuzz
