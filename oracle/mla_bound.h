// SPDX-License-Identifier: MIT
//
// How wrong a correct MLA kernel may be: a bound per element, one per lse, and limits on the shape of a whole
// row.
//
//   const RequestAttention a = reference::attend(q, k, scales, q_len, heads, causal);
//   const MlaBound b = bound_mla({a, k.leftCols(512), row_norms(q), row_norms(k), scales}, profile("bf16"));
//   // a kernel of that profile satisfies |y - o| <= b.element + half a unit in the last place of the output
//
// The bound is computed from the data, not chosen: it shrinks as the context grows, as the error of a correct
// kernel does, and with it shrinks what a lost key can hide behind. The derivation is in mla_bound.cpp.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <span>
#include <vector>

#include "oracle/precision.h"
#include "reference/attention.h"

namespace attest::oracle {

using reference::Matrix;
using reference::Vector;
using ValueColumns = Eigen::Ref<const Matrix, 0, Eigen::OuterStride<>>;

/// Euclidean norms of the rows of `m`. Infinite or NaN where the row is.
Vector row_norms(const Matrix& m);

/// One request as the bound sees it. R rows, C columns of the output: all 512, or a sample of them.
struct BoundRequest {
  const reference::RequestAttention& attention;  ///< `out` has C columns
  ValueColumns values;                           ///< [kv_len, C] decoded V, unscaled
  const Vector& q_norms;                         ///< [R] norms of the decoded rows of q
  const Vector& k_norms;                         ///< [kv_len] norms of the decoded rows of K, all 576 columns
  reference::AttentionScales scales;
  int depth = reference::row_width;       ///< products in a score: columns of K
  std::span<const int> repetitions = {};  ///< how often key j's cache row is a key; empty: once
  int walk = 0;  ///< places that a kernel cuts into tiles, holes included; 0: the visible keys
};

enum class RowClass : std::uint8_t {
  judged,        ///< everything below holds
  empty,         ///< sees no key
  non_finite,    ///< the inputs make lse or out NaN or infinite
  out_of_range,  ///< f32 arithmetic may overflow on the way: no claim
};

struct MlaBound {
  std::vector<RowClass> row_class;  ///< [R]
  Matrix element;                   ///< [R, C], E: |y - o| beyond the rounding cell of the output
  Matrix deviation;                 ///< [R, C], one standard deviation of y - o before the output is rounded
  Vector lse;                       ///< [R], El: |kernel lse - lse|
  Vector scale;    ///< [R], the part of the row-scale limit that is there without noise: F + 2 th
  Vector n_eff;    ///< [R], 1 / sum w^2
  Vector flushed;  ///< [R], weight of the tokens that the kernel may round to zero
};

/// Rows that are not `judged` have infinite bounds.
MlaBound bound_mla(const BoundRequest& request, const PrecisionProfile& profile);

/// The name of the largest term of the bound of one element: "P rounding", "scores", "accumulation", "row
/// sum", "split partials", "flush to zero".
const char* dominating_term(const BoundRequest& request, const PrecisionProfile& profile, Eigen::Index row,
                            Eigen::Index column);

}  // namespace attest::oracle
