// SPDX-License-Identifier: MIT
//
// Indexer logits against the fp64 reference, each within its own bound.
//
// A kernel computes, in f32 and in an order of its own,
//
//   d_h = <q_h, k> (128 exact products, added)        w_h = weight_h * q_scale_h
//   I   = k_scale * sum_h w_h relu(d_h)
//
// With u = 2^-24 and gamma_n = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical Algorithms, 3.1):
//
//   * a product of two fp8 is exact, and 128 of them are added in 127 roundings or fewer, so
//     |d'_h - d_h| <= gamma_128 A_h, A_h = sum_i |q_i k_i|. A matrix unit that truncates where it adds up
//     several products makes errors of up to 2 u, but one for every 16 or 32 products, not for each.
//   * relu does not enlarge a difference.
//   * forming w_h, w_h * relu, the sum over H heads and the k scale (before the sum or after it; also with
//     the scales folded together in another order) are at most H + 4 roundings on any path, which multiply terms
//     w_h relu(d_h) by 1 + theta, |theta| <= gamma_{H+4}.
//
// Together, with the worst case of all aligned,
//
//   |I' - I| <= 1.01 k_scale sum_h |w_h| ( gamma_128 A_h + gamma_{H+4} relu(d_h) ) + 2^-126
//
// where 1.01 covers the products of the two (H <= 128: gamma below 2^-16) and the last term what underflows.
// On normal data that is some 1e-5 of a logit: one head's relu, one wrong scale, one neighbouring key show.
//
// Where every partial sum is exactly representable (fill `exact`) the logit must be the reference's bit for
// bit. Columns outside of a row's range must be -inf, and none inside may be anything but finite.
#pragma once

#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/verdict.h"
#include "reference/indexer.h"

namespace attest::oracle {

/// The bound above for every key of one query.
/// @param logits as reference::indexer_logits gives them for `heads` heads
Eigen::VectorXd indexer_bound(const reference::IndexerLogits& logits, int heads);

/// See judge in oracle/judge.h: what it says of op indexer_logits, guard zones aside. Output "logits", f32
/// [rows, width].
Verdict judge_indexer_logits(const cases::Case& c, const cases::Inputs& inputs,
                             const cases::Outputs& outputs);

}  // namespace attest::oracle
