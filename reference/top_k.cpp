// SPDX-License-Identifier: MIT
#include "reference/top_k.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace attest::reference {
namespace {

/// Ascends with the order of section 5.10. Widening an f32 to a double keeps it, NaN's sign included.
std::int64_t rank(double score) {
  const auto bits = std::bit_cast<std::int64_t>(score);
  return bits >= 0 ? bits : bits ^ std::numeric_limits<std::int64_t>::max();
}

/// The ends of a score's band. NaN has none; it stands where the total order puts it.
double upper(double score, double error) {
  return std::isfinite(score) ? score + error : score;
}
double lower(double score, double error) {
  return std::isfinite(score) ? score - error : score;
}

/// a < b with -0 equal to +0, and NaN at the ends.
bool below(double a, double b) {
  if (!std::isnan(a) && !std::isnan(b)) return a < b;
  return rank(a) < rank(b);
}

}  // namespace

std::vector<std::int32_t> top_k(std::span<const double> scores, int k) {
  if (k < 0) throw std::invalid_argument("top_k: k must not be negative");
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto taken = std::min<std::ptrdiff_t>(std::ssize(scores), k);
  const auto better = [&](std::int32_t a, std::int32_t b) {
    const std::int64_t rank_a = rank(scores[static_cast<std::size_t>(a)]);
    const std::int64_t rank_b = rank(scores[static_cast<std::size_t>(b)]);
    return rank_a != rank_b ? rank_a > rank_b : a < b;
  };
  std::nth_element(order.begin(), order.begin() + taken, order.end(), better);
  order.resize(static_cast<std::size_t>(taken));
  std::sort(order.begin(), order.end());
  return order;
}

Selection check_top_k(std::span<const double> scores, std::span<const double> errors, int k,
                      std::span<const std::int32_t> chosen, bool ordered_nan) {
  using Fault = Selection::Fault;
  if (k < 0) throw std::invalid_argument("check_top_k: k must not be negative");
  if (!errors.empty() && errors.size() != scores.size())
    throw std::invalid_argument("check_top_k: one error per score, or none");
  const auto error = [&](std::size_t i) { return errors.empty() ? 0.0 : errors[i]; };

  std::vector<bool> taken(scores.size());
  std::ptrdiff_t count = 0;
  for (std::size_t e = 0; e < chosen.size(); ++e) {
    const std::int32_t position = chosen[e];
    if (position == -1) continue;
    const auto entry = static_cast<std::int32_t>(e);
    if (position < 0 || position >= std::ssize(scores)) return {Fault::out_of_range, position, entry};
    if (taken[static_cast<std::size_t>(position)]) return {Fault::duplicate, position, entry};
    taken[static_cast<std::size_t>(position)] = true;
    ++count;
  }
  const std::ptrdiff_t wanted = std::min<std::ptrdiff_t>(std::ssize(scores), k);
  if (count > wanted) return {Fault::surplus};
  if (count < wanted) return {Fault::missing};
  if (wanted == 0 || wanted == std::ssize(scores)) return {};
  if (!ordered_nan && std::any_of(scores.begin(), scores.end(), [](double s) { return std::isnan(s); }))
    return {};

  std::size_t worst_in = scores.size();
  std::size_t best_out = scores.size();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (taken[i]) {
      if (worst_in == scores.size() ||
          below(upper(scores[i], error(i)), upper(scores[worst_in], error(worst_in))))
        worst_in = i;
    } else if (best_out == scores.size() ||
               below(lower(scores[best_out], error(best_out)), lower(scores[i], error(i)))) {
      best_out = i;
    }
  }
  const double in = upper(scores[worst_in], error(worst_in));
  const double out = lower(scores[best_out], error(best_out));
  if (!below(in, out)) return {};
  return {Fault::not_largest, static_cast<std::int32_t>(best_out), -1, out - in};
}

}  // namespace attest::reference
