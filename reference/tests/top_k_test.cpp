// SPDX-License-Identifier: MIT
#include "reference/top_k.h"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace attest::reference {
namespace {

using Fault = Selection::Fault;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// By repeated search: the largest that is not taken yet, the first of equals.
std::vector<std::int32_t> by_search(const std::vector<double>& scores, int k) {
  std::vector<bool> taken(scores.size());
  std::vector<std::int32_t> chosen;
  for (int i = 0; i < k && i < static_cast<int>(scores.size()); ++i) {
    int best = -1;
    for (int p = 0; p < static_cast<int>(scores.size()); ++p) {
      if (taken[static_cast<std::size_t>(p)]) continue;
      if (best < 0 || scores[static_cast<std::size_t>(p)] > scores[static_cast<std::size_t>(best)]) best = p;
    }
    taken[static_cast<std::size_t>(best)] = true;
    chosen.push_back(best);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<double> any_scores() {
  return *rc::gen::container<std::vector<double>>(rc::gen::map(rc::gen::inRange(-8, 9), [](int i) {
    return i == 8 ? inf : i == -8 ? -inf : i * 0.5;
  }));
}

Fault fault_of(const std::vector<double>& scores, int k, const std::vector<std::int32_t>& chosen,
               const std::vector<double>& errors = {}, bool ordered_nan = true) {
  return check_top_k(scores, errors, k, chosen, ordered_nan).fault;
}

}  // namespace

TEST_CASE("The selection is that of a search, and the check agrees with it") {
  rc::prop("search", [] {
    const std::vector<double> scores = any_scores();
    const int k = *rc::gen::inRange(0, 12);
    const std::vector<std::int32_t> chosen = top_k(scores, k);
    RC_ASSERT(chosen == by_search(scores, k));
    RC_ASSERT(fault_of(scores, k, chosen) == Fault::none);
  });
}

TEST_CASE("The check accepts exactly the sets whose sorted scores are the reference's") {
  rc::prop("sets", [] {
    const std::vector<double> scores = any_scores();
    RC_PRE(!scores.empty());
    const int n = static_cast<int>(scores.size());
    const int k = *rc::gen::inRange(1, n + 1);
    std::vector<std::int32_t> chosen(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) chosen[static_cast<std::size_t>(i)] = i;
    for (int i = n - 1; i > 0; --i)
      std::swap(chosen[static_cast<std::size_t>(i)],
                chosen[static_cast<std::size_t>(*rc::gen::inRange(0, i + 1))]);
    chosen.resize(static_cast<std::size_t>(k));
    std::vector<double> got, wanted;
    for (const std::int32_t p : chosen) got.push_back(scores[static_cast<std::size_t>(p)]);
    for (const std::int32_t p : top_k(scores, k)) wanted.push_back(scores[static_cast<std::size_t>(p)]);
    std::sort(got.begin(), got.end());
    std::sort(wanted.begin(), wanted.end());
    RC_ASSERT((fault_of(scores, k, chosen) == Fault::none) == (got == wanted));
  });
}

TEST_CASE("NaN and infinity take their places") {
  const std::vector<double> scores = {1, nan, -inf, inf, -nan, 0.0, -0.0};
  CHECK(top_k(scores, 1) == std::vector<std::int32_t>{1});
  CHECK(top_k(scores, 2) == std::vector<std::int32_t>{1, 3});
  CHECK(top_k(scores, 4) == std::vector<std::int32_t>{0, 1, 3, 5});
  CHECK(top_k(scores, 6) == std::vector<std::int32_t>{0, 1, 2, 3, 5, 6});
  CHECK(fault_of(scores, 4, {0, 1, 3, 6}) == Fault::none);  // the zeros are equal to a comparison
  CHECK(fault_of(scores, 2, {0, 3}) == Fault::not_largest);
  CHECK(fault_of(scores, 2, {0, 3}, {}, false) == Fault::none);
  CHECK(fault_of({-inf, -inf, 2}, 2, {2, 1}) == Fault::none);
  CHECK(fault_of({-inf, -inf, 2}, 2, {0, 1}) == Fault::not_largest);
}

TEST_CASE("What is wrong with a list is named") {
  const std::vector<double> scores = {5, 4, 3, 2};
  CHECK(fault_of(scores, 2, {0, 1}) == Fault::none);
  CHECK(fault_of(scores, 2, {-1, 1, -1, 0}) == Fault::none);
  CHECK(fault_of(scores, 2, {0, -1}) == Fault::missing);
  CHECK(fault_of(scores, 2, {0, 0}) == Fault::duplicate);
  CHECK(fault_of(scores, 2, {0, 4}) == Fault::out_of_range);
  CHECK(fault_of(scores, 2, {0, -2}) == Fault::out_of_range);
  CHECK(fault_of(scores, 2, {0, 1, 2}) == Fault::surplus);
  const Selection s = check_top_k(scores, {}, 2, std::vector<std::int32_t>{0, 2}, true);
  CHECK(s.fault == Fault::not_largest);
  CHECK(s.position == 1);
  CHECK(s.shortfall == 1);
  CHECK(fault_of({}, 3, {-1, -1, -1}) == Fault::none);
}

TEST_CASE("Within the errors of the scores any set that could be the top passes, and no other") {
  const std::vector<double> scores = {1.0, 0.9, 0.5};
  CHECK(fault_of(scores, 1, {1}, {0.05, 0.05, 0.05}) == Fault::none);
  CHECK(fault_of(scores, 1, {1}, {0.04, 0.05, 0.05}) == Fault::not_largest);
  CHECK(fault_of(scores, 1, {2}, {0.05, 0.05, 0.05}) == Fault::not_largest);
  CHECK(fault_of(scores, 1, {2}, {0.0, 0.0, 0.5}) == Fault::none);
  CHECK_THROWS_AS(fault_of(scores, 1, {1}, {0.1}), std::invalid_argument);
}

}  // namespace attest::reference
