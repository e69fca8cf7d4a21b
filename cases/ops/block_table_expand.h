// SPDX-License-Identifier: MIT
//
// op block_table_expand: block tables of a serving engine to token-level lists (reference/block_table.h).
//
// A case is a sequence of batches that one metadata builder prepares, because half of what went wrong in
// public never shows in a single call: lists of a captured graph that keep the tail of a longer batch, state
// that the builder keeps and the next batch overwrites.
//
//   "shape": {"manager_block": 16, "kernel_block": 4, "graph": true, "max_requests": 4, "index_capacity": 64,
//             "spare_columns": 2, "steps": [{"num_tokens": 8, "requests": [{"q_len": 4, "kv_len": 7},
//                                                                          {"q_len": 0, "kv_len": 0}]}]}
//
//   eager   every batch has lists of its own, of the size it needs
//   graph   all batches write the same lists, sized once: kv_indices of index_capacity with -1 behind the
//           live ones, indptrs of max_requests + 1 that go on with their last value
#pragma once

#include <cstdint>
#include <vector>

#include "cases/vocabulary.h"

namespace attest::cases {

struct Case;
class JsonObject;
class JsonWriter;

/// One batch. Padded requests are written out: q_len 0, kv_len 0.
struct BlockTableStep {
  int num_tokens = 0;             ///< queries, padding included; 0: as many as there are. Graph only
  std::vector<Request> requests;  ///< 1..512; kv_len at least q_len
  bool operator==(const BlockTableStep&) const = default;
};

struct BlockTableExpand {
  static constexpr const char* op = "block_table_expand";

  int manager_block = 16;  ///< 1..1024 tokens
  int kernel_block = 16;   ///< tokens, divides manager_block
  bool graph = false;
  bool interleaved = false;  ///< all batches are prepared before the first one's lists are filled. Eager only
  int max_requests = 0;      ///< graph: 1..512, at least the requests of every step; eager: 0
  int index_capacity = 0;    ///< graph: 1..1048576, at least the tokens of every step; eager: 0
  int spare_columns = 1;     ///< 0..64 columns of the table that nobody needs
  std::vector<BlockTableStep> steps;  ///< 1..8
  bool operator==(const BlockTableExpand&) const = default;
};

struct BlockTableExpandInputs {
  struct Step {
    std::vector<std::int32_t> query_start_loc;  ///< [rows + 1]
    std::vector<std::int32_t> seq_lens;         ///< [rows]
    std::vector<std::int32_t> block_table;      ///< [rows, table_width]; garbage behind the live entries
    int num_tokens = 0;
  };
  int table_width = 0;  ///< columns, the same for all steps
  std::vector<Step> steps;
};

/// Tokens a step can need: the sum of its lengths, and dummy lengths of requests without a query.
std::int64_t most_tokens(const BlockTableStep& step);

void read(const JsonObject& root, BlockTableExpand& p);
void write(JsonWriter& writer, const BlockTableExpand& p);
/// Throws CaseError. Refuses fills other than normal: there are no values.
void validate(const Case& c, const BlockTableExpand& p);
BlockTableExpandInputs materialise(const Case& c, const BlockTableExpand& p);

}  // namespace attest::cases
