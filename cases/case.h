// SPDX-License-Identifier: MIT
//
// A Case: one problem, small enough to read, complete enough to rebuild every input byte on any machine.
//
//   Case c = parse_case(text);                 // CaseError names the field and the rule it breaks
//   std::string line = canonical_json(c);      // sorted keys, no spaces, all fields
//   std::string id = case_id(c);               // 16 hex digits, a hash of that line
//   Inputs in = materialise(c);                // cases/inputs.h
//
// On disk a case is JSON (the file form is indented and may leave out defaults):
//
//   {
//     "schema": 1, "op": "mla_decode", "seed": "0x2a",
//     "shape":   {"heads": 16, "page_size": 16, "num_splits": 2, "causal": true, "return_lse": true,
//                 "requests": [{"q_len": 3, "kv_len": 37}, {"q_len": 1, "kv_len": 0}]},
//     "formats": {"q": "bf16", "kv": "fp8_e4m3fnuz", "out": "bf16"},
//     "scales":  {"sm_scale": "0x3d93cd3a", "q_scale": "0x3f800000", "kv_scale": "0x3f800000"},
//     "data":    {"fill": "needle"},
//     "memory":  {"placement": "shuffled", "unused": "nan", "output": "nan", "scratch": "nan",
//                 "page_padding_bytes": 0, "guard_bytes": 4096, "prefix_sharing": false}
//   }
//
// Scales are f32 and written as their bits, so that they survive every JSON library; the file form adds the
// value for people ("sm_scale_value": 0.07216878), and a value that contradicts its bits is refused.
// "schema", "op", "seed", "shape" with its "requests", and both lengths of a request are required; the rest
// defaults as below. Numbers are checked against the ranges below, and fields against each other: see
// `validate`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cases/problem.h"
#include "cases/vocabulary.h"

namespace attest::cases {

struct Case {
  std::uint64_t seed = 0;
  Problem problem;
  DataRecipe data;
  MemoryRecipe memory;
  bool operator==(const Case&) const = default;
};

inline constexpr int schema_version = 1;

/// "mla_decode", ...
const char* op_name(const Problem& problem);
/// All of them, in the order of Problem.
std::vector<std::string> op_names();

/// Throws CaseError on malformed JSON (with line and column), an unknown or missing field, a wrong type,
/// another schema version, a value out of range, or fields that contradict each other.
Case parse_case(std::string_view json);

/// Throws CaseError when a field is out of range or two contradict each other. Of mla_decode:
///   fp8 q with a bf16 cache; a scale other than 1 on a bf16 tensor; constant_scores or exact with a kv_scale
///   that is no power of two (their results would not be exact); scales with which an fp8 q cannot reach the
///   scores that needle, negative_offset or deep_offset promise; no query in the whole batch; a cache of more
///   than 4 GiB, or a pool of more than 16 GiB addressed to place it.
void validate(const Case& c);

/// One line, sorted keys, every field, no spaces. Equal cases give equal bytes.
std::string canonical_json(const Case& c);

/// The file form: indented, every field, newline at the end. parse_case reads it back to an equal case.
std::string pretty_json(const Case& c);

/// 16 hex digits: 64-bit FNV-1a of canonical_json. Needs stability, not secrecy.
std::string case_id(const Case& c);

}  // namespace attest::cases
