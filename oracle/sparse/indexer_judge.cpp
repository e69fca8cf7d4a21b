// SPDX-License-Identifier: MIT
#include "oracle/sparse/indexer_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "oracle/sparse/numbers.h"
#include "reference/formats.h"
#include "reference/paged_cache.h"

namespace attest::oracle {
namespace {

using cases::IndexerLogitsInputs;
using Eigen::Index;
using reference::Matrix;
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Keys {
  Matrix values;              ///< [n, 128]
  std::vector<double> scale;  ///< [n]
};

double f32_of(const std::byte* bytes) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, bytes, sizeof bits);
  return reference::decode(reference::Format::f32, bits);
}

class Launch {
 public:
  Launch(const cases::IndexerLogits& problem, const IndexerLogitsInputs& inputs) : p(problem), in(inputs) {
    int begin = 0;
    for (const cases::Request& r : p.requests) {
      keys_.push_back(p.form == cases::TopKForm::decode ? paged(static_cast<int>(keys_.size()))
                                                        : gathered(begin, r.kv_len));
      begin += r.kv_len;
      for (int i = 0; i < r.q_len; ++i) request_of_row_.push_back(static_cast<int>(keys_.size()) - 1);
    }
  }

  [[nodiscard]] int request(std::size_t row) const { return request_of_row_[row]; }
  [[nodiscard]] const Keys& keys(int request) const { return keys_[static_cast<std::size_t>(request)]; }

  [[nodiscard]] Matrix q(std::size_t row) const {
    const auto bytes = static_cast<std::size_t>(p.heads) * reference::indexer_width;
    return reference::decode_matrix(reference::Format::fp8_e4m3fnuz,
                                    std::span(in.q).subspan(row * bytes, bytes), p.heads,
                                    reference::indexer_width);
  }
  [[nodiscard]] std::vector<double> weights(std::size_t row, bool with_scale = true) const {
    std::vector<double> w;
    const auto first = row * static_cast<std::size_t>(p.heads);
    for (std::size_t h = first; h < first + static_cast<std::size_t>(p.heads); ++h)
      w.push_back(double{in.weights[h]} * (with_scale ? double{in.q_scale[h]} : 1.0));
    return w;
  }

  const cases::IndexerLogits& p;
  const IndexerLogitsInputs& in;

 private:
  Keys gathered(int begin, int count) const {
    Keys keys;
    const auto bytes = std::span(in.keys).subspan(static_cast<std::size_t>(begin) * reference::indexer_width,
                                                  static_cast<std::size_t>(count) * reference::indexer_width);
    keys.values =
        reference::decode_matrix(reference::Format::fp8_e4m3fnuz, bytes, count, reference::indexer_width);
    keys.scale.assign(in.k_scale.begin() + begin, in.k_scale.begin() + begin + count);
    return keys;
  }

  Keys paged(int request) const {
    const int count = p.requests[static_cast<std::size_t>(request)].kv_len;
    Keys keys{Matrix(count, reference::indexer_width), {}};
    for (int position = 0; position < count; ++position) {
      const auto entry = static_cast<std::size_t>(request * in.table_stride + position / p.page_size);
      const std::uint64_t page = static_cast<std::uint64_t>(in.block_table[entry]) * in.page_stride_bytes;
      const int offset = position % p.page_size;
      reference::decode(reference::Format::fp8_e4m3fnuz,
                        in.pool.at(page + reference::indexer_values_at(offset), reference::indexer_width),
                        {keys.values.data() + Index{position} * reference::indexer_width,
                         static_cast<std::size_t>(reference::indexer_width)});
      keys.scale.push_back(
          f32_of(in.pool.at(page + reference::indexer_scale_at(p.page_size, offset), 4).data()));
    }
    return keys;
  }

  std::vector<Keys> keys_;
  std::vector<int> request_of_row_;
};

/// What a wrong row might be instead, by how much of it is explained.
class Hypotheses {
 public:
  Hypotheses(const Launch& launch, std::size_t row, std::span<const float> got,
             const Eigen::VectorXd& reference, const Eigen::VectorXd& bound)
      : launch_(launch), row_(row), got_(got), reference_(reference), bound_(bound) {}

