// SPDX-License-Identifier: MIT
#include "reference/indexer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "reference/index_remap.h"

namespace attest::reference {

TEST_CASE("Logits are the sum of the definition, written out") {
  constexpr int heads = 3;
  constexpr int n = 5;
  Matrix q(heads, indexer_width);
  Matrix keys(n, indexer_width);
  for (int h = 0; h < heads; ++h)
    for (int i = 0; i < indexer_width; ++i) q(h, i) = (7 * h + 3 * i) % 11 - 5;
  for (int s = 0; s < n; ++s)
    for (int i = 0; i < indexer_width; ++i) keys(s, i) = (5 * s + 2 * i) % 13 - 6;
  const std::vector<double> weights = {0.5, -2, 1};
  const std::vector<double> k_scale = {1, 0.25, 4, 0, 2};
  const IndexerLogits result = indexer_logits(q, weights, keys, k_scale);
  for (int s = 0; s < n; ++s) {
    double logit = 0;
    double positive = 0;
    double magnitude = 0;
    for (int h = 0; h < heads; ++h) {
      double dot = 0;
      double absolute = 0;
      for (int i = 0; i < indexer_width; ++i) {
        dot += q(h, i) * keys(s, i);
        absolute += std::abs(q(h, i) * keys(s, i));
      }
      const std::size_t at = static_cast<std::size_t>(h);
      logit += weights[at] * std::max(dot, 0.0);
      positive += std::abs(weights[at]) * std::max(dot, 0.0);
      magnitude += std::abs(weights[at]) * absolute;
    }
    const double scale = k_scale[static_cast<std::size_t>(s)];
    CHECK(result.logits[s] == logit * scale);
    CHECK(result.positive[s] == positive * scale);
    CHECK(result.magnitude[s] == magnitude * scale);
  }
}

TEST_CASE("Negative products count for nothing, negative weights against the key") {
  const Matrix q = Matrix::Constant(1, indexer_width, 1.0);
  Matrix keys(2, indexer_width);
  keys.row(0).setConstant(2.0);
  keys.row(1).setConstant(-2.0);
  const std::vector<double> scale = {1, 1};
  CHECK(indexer_logits(q, std::vector<double>{3}, keys, scale).logits[0] == 768);
  CHECK(indexer_logits(q, std::vector<double>{3}, keys, scale).logits[1] == 0);
  CHECK(indexer_logits(q, std::vector<double>{-3}, keys, scale).logits[0] == -768);
  CHECK_THROWS_AS(indexer_logits(q, std::vector<double>{1, 2}, keys, scale), std::invalid_argument);
  CHECK_THROWS_AS(indexer_logits(q, std::vector<double>{1}, keys, std::vector<double>{1}),
                  std::invalid_argument);
}

TEST_CASE("A page holds all values, then all scales") {
  CHECK(indexer_values_at(3) == 384);
  CHECK(indexer_scale_at(64, 0) == 8192);
  CHECK(indexer_scale_at(64, 63) + 4 == 64 * indexer_token_bytes);
  CHECK(indexer_scale_at(1, 0) == 128);
}

TEST_CASE("Positions become slots through the block table") {
  const std::vector<std::int32_t> table = {7, 2, 9};
  const auto slot = [&](std::int32_t index, int page_size, InvalidSlot invalid = InvalidSlot::minus_one) {
    return global_slot(index, table, page_size, invalid);
  };
  CHECK(slot(0, 4) == 28);
  CHECK(slot(5, 4) == 9);
  CHECK(slot(11, 4) == 39);
  CHECK(slot(2, 1) == 9);
  CHECK(slot(12, 4) == -1);  // past the table
  CHECK(slot(-1, 4) == -1);
  CHECK(slot(-2147483647 - 1, 4) == -1);
  CHECK(slot(2147483647, 4) == -1);
  CHECK(slot(-1, 4, InvalidSlot::zero) == 0);
  CHECK(slot(12, 4, InvalidSlot::zero) == 0);
  CHECK(slot(5, 4, InvalidSlot::zero) == 9);
  CHECK_THROWS_AS(slot(0, 0), std::invalid_argument);
}

}  // namespace attest::reference
