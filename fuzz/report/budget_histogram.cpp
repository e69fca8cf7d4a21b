// SPDX-License-Identifier: MIT
#include "fuzz/report/budget_histogram.h"

#include <algorithm>
#include <cmath>

namespace attest::fuzz::report {
namespace {

/// 10^((i + lowest_decade * per_decade) / 4), without a libm whose last bit may vary.
std::array<double, BudgetHistogram::edges> make_edges() {
  constexpr std::array<double, BudgetHistogram::per_decade> within = {1.0, 1.7782794100389228,
                                                                      3.1622776601683795, 5.623413251903491};
  constexpr std::array<double, 9> decades = {1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4};
  std::array<double, BudgetHistogram::edges> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = within[i % 4] * decades[i / 4];
  return all;
}

const std::array<double, BudgetHistogram::edges> all_edges = make_edges();

}  // namespace

double BudgetHistogram::edge(int i) {
  return all_edges[static_cast<std::size_t>(i)];
}

void BudgetHistogram::add(double used) {
  values_.push_back(used);
  const auto at =
      std::isnan(used) ? all_edges.end() : std::lower_bound(all_edges.begin(), all_edges.end(), used);
  ++counts_[static_cast<std::size_t>(at - all_edges.begin())];
}

double BudgetHistogram::quantile_within(double share) const {
  std::vector<double> within;
  for (const double v : values_)
    if (v <= 1) within.push_back(v);
  if (within.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto last = static_cast<double>(within.size() - 1);
  const auto at = within.begin() + static_cast<std::ptrdiff_t>(share * last);
  std::nth_element(within.begin(), at, within.end());
  return *at;
}

std::uint64_t BudgetHistogram::beyond() const {
  std::uint64_t sum = 0;
  for (int bin = limit_bin + 1; bin < bins; ++bin) sum += counts_[static_cast<std::size_t>(bin)];
  return sum;
}

}  // namespace attest::fuzz::report
