// SPDX-License-Identifier: MIT
//
// Indexer logits of DeepSeek sparse attention (arXiv:2512.02556, section 2.1): how much query t wants key s,
//
//   I[t, s] = k_scale[s] * sum over heads h of w[t, h] * relu(<q[t, h], k[s]>),
//
// with q and k in fp8, w the head's weight with all scales of the query folded in. Weights may be negative,
// so logits may be.
//
//   IndexerLogits I = indexer_logits(q, weights, keys, k_scale);    // one query against n keys
//   I.logits[s], I.positive[s], I.magnitude[s]
//
// and how the keys lie in a paged cache: a page holds the values of all its tokens, then all their scales
// (not 128 + 4 bytes per token: https://github.com/vllm-project/vllm/pull/50455 and #50576 are readers that
// took it for that).
//
//   page:  [page_size][128] fp8 | [page_size] f32
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reference/matrix_product.h"

namespace attest::reference {

inline constexpr int indexer_width = 128;
inline constexpr int indexer_token_bytes = indexer_width + 4;

/// Bytes from the start of a page to a token's values and to its scale.
constexpr std::uint64_t indexer_values_at(int offset) {
  return std::uint64_t{indexer_width} * static_cast<std::uint64_t>(offset);
}
constexpr std::uint64_t indexer_scale_at(int page_size, int offset) {
  return std::uint64_t{indexer_width} * static_cast<std::uint64_t>(page_size) +
         4 * static_cast<std::uint64_t>(offset);
}

/// All of one query, per key [n]. The last two are what an error bound needs.
struct IndexerLogits {
  Eigen::VectorXd logits;
  Eigen::VectorXd positive;   ///< k_scale * sum_h |w| relu(<q, k>)
  Eigen::VectorXd magnitude;  ///< k_scale * sum_h |w| sum_i |q_i k_i|
};

/// @param q [heads, 128] decoded
/// @param weights [heads], scales of the query folded in
/// @param keys [n, 128] decoded, unscaled
/// @param k_scale [n], not negative
/// Throws std::invalid_argument when the shapes do not fit.
IndexerLogits indexer_logits(const ConstBlock& q, std::span<const double> weights, const ConstBlock& keys,
                             std::span<const double> k_scale);

}  // namespace attest::reference
