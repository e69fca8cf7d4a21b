// SPDX-License-Identifier: MIT
//
// Written in the order of the formulas in attention.h. Two things are not as on paper:
//
// Scores are computed transposed, K * q^T, a block of keys at a time, and transposed back while they are
// scaled: the small factor is then the one that the product repacks, and K is read once, in order.
//
// The last product stops where the causal bound first bites. Weights past a row's bound are 0, but 0 * V is
// not 0 when a later token holds NaN or infinity, and a row must not be touched by tokens it does not see. So
// all rows share one product over the keys that every non-empty row sees, and the at most q_len - 1 keys
// after them are added key by key to the rows that see them: the same additions in the same order as row by
// row.
#include "reference/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "reference/exponential.h"
#include "reference/matrix_product.h"

namespace attest::reference {
namespace {

using Eigen::Index;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Index key_block = 64;

void check_shapes(const Matrix& q, const Matrix& k, int q_len, int heads) {
  if (q_len < 0 || heads < 1)
    throw std::invalid_argument(fmt::format("attend: q_len {}, heads {}: want at least 0, 1", q_len, heads));
  const Index rows = Index{q_len} * heads;
  if (q.rows() != rows || (rows > 0 && q.cols() != row_width))
    throw std::invalid_argument(fmt::format("attend: q is [{}, {}], want [q_len * heads, {}] = [{}, {}]",
                                            q.rows(), q.cols(), row_width, rows, row_width));
  if (k.rows() > 0 && k.cols() != row_width)
    throw std::invalid_argument(
        fmt::format("attend: k is [{}, {}], want {} columns", k.rows(), k.cols(), row_width));
  if (k.rows() > std::numeric_limits<int>::max())
    throw std::invalid_argument(fmt::format("attend: kv_len {} does not fit an int", k.rows()));
}

int visible_keys(int kv_len, int q_len, int position, bool causal) {
  return causal ? std::max(0, kv_len - q_len + position + 1) : kv_len;
}

Matrix scaled_scores(const Matrix& q, const Matrix& k, double scale) {
  const Matrix q_transposed = q.transpose();
  Matrix scores(q.rows(), k.rows());
  Matrix block;
  for (Index first = 0; first < k.rows(); first += key_block) {
    const Index count = std::min(key_block, k.rows() - first);
    block.setZero(count, q.rows());
    add_product(k.middleRows(first, count), q_transposed, block);
    scores.middleCols(first, count) = scale * block.transpose();
  }
  return scores;
}

/// NaN if any is, so that it reaches every weight of the row.
double max_of(std::span<const double> values) {
  double max = -infinity;
  for (const double value : values)
    if (value > max || value != value) max = value;
  return max;
}

double sum_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

}  // namespace

RequestAttention attend_visible(const Matrix& q, const Matrix& k, const ConstBlock& v,
                                const AttentionScales& scales, std::vector<int> visible) {
  const Index rows = q.rows();
  const int kv_len = static_cast<int>(k.rows());
  if (static_cast<Index>(visible.size()) != rows || v.rows() != k.rows() ||
      (rows > 0 && kv_len > 0 && q.cols() != k.cols()))
    throw std::invalid_argument(
        fmt::format("attend_visible: q is [{}, {}], k [{}, {}], v [{}, {}], {} rows have a bound", rows,
                    q.cols(), k.rows(), k.cols(), v.rows(), v.cols(), visible.size()));
  if (!std::is_sorted(visible.begin(), visible.end()) ||
      (rows > 0 && (visible.front() < 0 || visible.back() > kv_len)))
    throw std::invalid_argument(
        fmt::format("attend_visible: bounds must lie in 0..{} and not decrease", kv_len));

  RequestAttention result;
  result.visible = std::move(visible);
  result.scores = scaled_scores(q, k, scales.sm_scale * scales.q_scale * scales.kv_scale);
  result.weights = result.scores;
  result.row_max.resize(rows);
  result.row_sum.resize(rows);
  result.lse.resize(rows);
  for (Index r = 0; r < rows; ++r) {
    const int seen = result.visible[r];
    const auto hidden = kv_len - seen;
    result.scores.row(r).tail(hidden).setConstant(-infinity);
    result.weights.row(r).tail(hidden).setZero();

    const std::span weights(result.weights.row(r).data(), static_cast<std::size_t>(seen));
    result.row_max[r] = max_of(weights);
    exp_shifted(weights, result.row_max[r]);
    result.row_sum[r] = sum_of(weights);
    result.lse[r] = seen == 0 ? -infinity : result.row_max[r] + natural_log(result.row_sum[r]);
    result.weights.row(r).head(seen) /= result.row_sum[r];
  }

  result.out.setZero(rows, v.cols());
  if (rows == 0 || kv_len == 0) return result;
  const int shared = result.visible.front();
  add_product(result.weights.leftCols(shared), v.topRows(shared), result.out);
  for (int key = shared; key < kv_len; ++key) {
    const auto first = std::upper_bound(result.visible.begin(), result.visible.end(), key);
    const Index seeing = result.visible.end() - first;  // the last rows see it
    if (seeing == 0) break;
    add_product(result.weights.block(rows - seeing, key, seeing, 1), v.row(key),
                result.out.bottomRows(seeing));
  }
  result.out *= scales.kv_scale;
  return result;
}

RequestAttention attend(const Matrix& q, const Matrix& k, const AttentionScales& scales, int q_len, int heads,
                        bool causal) {
  check_shapes(q, k, q_len, heads);
  const int kv_len = static_cast<int>(k.rows());
  std::vector<int> visible(static_cast<std::size_t>(q.rows()));
  for (Index r = 0; r < q.rows(); ++r)
    visible[r] = visible_keys(kv_len, q_len, static_cast<int>(r / heads), causal);
  RequestAttention result =
      attend_visible(q, k, k.leftCols(std::min<Index>(kv_lora_rank, k.cols())), scales, std::move(visible));
  if (kv_len == 0) result.out.setZero(q.rows(), kv_lora_rank);  // k may have no columns either
  return result;
}

}  // namespace attest::reference
