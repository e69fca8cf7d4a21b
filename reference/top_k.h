// SPDX-License-Identifier: MIT
//
// The k largest scores of a row: which positions they are, and which other answers are as good.
//
//   top_k(scores, k)                                 // the one answer of a stable selection
//   const Selection s = check_top_k(scores, errors, k, chosen);   // any answer: is it a top k?
//
// Order. Scores are compared as IEEE 754-2008 section 5.10 orders them: -NaN < -inf < ... < -0 < +0 < ... <
// +inf < +NaN. That is what a radix selection on the bits does with its signs flipped (AITER's and vLLM's
// kernels), and it gives every row an answer, whatever it holds. A score of -inf inside the row is a
// candidate like any other: a row has n of them, so min(n, k) are chosen and none is left to -1 before that.
//
// Ties. Among equal scores the stable selection takes the smallest positions. A kernel that hands out places
// with atomics takes any, differently in each launch (https://github.com/vllm-project/vllm/pull/56749), so
// without a promise the check asks for less: that the chosen set is a top k for some scores within their
// errors,
//
//   min over chosen (s + e)  >=  max over the others (s - e),
//
// which is equivalent: raise every chosen score and lower every other one by its own error, and no other is
// above a chosen one exactly when this holds. With e = 0 it says that the chosen scores, sorted, are those of
// the reference. Here -0 and +0 are equal, as they are for a kernel that compares floats.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attest::reference {

/// Positions in [0, scores.size()), ascending; min(scores.size(), k) of them. Throws std::invalid_argument
/// for a negative k.
std::vector<std::int32_t> top_k(std::span<const double> scores, int k);

/// Whether a set of positions is a top k, and if not, why.
struct Selection {
  enum class Fault : std::uint8_t { none, missing, out_of_range, duplicate, surplus, not_largest };
  Fault fault = Fault::none;
  std::int32_t position = -1;  ///< the offender: an entry, or the better position that was not chosen
  std::int32_t entry = -1;     ///< its place in `chosen`; -1 for one that is not there
  double shortfall = 0;        ///< not_largest: how far the bands are apart; infinite or NaN where a score is
};

/// @param errors empty (all scores exact), or per score the bound e >= 0 of its error
/// @param chosen entries as a kernel wrote them, -1 for none, in any order and with -1 anywhere
/// A NaN among the scores makes comparisons void: then only count, range and uniqueness are checked, unless
/// `ordered_nan` says that NaN takes the place above.
Selection check_top_k(std::span<const double> scores, std::span<const double> errors, int k,
                      std::span<const std::int32_t> chosen, bool ordered_nan);

}  // namespace attest::reference
