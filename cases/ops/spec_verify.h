// SPDX-License-Identifier: MIT
//
// op spec_verify: which drafted tokens stand (reference/speculative.h), given the target's probabilities, the
// draft's, and the random draws.
//
//   "shape": {"vocab": 8, "max_spec_len": 4, "draft_probs": true, "tree": false, "rows": "mixed",
//             "padded_requests": 0, "repeats": 1, "requests": [{"drafts": 3, "greedy": false}]}
//
// `repeats` above 1 asks the same requests again and again with fresh drafts and draws: for tests of the
// distribution of what is emitted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cases/vocabulary.h"

namespace attest::cases {

struct Case;
class JsonObject;
class JsonWriter;

/// What the rows of probabilities look like.
enum class VerifyRows : std::uint8_t {
  mixed,       ///< any of the others but non_finite, row by row
  dense,       ///< all tokens, a few of them likely
  sparse,      ///< top-k: few tokens with probability, in part others than the draft's
  dyadic,      ///< powers of two: ratios without rounding, draws placed on and beside them
  equal,       ///< target and draft agree: the residual is zero
  disjoint,    ///< target and draft share no token
  non_finite,  ///< dense with NaN or infinity in some places, or everywhere
};
std::span<const char* const> names(VerifyRows);

struct VerifyRequest {
  int drafts = 0;  ///< 0..max_spec_len; in a tree the number of nodes, 0..31 and no more than vocab
  bool greedy = false;
  bool operator==(const VerifyRequest&) const = default;
};

struct SpecVerify {
  static constexpr const char* op = "spec_verify";

  int vocab = 8;            ///< 2..8192
  int max_spec_len = 4;     ///< 1..16: most tokens that can be accepted; in a tree its depth
  bool draft_probs = true;  ///< false: drafts without probabilities, as an n-gram proposer's. A tree: false
  bool tree = false;
  VerifyRows rows = VerifyRows::mixed;
  int padded_requests = 0;              ///< 0..64 rows of the output that belong to nobody, behind the others
  int repeats = 1;                      ///< 1..4096
  std::vector<VerifyRequest> requests;  ///< 1..256
  bool operator==(const SpecVerify&) const = default;
};

/// Requests are the case's, `repeats` times over: request r of repetition k is k * requests.size() + r.
/// Rows of probabilities: one per draft; in a tree one more per request, the root's, in front of its nodes'.
struct SpecVerifyInputs {
  std::vector<std::int32_t> cu_num_drafts;  ///< [requests] running sum of drafts, each request's included
  std::vector<std::int32_t> draft_tokens;   ///< [total drafts] 0..vocab-1; siblings of a tree differ
  std::vector<std::int32_t> greedy;         ///< [requests] 0 or 1
  std::vector<float> target_probs;          ///< [rows, vocab]
  std::vector<float> draft_probs;           ///< [rows, vocab]; empty without draft_probs
  std::vector<double> uniforms;             ///< [rows] in [0, 1)
  std::vector<float> exponentials;          ///< [requests, vocab] positive
  std::vector<std::int32_t> bonus;          ///< [requests] 0..vocab-1; unused in a tree
  std::vector<std::uint32_t> ancestors;     ///< tree: [total drafts] bit j: node j is above, or is, the node
  std::vector<std::int32_t> depth;          ///< tree: [total drafts] 1 for the root's children
};

void read(const JsonObject& root, SpecVerify& p);
void write(JsonWriter& writer, const SpecVerify& p);
/// Throws CaseError. Refuses more than 4 Mi probabilities, and fills other than normal.
void validate(const Case& c, const SpecVerify& p);
SpecVerifyInputs materialise(const Case& c, const SpecVerify& p);

}  // namespace attest::cases
