// SPDX-License-Identifier: MIT
//
// Used budgets (oracle::Verdict::used_budget: largest error / bound of a case, above 1 fails), counted on a
// logarithmic scale: four bins to the decade, from 10^-4 to 10^4, the same for every kernel so that their
// histograms can be laid side by side. 1, the limit, is an edge: what is left of it passed, what is right
// of it failed.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace attest::fuzz::report {

class BudgetHistogram {
 public:
  static constexpr int per_decade = 4, lowest_decade = -4, highest_decade = 4;
  static constexpr int edges = per_decade * (highest_decade - lowest_decade) + 1;
  /// Bin 0 holds 0 up to the first edge, bin i what is above edge i - 1 and not above edge i, the last what
  /// is above them all, inf and NaN too.
  static constexpr int bins = edges + 1;
  /// The last bin of what is within the limit.
  static constexpr int limit_bin = -lowest_decade * per_decade;

  void add(double used);

  [[nodiscard]] static double edge(int i);
  [[nodiscard]] const std::array<std::uint64_t, bins>& counts() const { return counts_; }
  [[nodiscard]] std::uint64_t total() const { return values_.size(); }
  /// Of the values not above 1; NaN when there are none. @param share 0.5: the median (the lower of two)
  [[nodiscard]] double quantile_within(double share) const;
  /// Values above 1, inf and NaN.
  [[nodiscard]] std::uint64_t beyond() const;

 private:
  std::array<std::uint64_t, bins> counts_{};
  std::vector<double> values_;
};

}  // namespace attest::fuzz::report
