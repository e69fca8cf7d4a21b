// SPDX-License-Identifier: MIT
//
// Merging partial attention results of one query row, the mathematics only, in fp64.
//
// State s holds o_s, the softmax-weighted mean of V over its own keys, and lse_s, the logarithm of its sum of
// exponentials, to base e or 2. Over all keys together
//
//   M   = max lse_s                    over the states that have keys
//   w_s = b^(lse_s - M)                b = e or 2; 0 for a state without keys
//   out = sum w_s o_s / sum w_s
//   lse = M + log_b sum w_s
//
// A state has no keys when its lse is infinite, of either sign: FlashAttention-2 says +inf, FlashAttention-3
// and Triton kernels -inf. Its o_s is not looked at. When no state has keys, out is 0 and lse is -inf. An lse
// of NaN makes the row NaN.
//
// Sources: FlashAttention (arXiv:2205.14135) section 3.1; Cascade inference in FlashInfer (arXiv:2501.01005)
// section 2.2; vllm/v1/attention/ops/merge_attn_states.py for the infinities.
#pragma once

#include <vector>

#include "reference/matrix_product.h"

namespace attest::reference {

struct MergedState {
  std::vector<double> weights;  ///< normalised, one per state
  std::vector<double> out;      ///< [columns]
  double max = 0;               ///< M, in the states' base; -inf without keys
  double lse = 0;               ///< in the states' base
  bool empty = false;           ///< no state has keys
};

/// @param lse one per state
/// @param out [states, columns]
/// @param base_two exponentials are powers of 2, not of e
/// Throws std::invalid_argument when the sizes differ or there is no state.
MergedState merge_states(const std::vector<double>& lse, const Matrix& out, bool base_two);

}  // namespace attest::reference
