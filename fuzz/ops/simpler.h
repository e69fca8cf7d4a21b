// SPDX-License-Identifier: MIT
//
// Steps towards a simpler value, for the shrinkers of all ops.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

namespace attest::fuzz {

/// The values of `wanted` in [low, below), in order, without repetition.
inline std::vector<int> smaller(std::initializer_list<int> wanted, int low, int below) {
  std::vector<int> values;
  for (const int v : wanted) {
    if (v >= low && v < below && std::find(values.begin(), values.end(), v) == values.end())
      values.push_back(v);
  }
  return values;
}

/// 0 for 1, 1 for another power of two, 2 for the rest.
inline int scale_rank(float scale) {
  if (scale == 1.0F) return 0;
  int exponent = 0;
  return std::frexp(scale, &exponent) == 0.5F ? 1 : 2;
}

inline float power_of_two_near(float scale) {
  int exponent = 0;
  (void)std::frexp(scale, &exponent);
  return std::ldexp(1.0F, exponent - 1);
}

}  // namespace attest::fuzz
