// SPDX-License-Identifier: MIT
#include "fuzz/report/drift.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace attest::fuzz::report {
namespace {

/// Rises with the used budget; NaN, which is worse than all, as inf.
double comparable(double budget) {
  return std::isnan(budget) ? std::numeric_limits<double>::infinity() : budget;
}

/// The lower of two medians; sorts.
double median(std::vector<double>& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

void describe(Drift& drift, std::vector<double> before, std::vector<double> after) {
  drift.before = before.size();
  drift.after = after.size();
  drift.median_before = median(before);
  drift.median_after = median(after);
  drift.worst_before = before.empty() ? drift.median_before : before.back();
  drift.worst_after = after.empty() ? drift.median_after : after.back();
}

/// max over u of F(u) - G(u * scale); both sorted.
double excess(const std::vector<double>& f, const std::vector<double>& g, double scale) {
  double most = 0;
  for (std::size_t i = 0; i < f.size(); ++i) {
    if (i + 1 < f.size() && f[i + 1] == f[i]) continue;
    const auto not_above = std::upper_bound(g.begin(), g.end(), f[i] * scale) - g.begin();
    most = std::max(most, static_cast<double>(i + 1) / static_cast<double>(f.size()) -
                              static_cast<double>(not_above) / static_cast<double>(g.size()));
  }
  return most;
}

void decide(Drift& drift, double chance_worse, double chance_better, double alpha) {
  drift.alpha = alpha;
  drift.chance = std::min(chance_worse, chance_better);
  if (chance_worse <= alpha)
    drift.verdict = Drift::Verdict::worse;
  else if (chance_better <= alpha)
    drift.verdict = Drift::Verdict::better;
  if (drift.verdict == Drift::Verdict::worse) drift.chance = chance_worse;
}

}  // namespace

double rerounding(std::int64_t elements) {
  const auto n = static_cast<double>(std::max<std::int64_t>(elements, 2));
  return std::numbers::pi / std::numbers::sqrt3 / (2 * std::log(n));
}

double chance_of_ups(std::size_t ups, std::size_t n) {
  if (ups == 0) return 1;
  // From the largest k, whose term is the smallest, so that nothing is lost: C(n, k) / 2^n by logarithms.
  const auto whole = static_cast<double>(n);
  double sum = 0;
  for (std::size_t k = n; k >= ups; --k) {
    const auto part = static_cast<double>(k);
    sum += std::exp(std::lgamma(whole + 1) - std::lgamma(part + 1) - std::lgamma(whole - part + 1) -
                    whole * std::numbers::ln2);
  }
  return std::min(sum, 1.0);
}

Drift drift_case_by_case(const std::vector<UsedTwice>& cases, double alpha) {
  Drift drift;
  drift.case_by_case = true;
  std::vector<double> before, after;
  for (const UsedTwice& c : cases) {
    const double a = comparable(c.before.budget), b = comparable(c.after.budget);
    before.push_back(a);
    after.push_back(b);
    const double factor = std::exp(rerounding(std::min(c.before.elements, c.after.elements)));
    if (b > a * factor) ++drift.ups;
    if (a > b * factor) ++drift.downs;
  }
  describe(drift, std::move(before), std::move(after));
  const std::size_t moved = drift.ups + drift.downs;
  decide(drift, chance_of_ups(drift.ups, moved), chance_of_ups(drift.downs, moved), alpha);
  return drift;
}

Drift drift_by_distribution(const std::vector<Used>& before, const std::vector<Used>& after, double alpha) {
  Drift drift;
  std::vector<double> a, b;
  std::vector<double> elements;
  for (const Used& u : before) {
    a.push_back(comparable(u.budget));
    elements.push_back(static_cast<double>(u.elements));
  }
  for (const Used& u : after) {
    b.push_back(comparable(u.budget));
    elements.push_back(static_cast<double>(u.elements));
  }
  describe(drift, a, b);
  drift.alpha = alpha;
  if (a.empty() || b.empty()) return drift;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  const double factor = std::exp(rerounding(static_cast<std::int64_t>(median(elements))));
  const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  const auto chance = [&](double distance) { return std::exp(-2 * distance * distance * n * m / (n + m)); };
  decide(drift, chance(excess(a, b, factor)), chance(excess(b, a, factor)), alpha);
  return drift;
}

}  // namespace attest::fuzz::report