  [[nodiscard]] std::string name() const {
    const Keys& keys = launch_.keys(launch_.request(row_));
    const Matrix q = launch_.q(row_);
    const Index n = reference_.size();
    const Matrix seen = keys.values.topRows(n);
    const std::vector<double> scale(keys.scale.begin(), keys.scale.begin() + n);
    if (explained(reference::indexer_logits(q, launch_.weights(row_, false), seen, scale).logits))
      return "query scale missing";
    if (explained(without_relu(q, seen, scale))) return "relu missing";
    for (const double factor : {2.0, 4.0, 0.5, 0.25})
      if (explained(factor * reference_))
        return factor > 1 ? "fp8 read with the other bias: too large"
                          : "fp8 read with the other bias: too small";
    const int page = launch_.p.form == cases::TopKForm::decode ? launch_.p.page_size : static_cast<int>(n);
    if (explained(neighbour_scales(scale, page))) return "scale of a neighbouring key";
    if (explained(first_of_page(page))) return "first key of each page only";
    if (scaled_differently()) return "key scales wrong";
    return {};
  }

 private:
  [[nodiscard]] bool explained(const Eigen::VectorXd& other) const {
    Index wrong = 0;
    for (Index s = 0; s < other.size(); ++s) {
      const double got = double{got_[static_cast<std::size_t>(s)]};
      if (std::abs(got - reference_[s]) > bound_[s]) ++wrong;
      if (!(std::abs(got - other[s]) <= 8 * bound_[s] + 1e-4 * std::abs(other[s]))) return false;
    }
    return wrong > 0;
  }

  [[nodiscard]] Eigen::VectorXd without_relu(const Matrix& q, const Matrix& keys,
                                             std::span<const double> scale) const {
    const std::vector<double> w = launch_.weights(row_);
    Matrix dots = Matrix::Zero(q.rows(), keys.rows());
    const Matrix transposed = keys.transpose();
    reference::add_product(q, transposed, dots);
    Eigen::VectorXd logits = Eigen::VectorXd::Zero(keys.rows());
    for (Index h = 0; h < dots.rows(); ++h)
      for (Index s = 0; s < dots.cols(); ++s)
        logits[s] += w[static_cast<std::size_t>(h)] * dots(h, s) * scale[static_cast<std::size_t>(s)];
    return logits;
  }

  /// The key's own scale where it is alone in its page, else that of the one before, or behind the first.
  [[nodiscard]] Eigen::VectorXd neighbour_scales(std::span<const double> scale, int page) const {
    Eigen::VectorXd logits = reference_;
    for (Index s = 0; s < logits.size(); ++s) {
      const Index of = s % page > 0 ? s - 1 : page > 1 ? s + 1 : s;
      if (of >= logits.size()) continue;
      logits[s] *= scale[static_cast<std::size_t>(of)] / scale[static_cast<std::size_t>(s)];
    }
    return logits;
  }

  [[nodiscard]] Eigen::VectorXd first_of_page(int page) const {
    Eigen::VectorXd logits = reference_;
    for (Index s = 0; s < logits.size(); ++s) logits[s] = reference_[s - s % page];
    return logits;
  }

  /// Every logit has its sign, and no factor is common to all: what wrong scales leave of a row.
  [[nodiscard]] bool scaled_differently() const {
    for (Index s = 0; s < reference_.size(); ++s) {
      const double got = double{got_[static_cast<std::size_t>(s)]};
      if (!std::isfinite(got) || got * reference_[s] < 0) return false;
    }
    return reference_.size() > 4;
  }

  const Launch& launch_;
  std::size_t row_;
  std::span<const float> got_;
  const Eigen::VectorXd& reference_;
  const Eigen::VectorXd& bound_;
};

}  // namespace

Eigen::VectorXd indexer_bound(const reference::IndexerLogits& logits, int heads) {
  constexpr double u = 0x1p-24;
  const auto gamma = [&](int n) { return n * u / (1 - n * u); };
  return (1.01 * (gamma(reference::indexer_width) * logits.magnitude + gamma(heads + 4) * logits.positive))
             .array() +
         0x1p-126;
}

