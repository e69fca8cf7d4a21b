// SPDX-License-Identifier: MIT
//
// Drawing inside rc::gen::exec, for the generators of all ops: every draw takes from RapidCheck's splittable
// random numbers, so a case is a function of what `generate` seeds them with.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace attest::fuzz {

/// Uniform in [low, high].
inline int between(int low, int high) {
  return *rc::gen::inRange(low, high + 1);
}
/// True in `in` of `of` draws.
inline bool chance(int in, int of) {
  return between(1, of) <= in;
}
inline bool coin() {
  return chance(1, 2);
}

/// A value that occurs twice is drawn twice as often.
template <typename T>
T any_of(const std::vector<T>& values) {
  return values[static_cast<std::size_t>(between(0, static_cast<int>(values.size()) - 1))];
}

/// Any of the values that do not exceed the cap; the first if all do.
inline int any_up_to(const std::vector<int>& values, std::int64_t cap) {
  std::vector<int> allowed;
  std::copy_if(values.begin(), values.end(), std::back_inserter(allowed), [&](int v) { return v <= cap; });
  return allowed.empty() ? values.front() : any_of(allowed);
}

}  // namespace attest::fuzz
