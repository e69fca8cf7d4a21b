// SPDX-License-Identifier: MIT
//
// The values of q and of the cache, one row of 576 at a time: what each Fill promises, constructed.
//
//   const RowMaker rows(c);
//   rows.kv_row(request, token, values);            // stored values, before rounding to the format
//   rows.q_row(request, position, head, values);
//
// Rows are f32 and *stored* values: what the kernel reads before it multiplies by q_scale or kv_scale. A
// cache row depends on its request and token only, except that `exact` needs to know how many rows the
// queries see.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cases/case.h"
#include "cases/paging.h"
#include "cases/random.h"

namespace attest::cases {

/// sm_scale * q_scale * kv_scale: score = this * <stored q, stored k>.
double score_scale(const MlaDecode& p);

/// Whether the fill's promised scores lie within the range of the formats. Only an fp8 q can be too narrow.
bool scores_reachable(const MlaDecode& p, Fill fill);

class RowMaker {
 public:
  static constexpr int width = 576;
  static constexpr int v_width = 512;
  static constexpr int rope_width = width - v_width;

  /// Of an mla_decode case.
  explicit RowMaker(const Case& c);
  /// Of a case whose queries and cache rows are those of an mla_decode problem: same requests, heads, formats
  /// and scales.
  RowMaker(MlaDecode like, const Case& c);

  void kv_row(int request, int token, float* out) const;
  void q_row(int request, int position, int head, float* out) const;

  /// The same rows, narrowed to a format of caches and queries.
  void kv_row(int request, int token, Format format, std::byte* out) const;
  void q_row(int request, int position, int head, Format format, std::byte* out) const;

  /// A row as a page holds it that another request left behind: of the same kind, of none of the case's
  /// tokens.
  void stale_kv_row(std::uint32_t slot, float* out) const;

 private:
  using Halves = std::array<std::uint16_t, width>;

  void v_and_rope(std::uint32_t source, int token, const Halves& halves, float* out) const;
  void exact_v(std::uint32_t source, const std::uint16_t* noise_of_pair, int sign, float* v) const;
  void exact_kv_row(int request, int token, float* out) const;
  void cancelling_kv_row(std::uint32_t pair_source, int token, float* out) const;
  [[nodiscard]] int needle_token(int request, int position, int head) const;
  [[nodiscard]] Counter kv_counter(std::uint32_t source, int token) const;

  MlaDecode problem_;
  Fill fill_;
  std::uint64_t seed_;
  Sharing sharing_;
  float q_unit_, kv_unit_;             ///< stored value of a real 1
  float q_magnitude_, k_magnitude_;    ///< of rope columns whose product makes the promised score
  float q_spread_ = 0;                 ///< standard deviation of stored q where a fill needs its own
  std::array<float, width> column_{};  ///< per column: mean, factor, sign or magnitude, as the fill needs
  std::vector<int> exact_noisy_rows_;  ///< per request: rows that carry noise in `exact`
};

}  // namespace attest::cases