Verdict judge_indexer_logits(const cases::Case& c, const cases::Inputs& inputs,
                             const cases::Outputs& outputs) {
  const auto& p = std::get<cases::IndexerLogits>(c.problem);
  const auto& in = std::get<IndexerLogitsInputs>(inputs);
  const std::size_t rows = in.row_begin.size();
  const auto width = static_cast<std::size_t>(in.width);
  const bool exact = c.data.fill == cases::Fill::exact;
  Verdict verdict;
  verdict.lane = exact ? "exact" : "element";
  std::vector<float> logits;
  if (!read_output(outputs, "logits", rows * width, logits, verdict)) return verdict;
  std::vector<float> before(rows * width);
  const std::vector<std::byte> poison =
      cases::poison_bytes(c, c.memory.output, cases::Format::f32, rows * width, "logits");
  if (!before.empty()) std::memcpy(before.data(), poison.data(), poison.size());

  const Launch launch(p, in);
  std::map<std::string, std::int64_t> times;
  MismatchGrid grid("column");
  std::string first;
  std::int64_t telling = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const int begin = in.row_begin[row];
    const int n = std::max(in.row_end[row] - begin, 0);
    const std::span<const float> got = std::span(logits).subspan(row * width, width);
    const Keys& keys = launch.keys(launch.request(row));
    const Matrix q = launch.q(row);
    const std::vector<double> scale(keys.scale.begin(), keys.scale.begin() + n);
    const reference::IndexerLogits expected =
        reference::indexer_logits(q, launch.weights(row), Matrix(keys.values.topRows(n)), scale);
    const Eigen::VectorXd bound = exact ? Eigen::VectorXd::Zero(n).eval() : indexer_bound(expected, p.heads);

    std::int64_t outside = 0, not_finite = 0, beyond = 0;
    Element worst;
    double worst_ratio = 0;
    for (int column = 0; column < in.width; ++column) {
      const double y = double{got[static_cast<std::size_t>(column)]};
      const bool inside = column >= begin && column < begin + n;
      const Index s = column - begin;
      const double want = inside ? expected.logits[s] : -infinity;
      const double limit = inside ? bound[s] : 0;
      double ratio = 0;
      if (!inside) {
        ratio = y == -infinity ? 0 : infinity;
        outside += ratio > 0 ? 1 : 0;
      } else if (!std::isfinite(y)) {
        ratio = infinity;
        ++not_finite;
      } else {
        ratio = exact ? (y == want ? 0 : infinity) : std::abs(y - want) / limit;
        beyond += ratio > 1 ? 1 : 0;
        telling += want != 0 ? 1 : 0;
        if (ratio <= 1) verdict.used_budget = std::max(verdict.used_budget, ratio);
      }
      ++verdict.elements_checked;
      grid.note(launch.request(row), static_cast<int>(row), column,
                inside && std::isnan(y) ? std::numeric_limits<double>::quiet_NaN() : ratio);
      if (ratio > 1 && ratio > worst_ratio) {
        worst_ratio = ratio;
        worst = {.request = launch.request(row),
                 .position = static_cast<int>(row),
                 .head = 0,
                 .column = column,
                 .expected = want,
                 .got = y,
                 .bound = limit,
                 .term = inside ? "logit" : "outside of the range"};
      }
    }
    const std::int64_t failed = outside + not_finite + beyond;
    if (failed == 0) continue;
    verdict.elements_failed += failed;
    ++verdict.rows_failed;
    std::string diagnosis;
    if (std::memcmp(got.data(), before.data() + row * width, 4 * width) == 0)
      diagnosis = "rows not written";
    else if (not_finite == 0 && beyond == 0)
      diagnosis = "columns outside of the range not -inf";
    else if (not_finite > 0)
      diagnosis = "logits not finite";
    else {
      const auto in_range = got.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(n));
      const Eigen::VectorXd slack = exact ? (0x1p-24 * expected.magnitude).eval() : bound;
      diagnosis = Hypotheses(launch, row, in_range, expected.logits, slack).name();
      if (diagnosis.empty()) diagnosis = "logits wrong";
    }
    ++times[diagnosis];
    if (first.empty())
      first = fmt::format(
          "row {} of request {}, column {} of [{}, {}): {:.9g}, expected {:.9g} within {:.3g}", row,
          worst.request, worst.column, begin, begin + n, worst.got, worst.expected, worst.bound);
    if (verdict.worst.size() < 10) verdict.worst.push_back(worst);
  }

  if (!times.empty()) {
    const auto most = std::max_element(times.begin(), times.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    verdict.kind = VerdictKind::fail;
    verdict.stage = verdict.lane;
    verdict.mismatch = grid.map();
    verdict.used_budget = 2;
    verdict.diagnosis = most->first;
    verdict.detail = fmt::format("{} of {} rows fail; first at {}", verdict.rows_failed, rows, first);
    return verdict;
  }
  if (telling == 0) {
    verdict.kind = VerdictKind::mistrusted;
    verdict.diagnosis = "nothing was proved";
    verdict.detail = "no row sees a key, or every logit is 0";
  }
  return verdict;
}

}  // namespace attest::oracle
