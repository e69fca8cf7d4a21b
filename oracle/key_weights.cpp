// SPDX-License-Identifier: MIT
//
// Modified Gram-Schmidt, every vector twice against those before it, which keeps the basis orthogonal to
// rounding where the values tell anything at all (Giraud, Langou, Rozloznik: The loss of orthogonality in the
// Gram-Schmidt orthogonalization process, 2005). Plain loops in a fixed order: the same bits on every
// machine.
#include "oracle/key_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace attest::oracle {
namespace {

using Eigen::Index;
/// A value of which less than this part is its own says too little about its weight.
constexpr double least_part = 1e-6;

double dot(const double* a, const double* b, Index count) {
  std::array<double, 4> lanes{};
  Index d = 0;
  for (; d + 4 <= count; d += 4)
    for (Index lane = 0; lane < 4; ++lane) lanes[static_cast<std::size_t>(lane)] += a[d + lane] * b[d + lane];
  for (; d < count; ++d) lanes[0] += a[d] * b[d];
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

void add(double* to, double factor, const double* from, Index count) {
  for (Index d = 0; d < count; ++d) to[d] += factor * from[d];
}

std::string runs(const std::vector<int>& keys) {
  constexpr std::size_t most = 6;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < keys.size();) {
    std::size_t last = i;
    while (last + 1 < keys.size() && keys[last + 1] == keys[last] + 1) ++last;
    parts.push_back(last == i ? std::to_string(keys[i]) : fmt::format("{} to {}", keys[i], keys[last]));
    i = last + 1;
  }
  if (parts.size() > most) {
    parts.resize(most);
    parts.emplace_back("...");
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

double KeyWeight::used() const {
  const double off = std::abs(found - expected);
  if (off == 0) return 0;
  return within > 0 ? off / within : std::numeric_limits<double>::infinity();
}

KeyWeights::KeyWeights(const Matrix& values) : values_(values) {
  const Index keys = values.rows(), columns = values.cols();
  if (keys == 0 || keys > most_keys || keys > columns || !values.allFinite()) return;
  Matrix basis = values;
  Matrix triangle = Matrix::Zero(keys, keys);  // values = triangle^T basis
  for (Index j = 0; j < keys; ++j) {
    double* v = &basis(j, 0);
    const double length = std::sqrt(dot(v, v, columns));
    for (int pass = 0; pass < 2; ++pass)
      for (Index i = 0; i < j; ++i) {
        const double along = dot(&basis(i, 0), v, columns);
        triangle(i, j) += along;
        add(v, -along, &basis(i, 0), columns);
      }
    const double own = std::sqrt(dot(v, v, columns));
    if (!(own > least_part * length)) return;
    triangle(j, j) = own;
    for (Index d = 0; d < columns; ++d) v[d] /= own;
  }
  // Row j of the pseudo-inverse is orthogonal to all values but the j-th.
  inverse_ = std::move(basis);
  for (Index j = keys; j-- > 0;) {
    double* row = &inverse_(j, 0);
    for (Index k = j + 1; k < keys; ++k) add(row, -triangle(j, k), &inverse_(k, 0), columns);
    for (Index d = 0; d < columns; ++d) row[d] /= triangle(j, j);
  }
  tell_ = true;
}

std::optional<std::vector<KeyWeight>> KeyWeights::of(std::span<const double> y, std::span<const double> bound,
                                                     std::span<const double> expected) const {
  const Index columns = values_.cols();
  if (!tell_ || !std::all_of(y.begin(), y.end(), [](double x) { return std::isfinite(x); }) ||
      !std::all_of(bound.begin(), bound.end(), [](double x) { return std::isfinite(x); }))
    return std::nullopt;
  std::vector<KeyWeight> weights;
  std::vector<double> left(y.begin(), y.end());
  double sum = 0;
  for (Index j = 0; j < values_.rows(); ++j) {
    KeyWeight w;
    w.expected = expected[static_cast<std::size_t>(j)];
    w.found = dot(&inverse_(j, 0), y.data(), columns);
    for (Index d = 0; d < columns; ++d)
      w.within += std::abs(inverse_(j, d)) * bound[static_cast<std::size_t>(d)];
    add(left.data(), -w.found, &values_(j, 0), columns);
    sum += std::abs(w.found);
    weights.push_back(w);
  }
  // The bound is that of weights which sum to one; others err in proportion.
  const double most = std::sqrt(dot(bound.data(), bound.data(), columns)) * std::max(1.0, sum);
  if (!(std::sqrt(dot(left.data(), left.data(), columns)) <= most)) return std::nullopt;

  std::vector<const KeyWeight*> heavy;  // both weights are more than the error
  for (const KeyWeight& w : weights)
    if (w.expected > 2 * w.within && w.found > 2 * w.within) heavy.push_back(&w);
  if (heavy.empty()) return weights;
  const auto middle = heavy.begin() + static_cast<std::ptrdiff_t>(heavy.size() / 2);
  std::nth_element(heavy.begin(), middle, heavy.end(), [](const KeyWeight* a, const KeyWeight* b) {
    return a->found * b->expected < b->found * a->expected;
  });
  const double factor = (*middle)->found / (*middle)->expected, off = (*middle)->within / (*middle)->expected;
  for (KeyWeight& w : weights) {
    w.within += w.expected * off;
    w.expected *= factor;
  }
  return weights;
}

std::string in_words(const std::vector<KeyWeight>& weights) {
  std::vector<int> little, much;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    if (!(weights[j].used() > 1)) continue;
    (weights[j].found < weights[j].expected ? little : much).push_back(static_cast<int>(j));
  }
  const auto on = [](const std::vector<int>& keys) {
    return fmt::format("{}{}", keys.size() == 1 ? "key " : "keys ", runs(keys));
  };
  if (little.empty() && much.empty()) return {};
  if (little.empty()) return "too much weight on " + on(much);
  if (much.empty()) return "too little weight on " + on(little);
  return fmt::format("too little weight on {}, too much on {}", on(little), on(much));
}

}  // namespace attest::oracle
