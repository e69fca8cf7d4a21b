// SPDX-License-Identifier: MIT
//
// The limits of the row rules
// ===========================
//
// zeta. With st^2 = sig^2 + ulp^2/12 (the output rounding is uniform in its cell) and z = (y - o) / st, the
// residual after a common factor beta is taken out is z - beta o/st; its root mean square zeta is at most 1
// for a correct kernel, since sig is an upper bound of a deviation, and over 512 columns it scatters by 3 %.
// What may exceed 1 are inputs where the errors of the columns are not independent. A model of kernels and
// GPU runs saw 1.08 on rows with n_eff >= 32 and generic V, hence 1.3 there; 1.98 otherwise, hence 2.5. (Rows
// of which a good part is flushed to zero by an 8 bit P are in the second group: V is part of K, so that low
// scores and low V go together.)
//
// beta. <z, g> / <g, g> with g = o / st has deviation 1 / |g|; eight of them, plus the part of the error that
// is common to all columns by construction, F + 2 th.
//
// Truncated output is biased towards zero by half a unit: y is moved outward by that much first. When the
// rounding is not known, a row must pass one way or the other.
#include "oracle/mla_compare.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "oracle/mismatch.h"
#include "reference/simd.h"

namespace attest::oracle {
namespace {

using Eigen::Index;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double zeta_generic = 1.3, zeta_any = 2.5;
constexpr double least_n_eff = 32, most_flushed = 0.05;

struct RowStatistics {
  double zeta = 0, beta = 0, norm = 0;
};

[[gnu::always_inline]] inline RowStatistics statistics(std::span<const double> y, const double* o,
                                                       const double* deviation, const RoundingGrid& grid,
                                                       double outward) {
  // Buffers first, then sums in four lanes: loops that are vectors whatever compiles them, and always the
  // same order.
  constexpr std::size_t lanes = 4;
  std::array<double, reference::kv_lora_rank> errors{}, weights{};
  const std::size_t count = y.size();
  for (std::size_t d = 0; d < count; ++d) {
    const double step = grid.step(o[d]);
    weights[d] = 1 / (deviation[d] * deviation[d] + step * step / 12);
    errors[d] = y[d] - o[d];
  }
  if (outward != 0)
    for (std::size_t d = 0; d < count; ++d)
      if (errors[d] != 0) errors[d] += std::copysign(outward * grid.step(y[d]), y[d]);
  std::array<double, lanes> zg_lane{}, gg_lane{}, zz_lane{};
  const auto add = [&](std::size_t d, std::size_t lane) {
    zg_lane[lane] += errors[d] * o[d] * weights[d];
    gg_lane[lane] += o[d] * o[d] * weights[d];
    zz_lane[lane] += errors[d] * errors[d] * weights[d];
  };
  std::size_t done = 0;
  for (; done + lanes <= count; done += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) add(done + lane, lane);
  for (; done < count; ++done) add(done, 0);
  const auto total = [](const std::array<double, lanes>& sums) {
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  };
  const double zg = total(zg_lane), gg = total(gg_lane), zz = total(zz_lane);
  RowStatistics s;
  s.norm = std::sqrt(gg);
  s.beta = gg > 0 ? zg / gg : 0;
  s.zeta = std::sqrt(std::max(0.0, zz - (gg > 0 ? zg * zg / gg : 0)) / static_cast<double>(count));
  return s;
}

// Distance of y from what rounding can make of o, over E; above 1 fails.
inline double element_ratio(double y, double o, double E, const Rules& rules) {
  const RoundingGrid& grid = rules.grid;
  if (rules.exact && rules.rounding == OutputRounding::nearest_even) {
    const double low = grid.nearest(o - E), high = grid.nearest(o + E);
    const double outside = y < low ? low - y : y > high ? y - high : 0.0;
    if (outside > 0) return 1 + outside / E;
  }
  const double larger = std::abs(y) > std::abs(o) ? y : o;
  const double step = grid.step(larger), difference = std::abs(y - o);
  double cell = step / 2;
  if (rules.rounding == OutputRounding::either) cell = step;
  if (rules.rounding == OutputRounding::truncate) cell = std::abs(y) <= std::abs(o) ? step : 0.0;
  const double excess = difference > cell ? difference - cell : 0.0;
  return excess / E;
}

/// What the usual row needs: reductions of integers, which are vectors in any order. Not negative and not NaN,
/// doubles compare like their bits.
struct RowSums {
  std::int64_t largest_bits = 0;  ///< of the ratios
  std::int64_t failing = 0, telling = 0;
  std::int64_t unusual = 0;  ///< y not finite, overflow possible, or 0/0: the ratios do not say it all
};

/// By value and restrict: what is written changes nothing that is read, or the loop is no vector.
[[gnu::always_inline]] inline RowSums ratios(const double* y, const double* o, const double* E,
                                             std::size_t count, const Rules rules, double* __restrict ratio) {
  const double threshold = rules.grid.overflow_threshold();
  RowSums sums;
  for (std::size_t d = 0; d < count; ++d) {
    const double used = element_ratio(y[d], o[d], E[d], rules);
    ratio[d] = used;
    const auto bits = std::bit_cast<std::int64_t>(used);
    sums.largest_bits = bits > sums.largest_bits ? bits : sums.largest_bits;
    sums.failing += used > 1 ? 1 : 0;
    sums.telling |= std::abs(o[d]) - rules.grid.step(o[d]) / 2 - E[d] > 0 ? 1 : 0;
    sums.unusual |= std::abs(y[d]) <= std::numeric_limits<double>::max() ? 0 : 1;
    sums.unusual |= std::abs(o[d]) + E[d] <= threshold ? 0 : 1;
    sums.unusual |= used >= 0 ? 0 : 1;
  }
  return sums;
}

/// Column by column, with what infinities, overflow and 0/0 mean.
void sum_up_unusual(std::span<const double> y, const double* o, const double* E, const Rules& rules,
                    const double* ratios, RowResult& result) {
  const double threshold = rules.grid.overflow_threshold();
  for (std::size_t d = 0; d < y.size(); ++d) {
    double ratio = ratios[d];
    if (!std::isfinite(y[d]) || std::abs(o[d]) + E[d] > threshold) {
      const bool may = std::abs(o[d]) + E[d] > threshold, must = std::abs(o[d]) - E[d] > threshold;
      const bool same_sign = std::signbit(y[d]) == std::signbit(o[d]);
      if (std::isinf(y[d]) && may && same_sign) {
        ratio = 0;
      } else if (!std::isfinite(y[d]) || (must && rules.rounding == OutputRounding::nearest_even)) {
        ratio = infinity;
      } else if (must) {
        ratio = std::abs(y[d]) == rules.grid.max_finite && same_sign ? 0 : infinity;
      }
    }
    if (ratio > 1) ++result.failing_elements;
    if (ratio > result.used || result.column < 0) {
      result.used = ratio;
      result.column = static_cast<int>(d);
    }
    if (std::abs(o[d]) - rules.grid.step(o[d]) / 2 - E[d] > 0) result.telling = true;
  }
}

void compare_elements(std::span<const double> y, const double* o, const double* E, const Rules& rules,
                      RowResult& result) {
  std::array<double, reference::kv_lora_rank> buffer;
  RowSums sums;
  const bool nearest = !rules.exact && rules.rounding == OutputRounding::nearest_even;
  reference::run_for(reference::widest_simd(),
                     [=, y = y.data(), count = y.size(), rules = rules, ratio = buffer.data(), sums = &sums]()
                         __attribute__((always_inline)) {
                           if (nearest) {
                             Rules usual;  // known to the compiler: the loop has no branches left
                             usual.grid = rules.grid;
                             *sums = ratios(y, o, E, count, usual, ratio);
                           } else {
                             *sums = ratios(y, o, E, count, rules, ratio);
                           }
                         });
  if (sums.unusual != 0) return sum_up_unusual(y, o, E, rules, buffer.data(), result);
  result.used = std::bit_cast<double>(sums.largest_bits);
  result.column =
      static_cast<int>(std::find(buffer.data(), buffer.data() + y.size(), result.used) - buffer.data());
  result.failing_elements += static_cast<int>(sums.failing);
  result.telling = result.telling || sums.telling != 0;
}

void compare_row_as_a_whole(std::span<const double> y, const double* o, const MlaBound& bound, Index row,
                            const Rules& rules, RowResult& result) {
  const bool many = rules.generic && bound.n_eff[row] >= least_n_eff;
  result.residual_limit = many && bound.flushed[row] <= most_flushed ? zeta_generic : zeta_any;
  const auto judge = [&](double outward) {
    RowStatistics s;
    reference::run_for(reference::widest_simd(), [&]() __attribute__((always_inline)) {
      s = statistics(y, o, &bound.deviation(row, 0), rules.grid, outward);
    });
    result.residual = s.zeta;
    result.scale = s.beta;
    result.scale_limit = many && s.norm > 0 ? bound.scale[row] + 8 / s.norm : infinity;
    return s.zeta <= result.residual_limit && std::abs(s.beta) <= result.scale_limit;
  };
  bool good = judge(rules.rounding == OutputRounding::truncate ? 0.5 : 0.0);
  if (!good && rules.rounding == OutputRounding::either) good = judge(0.5);
  if (!good) result.failed = Stage::row;
}

}  // namespace

const char* name(Stage stage) {
  switch (stage) {
    case Stage::none:
      return "";
    case Stage::data_class:
      return "class";
    case Stage::exact:
      return "exact";
    case Stage::element:
      return "element";
    case Stage::lse:
      return "lse";
    case Stage::row:
      return "row";
  }
  return "";
}

double used_budget(const RowResult& result, std::span<const double> y, const double* lse) {
  if (!result.judged) return Mismatch::not_checked;
  double used = std::max(result.used, result.lse_used);
  if (result.failed == Stage::row)
    used = std::max(
        {used, result.residual / result.residual_limit, std::abs(result.scale) / result.scale_limit});
  const bool nan = (lse != nullptr && std::isnan(*lse)) ||
                   std::any_of(y.begin(), y.end(), [](double v) { return std::isnan(v); });
  return std::isinf(used) && nan ? std::numeric_limits<double>::quiet_NaN() : used;
}

RowResult compare_row(std::span<const double> y, const double* lse,
                      const reference::RequestAttention& attention, const MlaBound& bound, Index row,
                      const Rules& rules) {
  RowResult result;
  const auto fail_class = [&](int column) {
    result.failed = Stage::data_class;
    result.used = infinity;
    result.column = column;
  };
  const auto at = [&](std::size_t d) { return static_cast<int>(d); };
  switch (bound.row_class[static_cast<std::size_t>(row)]) {
    case RowClass::out_of_range:
      return result;
    case RowClass::empty: {
      result.judged = true;
      if (rules.empty == EmptyOutput::zero)
        for (std::size_t d = y.size(); d-- > 0;)
          if (y[d] != 0) {  // true for NaN too
            fail_class(at(d));
            ++result.failing_elements;
          }
      if (lse != nullptr && !std::isnan(rules.lse_empty) && *lse != rules.lse_empty) {
        result.failed = Stage::data_class;
        result.lse_used = infinity;
      }
      return result;
    }
    case RowClass::non_finite: {
      // All visible scores -inf: 0/0 has no defined value, 0 is as good as NaN.
      const bool undefined = attention.row_max[row] == -infinity;
      result.judged = true;
      for (std::size_t d = y.size(); d-- > 0;)
        if (!std::isfinite(attention.out(row, static_cast<Index>(d))) && std::isfinite(y[d]) &&
            !(undefined && y[d] == 0)) {
          fail_class(at(d));
          ++result.failing_elements;
        }
      return result;
    }
    case RowClass::judged:
      break;
  }
  result.judged = true;
  const double* o = &attention.out(row, 0);
  compare_elements(y, o, &bound.element(row, 0), rules, result);
  if (lse != nullptr) {
    const double difference = std::abs(*lse - attention.lse[row]);
    result.lse_used = std::isfinite(*lse) ? difference / bound.lse[row] : infinity;
    if (std::abs(attention.lse[row]) > bound.lse[row]) result.telling = true;
  }
  if (std::isinf(result.used) || std::isinf(result.lse_used)) {
    result.failed = Stage::data_class;
    if (!std::isinf(result.used)) result.column = -1;
  } else if (result.used > 1) {
    result.failed = rules.exact ? Stage::exact : Stage::element;
  } else if (result.lse_used > 1) {
    result.failed = Stage::lse;
  } else if (rules.statistics && !rules.exact) {
    compare_row_as_a_whole(y, o, bound, row, rules, result);
  }
  return result;
}

}  // namespace attest::oracle
