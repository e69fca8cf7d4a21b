// SPDX-License-Identifier: MIT
//
// Absorbed multi-head latent attention (MLA), the mathematics only: fp64, Eigen matrices, and products, exp
// and ln whose bits are the same on every machine (matrix_product.h, exponential.h).
//
// One request at a time. Its q_len query positions times `heads` heads share one KV head of kv_len rows, and
// V is the first 512 columns of the same rows:
//
//   row r         = position * heads + head
//   visible(r)    = kv_len - q_len + position + 1 where causal (bottom-right), else kv_len
//   s[r, j]       = sm_scale * q_scale * kv_scale * <q[r, :], k[j, :]>
//   m[r], l[r]    = max of s[r, j], sum of exp(s[r, j] - m[r]), over the visible j
//   w[r, j]       = exp(s[r, j] - m[r]) / l[r]
//   out[r, :]     = kv_scale * sum_j w[r, j] * k[j, 0:512]
//   lse[r]        = m[r] + ln l[r]
//
// q and k are the decoded stored values: whatever rounding made them is in the input already, so the oracle
// judges the kernel and not the quantiser. A row with no visible key is empty: out is 0, lse is -inf.
//
// Non-finite inputs propagate by IEEE rules, and only to rows that see them. A visible score of NaN or +inf
// makes its row NaN: weights, out and lse. A visible score of -inf has weight 0, and 0 * inf makes NaN in the
// columns where that key holds infinity. A row all of whose visible scores are -inf is NaN. Weights below
// e^-708 of the largest are 0.
//
// Sources: DeepSeek-V2 (arXiv:2405.04434) section 2.1.2;
// vllm/v1/attention/backends/mla/common.py (the absorbed form and its scale).
#pragma once

#include <Eigen/Core>
#include <vector>

#include "reference/matrix_product.h"

namespace attest::reference {

inline constexpr int kv_lora_rank = 512;     ///< columns of a cache row that are V as well
inline constexpr int qk_rope_head_dim = 64;  ///< the last columns: K only
inline constexpr int row_width = kv_lora_rank + qk_rope_head_dim;  ///< 576

using Vector = Eigen::VectorXd;

struct AttentionScales {
  double sm_scale = 1.0;  ///< multiplies every score; 192^-0.5 in DeepSeek models
  double q_scale = 1.0;   ///< real q = stored q * q_scale
  double kv_scale = 1.0;  ///< real k = stored k * kv_scale
};

/// Everything the oracle needs about one request. R = q_len * heads rows, row r = position * heads + head.
struct RequestAttention {
  Matrix scores;             ///< [R, kv_len], scaled; entries past visible[r] are -inf
  Matrix weights;            ///< [R, kv_len], normalised; 0 past visible[r]
  std::vector<int> visible;  ///< [R], number of leading keys the row sees; 0 = empty row
  Vector row_max;            ///< [R], m; -inf on an empty row
  Vector row_sum;            ///< [R], l; 0 on an empty row
  Vector lse;                ///< [R], natural logarithm
  Matrix out;                ///< [R, 512]
};

/// Rows of any width, V apart from K, and for each row the number of leading keys it sees: attention in the
/// MHA form of MLA, one head at a time.
/// @param q [rows, D], k [kv_len, D], v [kv_len, C]: decoded, unscaled; `out` of the result is [rows, C]
/// @param visible [rows], 0..kv_len, not decreasing
/// Throws std::invalid_argument when the shapes do not fit or `visible` decreases.
RequestAttention attend_visible(const Matrix& q, const Matrix& k, const ConstBlock& v,
                                const AttentionScales& scales, std::vector<int> visible);

/// @param q [q_len * heads, 576] decoded, unscaled
/// @param k [kv_len, 576] decoded, unscaled; kv_len may be 0
RequestAttention attend(const Matrix& q, const Matrix& k, const AttentionScales& scales, int q_len, int heads,
                        bool causal);

}  // namespace attest::reference
