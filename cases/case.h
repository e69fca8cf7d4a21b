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
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace attest::cases {

/// Number formats by the names of case files. Formats belong to the case, never to the machine.
enum class Format : std::uint8_t { bf16, f16, f32, fp8_e4m3fn, fp8_e4m3fnuz, fp8_e5m2, fp8_e5m2fnuz, e8m0 };

/// How the values of q and KV are made: always jointly, since what makes a fault visible is their interplay.
/// The construction of each is in materialise.cpp; what each one shows, in the oracle's essay.
enum class Fill : std::uint8_t {
  normal,            ///< N(0,1)
  mean_shifted,      ///< a common vector plus 0.5 N(0,1)
  outlier_channels,  ///< N(0,1) with four channels 20 to 50 times larger
  needle,            ///< hash-coded +-1 V; each query row is aligned with one chosen key
  position_coded,    ///< one-hot V: the column names the row it came from
  constant_scores,   ///< q = 0: every weight is 1/n; +-1 hash-coded V
  wide_scores,       ///< N(0,1) with q 20 to 200 times larger
  negative_offset,   ///< every valid key scores -20 to -40: a zero-filled slot would win
  deep_offset,       ///< every valid key scores -100 to -200
  tiny,              ///< cache values near the smallest normal number of its format (fp8: and subnormal)
  cancelling,        ///< V comes in pairs of opposite sign and nearly equal weight
  saturating,        ///< a fifth of the cache at its format's largest finite magnitude (bf16: at 448)
  exact,  ///< q = 0 and small integers in V: every output is a small integer times kv_scale, exactly
};

/// What lies where nothing valid lies.
enum class Poison : std::uint8_t {
  nan,    ///< a NaN with a recognisable payload (all bits set in 16 and 32 bit formats)
  inf,    ///< infinity, or the format's NaN where it has none
  large,  ///< finite, 32 times N(0,1)
  stale,  ///< finite, indistinguishable from valid data: what a reused page holds
  zero,
};

/// Which physical pages hold the cache.
enum class Placement : std::uint8_t {
  ordered,
  shuffled,
  reversed,
  high,         ///< shuffled, with page ids from 2^16 on
  beyond_2gib,  ///< shuffled, byte offsets on both sides of 2^31
  beyond_4gib,  ///< shuffled, byte offsets on both sides of 2^32
};

struct Request {
  int q_len = 1;  ///< 0..16; 0 = a member of the batch with no query
  int kv_len =
      0;  ///< 0..131072 tokens, the new ones included; may be below q_len (leading rows are then empty)
  bool operator==(const Request&) const = default;
};

/// op "mla_decode": absorbed MLA attention over a paged cache (reference/attention.h), rows of 576, V of 512.
struct MlaDecode {
  int heads = 16;      ///< 1..128
  int page_size = 1;   ///< 1..1024 tokens
  int num_splits = 1;  ///< 1..32, of the KV range
  bool causal = true;  ///< bottom-right aligned
  bool return_lse = true;
  std::vector<Request> requests;    ///< 1..512, at least one with a query
  Format q_format = Format::bf16;   ///< bf16, or fp8_e4m3fnuz when kv_format is
  Format kv_format = Format::bf16;  ///< bf16 or fp8_e4m3fnuz
  Format out_format = Format::bf16;
  float sm_scale = 0.07216878F;  ///< 2^-10..2^3; 192^-0.5
  float q_scale = 1.0F;          ///< 2^-7..2^7, per tensor; 1 for bf16 q
  float kv_scale = 1.0F;         ///< 2^-7..2^7, per tensor; 1 for a bf16 cache
  bool operator==(const MlaDecode&) const = default;
};

struct DataRecipe {
  Fill fill = Fill::normal;
  bool operator==(const DataRecipe&) const = default;
};

/// The default is hostile.
struct MemoryRecipe {
  Placement placement = Placement::shuffled;
  Poison unused = Poison::nan;   ///< page tails, pages nobody owns, index entries past the live ones
  Poison output = Poison::nan;   ///< results before the launch
  Poison scratch = Poison::nan;  ///< split partials before the launch
  int page_padding_bytes = 0;    ///< 0..65536, a multiple of 16: page stride beyond its rows
  int guard_bytes = 4096;        ///< 256..65536, a multiple of 256: before and after every buffer
  bool prefix_sharing = false;   ///< requests share their leading full pages
  bool operator==(const MemoryRecipe&) const = default;
};

/// New ops join this variant; `op_name` and the JSON reader switch on it.
using Problem = std::variant<MlaDecode>;

struct Case {
  std::uint64_t seed = 0;
  Problem problem;
  DataRecipe data;
  MemoryRecipe memory;
  bool operator==(const Case&) const = default;
};

inline constexpr int schema_version = 1;

/// Bad input: what() is one line, "shape.heads: 129 is outside 1..128".
struct CaseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "mla_decode", ...
const char* op_name(const Problem& problem);
const char* name(Format format);
const char* name(Fill fill);
const char* name(Poison poison);
const char* name(Placement placement);

/// Throws CaseError on malformed JSON (with line and column), an unknown or missing field, a wrong type,
/// another schema version, a value out of range, or fields that contradict each other.
Case parse_case(std::string_view json);

/// Throws CaseError when a field is out of range or two contradict each other:
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
