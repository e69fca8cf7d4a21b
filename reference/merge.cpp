// SPDX-License-Identifier: MIT
#include "reference/merge.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "reference/exponential.h"

namespace attest::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double ln_2 = 0.69314718055994530942;

}  // namespace

MergedState merge_states(const std::vector<double>& lse, const Matrix& out, bool base_two) {
  if (lse.empty() || static_cast<Eigen::Index>(lse.size()) != out.rows())
    throw std::invalid_argument(fmt::format("merge_states: {} lse, out is [{}, {}]: want one row per lse",
                                            lse.size(), out.rows(), out.cols()));
  MergedState merged;
  merged.out.assign(static_cast<std::size_t>(out.cols()), 0.0);
  merged.weights.assign(lse.size(), 0.0);
  merged.max = -infinity;
  bool any_nan = false;
  for (const double value : lse) {
    any_nan = any_nan || std::isnan(value);
    if (std::isfinite(value) && value > merged.max) merged.max = value;
  }
  if (any_nan) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    merged.weights.assign(lse.size(), nan);
    merged.out.assign(merged.out.size(), nan);
    merged.max = merged.lse = nan;
    return merged;
  }
  merged.empty = merged.max == -infinity;
  merged.lse = -infinity;
  if (merged.empty) return merged;

  const double to_natural = base_two ? ln_2 : 1.0;
  double sum = 0;
  for (std::size_t s = 0; s < lse.size(); ++s) {
    if (!std::isfinite(lse[s])) continue;
    double weight = (lse[s] - merged.max) * to_natural;
    exp_shifted({&weight, 1}, 0);
    merged.weights[s] = weight;
    sum += weight;
  }
  merged.lse = merged.max + natural_log(sum) / to_natural;
  for (std::size_t s = 0; s < lse.size(); ++s) {
    merged.weights[s] /= sum;
    if (merged.weights[s] == 0) continue;
    for (std::size_t d = 0; d < merged.out.size(); ++d)
      merged.out[d] += merged.weights[s] * out(static_cast<Eigen::Index>(s), static_cast<Eigen::Index>(d));
  }
  return merged;
}

}  // namespace attest::reference
