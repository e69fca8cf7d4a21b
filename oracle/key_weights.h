// SPDX-License-Identifier: MIT
//
// Which keys a wrong row of attention really weighed, and how much: where along the context it went wrong.
//
// A row of the result is a combination of its request's values, y = sum_j w_j v_j. 512 columns are 512
// equations, so up to that many weights can be had back from y alone, whatever the kernel did to get them.
// With A = [v_0 .. v_n-1] and A+ its pseudo-inverse,
//
//   y = A p + e, |e_d| <= E_d       for a right row: p the softmax of the reference, E the bound of
//                                   mla_bound.h and the rounding of the output
//   w = A+ y,    |w_j - p_j| <= sum_d |A+_jd| E_d
//
// and a key beyond that has a weight that no right kernel gives it. A softmax over other keys scales those
// that it has in common with the right one by one factor f, so that is taken out first: with m the key of the
// median w_j / p_j, f is known to within_m / p_m, and a wrong key is one with
//
//   |w_j - f p_j| > within_j + p_j within_m / p_m
//
// A key that was lost has w = 0; a key of the future has w > 0 where p = 0; a page read twice weighs double.
//
// It says nothing of a row that holds something else besides: then y lies outside of the span of the values,
// and |y - A w| exceeds |E|, which is the most that e can leave over. Nor of more keys than `most_keys`, or
// of values that depend on each other (constant ones, the same row twice).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "oracle/mla_bound.h"

namespace attest::oracle {

struct KeyWeight {
  double expected = 0, found = 0, within = 0;  ///< expected: with the common factor
  [[nodiscard]] double used() const;           ///< |found - expected| / within; above 1 is wrong
};

class KeyWeights {
 public:
  static constexpr int most_keys = 128;

  /// @param values [keys, columns] scaled
  explicit KeyWeights(const Matrix& values);

  /// The values tell their weights apart.
  [[nodiscard]] bool tell() const { return tell_; }

  /// @param y [columns], @param bound [columns], E, @param expected [keys]. nullopt: y is no combination of
  /// the values
  [[nodiscard]] std::optional<std::vector<KeyWeight>> of(std::span<const double> y,
                                                         std::span<const double> bound,
                                                         std::span<const double> expected) const;

 private:
  Matrix values_, inverse_;  ///< [keys, columns]
  bool tell_ = false;
};

/// "too little weight on keys 0 to 31, too much on 40"; empty when all are right.
std::string in_words(const std::vector<KeyWeight>& weights);

}  // namespace attest::oracle
