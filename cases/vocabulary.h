// SPDX-License-Identifier: MIT
//
// The words every op's cases share: number formats, fills, poisons, placements, and the recipes made of them.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>

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
  // From here on for scores alone (op topk); constant_scores, mean_shifted and normal are for both.
  few_values,  ///< normal, cut to multiples of 1/2
  zero_ties,   ///< a few winners among zeros
  infinities,  ///< normal, with infinities of both signs
  nans,        ///< normal, with NaN of both signs
  ascending,   ///< the position itself
  descending,
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

/// Bad input: what() is one line, "shape.heads: 129 is outside 1..128".
struct CaseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The names of all enumerators, in order, as case files spell them.
std::span<const char* const> names(Format);
std::span<const char* const> names(Fill);
std::span<const char* const> names(Poison);
std::span<const char* const> names(Placement);

template <typename Enum>
const char* name(Enum value) {
  return names(value)[static_cast<std::size_t>(value)];
}

}  // namespace attest::cases
