// SPDX-License-Identifier: MIT
//
// Weights had back from a row of attention, with defects whose keys are known.
#include "oracle/key_weights.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "oracle/rounding_grid.h"
#include "oracle/tests/random_cases.h"

namespace attest::oracle {
namespace {

constexpr int columns = 512;

double uniform(testing::Dice& random) {
  return static_cast<double>(random.next() >> 11U) * 0x1p-53 * 2 - 1;
}

/// A row over `keys` random values with weights of a softmax, as a kernel in bf16 writes it.
struct Row {
  Matrix values;
  std::vector<double> p, y, bound;

  explicit Row(int keys, std::uint64_t seed = 7) : values(keys, columns) {
    testing::Dice random(seed);
    for (int j = 0; j < keys; ++j)
      for (int d = 0; d < columns; ++d) values(j, d) = uniform(random);
    for (int j = 0; j < keys; ++j) p.push_back(std::exp(2 * uniform(random)));
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& w : p) w /= sum;
    write(p);
  }
  /// The result has these weights instead.
  void write(const std::vector<double>& weights) {
    const RoundingGrid grid = RoundingGrid::of(cases::Format::bf16);
    y.assign(columns, 0);
    bound.assign(columns, 0);
    for (int d = 0; d < columns; ++d) {
      double sum = 0;
      for (std::size_t j = 0; j < weights.size(); ++j) sum += weights[j] * values(static_cast<int>(j), d);
      y[static_cast<std::size_t>(d)] = grid.nearest(sum);
      bound[static_cast<std::size_t>(d)] = 1e-5 + grid.step(sum) / 2;
    }
  }
  /// The keys that `wrong` reports, or {-1} when it says nothing.
  [[nodiscard]] std::vector<int> wrong() const {
    const auto weights = KeyWeights(values).of(y, bound, p);
    if (!weights) return {-1};
    std::vector<int> keys;
    for (std::size_t j = 0; j < weights->size(); ++j)
      if ((*weights)[j].used() > 1) keys.push_back(static_cast<int>(j));
    return keys;
  }
  [[nodiscard]] std::string words() const { return in_words(*KeyWeights(values).of(y, bound, p)); }
};

/// As a softmax over other keys would have them.
std::vector<double> renormalised(std::vector<double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& w : weights) w /= sum;
  return weights;
}

}  // namespace

TEST_CASE("a right row weighs all its keys as it should") {
  for (const int keys : {1, 2, 17, 64, KeyWeights::most_keys})
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      const Row row(keys, seed);
      CHECK(row.wrong().empty());
      CHECK(row.words().empty());
    }
}

TEST_CASE("lost, repeated and foreseen keys are named, and no others") {
  Row row(40);
  std::vector<double> weights = row.p;
  std::fill(weights.begin() + 32, weights.end(), 0.0);
  row.write(renormalised(weights));
  CHECK(row.wrong() == std::vector<int>{32, 33, 34, 35, 36, 37, 38, 39});
  CHECK(row.words() == "too little weight on keys 32 to 39");

  // Most of them: the few that are left agree on their factor.
  weights = row.p;
  std::fill(weights.begin() + 4, weights.end(), 0.0);
  row.write(renormalised(weights));
  CHECK(row.words() == "too little weight on keys 4 to 39");

  weights = row.p;
  for (int j = 16; j < 20; ++j) weights[static_cast<std::size_t>(j)] *= 2;
  row.write(renormalised(weights));
  CHECK(row.words() == "too much weight on keys 16 to 19");

  Row causal(40);
  const double future = causal.p.back();
  causal.p.back() = 0;
  causal.p = renormalised(causal.p);
  weights = causal.p;
  weights.back() = future;
  causal.write(renormalised(weights));
  CHECK(causal.words() == "too much weight on key 39");
}

TEST_CASE("a common factor is no key's fault") {
  Row row(30);
  std::vector<double> weights = row.p;
  for (double& w : weights) w *= 1.25;
  row.write(weights);
  CHECK(row.wrong().empty());
}

TEST_CASE("nothing is said where the result does not tell") {
  Row foreign(20);
  testing::Dice random(99);
  for (double& v : foreign.y) v += 0.05 * uniform(random);  // another row's value besides
  CHECK(foreign.wrong() == std::vector<int>{-1});
  Row broken(20);
  broken.y[3] = std::numeric_limits<double>::quiet_NaN();
  CHECK(broken.wrong() == std::vector<int>{-1});

  Row twice(20);
  twice.values.row(7) = twice.values.row(11);
  CHECK_FALSE(KeyWeights(twice.values).tell());
  CHECK_FALSE(KeyWeights(Matrix::Constant(5, columns, 1.0)).tell());
  CHECK_FALSE(KeyWeights(Row(KeyWeights::most_keys + 1).values).tell());
  CHECK_FALSE(KeyWeights(Matrix(0, columns)).tell());
}

}  // namespace attest::oracle
