// SPDX-License-Identifier: MIT
#include "reference/indexer.h"

#include <cmath>
#include <stdexcept>

namespace attest::reference {

IndexerLogits indexer_logits(const ConstBlock& q, std::span<const double> weights, const ConstBlock& keys,
                             std::span<const double> k_scale) {
  using Eigen::Index;
  const Index heads = q.rows();
  const Index n = keys.rows();
  if (keys.cols() != q.cols() || std::ssize(weights) != heads || std::ssize(k_scale) != n)
    throw std::invalid_argument("indexer_logits: q [heads, d], weights [heads], keys [n, d], k_scale [n]");

  const Matrix transposed = keys.transpose();
  Matrix dots = Matrix::Zero(heads, n);
  add_product(q, transposed, dots);
  const Matrix q_magnitude = q.cwiseAbs();
  const Matrix key_magnitude = transposed.cwiseAbs();
  Matrix magnitudes = Matrix::Zero(heads, n);
  add_product(q_magnitude, key_magnitude, magnitudes);

  IndexerLogits result{Eigen::VectorXd::Zero(n), Eigen::VectorXd::Zero(n), Eigen::VectorXd::Zero(n)};
  for (Index h = 0; h < heads; ++h) {
    const double w = weights[static_cast<std::size_t>(h)];
    for (Index s = 0; s < n; ++s) {
      const double positive = dots(h, s) > 0 ? dots(h, s) : 0.0;
      result.logits[s] += w * positive;
      result.positive[s] += std::abs(w) * positive;
      result.magnitude[s] += std::abs(w) * magnitudes(h, s);
    }
  }
  for (Index s = 0; s < n; ++s) {
    const double scale = k_scale[static_cast<std::size_t>(s)];
    result.logits[s] *= scale;
    result.positive[s] *= scale;
    result.magnitude[s] *= scale;
  }
  return result;
}

}  // namespace attest::reference
