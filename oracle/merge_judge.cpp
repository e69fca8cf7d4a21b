// SPDX-License-Identifier: MIT
//
// How wrong a correct merge may be
// ================================
//
// A merge computes, in f32, w_s = b^(lse_s - M) and out = sum w_s o_s / sum w_s. Let u = 2^-24, n the number
// of states, e the error of exp2 in ulp, and d_s = |lse_s - M| in natural units.
//
// The weight. The difference rounds once, the factor log2(e) is itself rounded, and so is the product: 3u
// relative on the exponent, 3u d_s on the weight. exp2 adds 2ue. A kernel may also merge one state after the
// other; then a weight is a product of up to n such factors, whose exponents add up to the same d_s, and
// rounds n times:
//
//   |theta_s| <= u (3 d_s + (2e + 1) n)
//
// What weights have in common cancels in the quotient, so with normalised w_s the error they cause is
// sum w_s theta_s (o_s - o). Products and sums of the numerator cost (n + 2) u of sum w_s |o_s|, the sum of
// weights, the reciprocal and the last product (n + 4) u of |o| (Higham, Accuracy and Stability of Numerical
// Algorithms, section 3.1); 2 % pay for second order terms:
//
//   E  = 1.02 (sum w_s |theta_s| |o_s - o| + (n + 2) u sum w_s |o_s| + (n + 4) u |o|) + floor
//   El = 1.02 (sum w_s |theta_s| + n u) + u |lse| + 4u (|lse - M| + 1)               natural units
//
// El: the sum of weights is wrong by its weights' errors and n roundings, log2 by one ulp of |lse - M|, its
// conversion by two, the last addition by u |lse|. floor = 2^-126 (sum |o_s| + n + 2): weights and products
// that flush to zero. There is nothing statistical in it and no constant was fitted.
#include "oracle/merge_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "oracle/mla_launch.h"
#include "oracle/rounding_grid.h"
#include "oracle/worst_first.h"
#include "reference/formats.h"

namespace attest::oracle {
namespace {

using cases::MergeStates;
using reference::Matrix;
using reference::MergedState;

constexpr double u = 0x1p-24;
constexpr double ln_2 = 0.69314718055994530942;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t most_witnesses = 16;

struct Row {
  int token = 0, head = 0;
  std::vector<double> lse;  ///< of its states
  Matrix out;               ///< [states, head_dim]
};

struct RowVerdict {
  bool failed = false, of_lse = false, non_finite = false, telling = false;
  double used = 0, lse_used = 0;
  int column = -1, failing = 0;
};

class MergeLaunch {
 public:
  MergeLaunch(const cases::Case& c, const cases::Inputs& inputs, const PrecisionProfile& profile)
      : c_(c),
        p_(std::get<MergeStates>(c.problem)),
        in_(std::get<cases::MergeStatesInputs>(inputs)),
        profile_(profile),
        grid_(RoundingGrid::of(p_.out_format)) {
    for (const auto& state : in_.states) states_.push_back(decoded(p_.state_format, state.out));
  }

  /// One line when an output is missing or of the wrong size; "" otherwise.
  std::string open(const cases::Outputs& outputs) {
    const auto bytes_of = [&](std::string_view name, std::size_t size,
                              std::span<const std::byte>& bytes) -> std::string {
      const cases::Outputs::Tensor* tensor = outputs.find(name);
      if (tensor == nullptr) return fmt::format("the device returned no tensor \"{}\"", name);
      if (tensor->bytes.size() != size)
        return fmt::format("tensor \"{}\" has {} bytes, the case asks for {}", name, tensor->bytes.size(),
                           size);
      bytes = tensor->bytes;
      return {};
    };
    const auto elements = static_cast<std::size_t>(p_.elements(p_.out_layout()));
    const auto element = static_cast<std::size_t>(reference::bytes_per_element(to_reference(p_.out_format)));
    if (std::string why = bytes_of("out", elements * element, out_bytes_); !why.empty()) return why;
    out_ = decoded(p_.out_format, out_bytes_);
    before_ = p_.in_place ? in_.states.front().out
                          : cases::poison_bytes(c_, c_.memory.output, p_.out_format, elements, "out");
    if (!p_.return_lse) return {};
    const auto rows = static_cast<std::size_t>(p_.tokens) * static_cast<std::size_t>(p_.heads);
    std::span<const std::byte> lse_bytes;
    if (std::string why = bytes_of("lse", rows * sizeof(float), lse_bytes); !why.empty()) return why;
    lse_ = decoded(cases::Format::f32, lse_bytes);
    return {};
  }

  [[nodiscard]] const MergeStates& problem() const { return p_; }
  [[nodiscard]] bool base_two() const { return p_.lse_base == cases::LseBase::two; }

  [[nodiscard]] Row row(int token, int head) const {
    return row_at(token, head, [](std::size_t s) { return s; });
  }

  /// The row as a kernel reads it that takes the strides of the first state for all; nullopt where it would
  /// read outside.
  [[nodiscard]] std::optional<Row> row_by_first_strides(int token, int head) const {
    const auto first = token * p_.token_stride(p_.states[0]) + head * p_.head_stride(p_.states[0]);
    for (std::size_t s = 0; s < states_.size(); ++s)
      if (first + p_.head_dim > std::ssize(states_[s])) return std::nullopt;
    return row_at(token, head, [](std::size_t) { return std::size_t{0}; });
  }

  [[nodiscard]] std::span<const double> result(int token, int head) const {
    return std::span(out_).subspan(static_cast<std::size_t>(out_at(token, head)),
                                   static_cast<std::size_t>(p_.head_dim));
  }
  [[nodiscard]] const double* result_lse(int token, int head) const {
    return p_.return_lse ? &lse_[static_cast<std::size_t>(p_.lse_index(token, head))] : nullptr;
  }

  [[nodiscard]] bool untouched(int token, int head) const {
    if (p_.in_place) return false;
    const std::size_t element = before_.size() / out_.size();
    const std::size_t at = static_cast<std::size_t>(out_at(token, head)) * element;
    return std::memcmp(out_bytes_.data() + at, before_.data() + at,
                       static_cast<std::size_t>(p_.head_dim) * element) == 0;
  }

  /// First element between the rows that changed.
  [[nodiscard]] std::optional<std::int64_t> changed_padding() const {
    const cases::StateLayout layout = p_.out_layout();
    const std::size_t element = before_.size() / out_.size();
    for (std::int64_t at = 0; at < std::ssize(out_); ++at) {
      const std::int64_t in_token = at % p_.token_stride(layout);
      if (in_token < p_.heads * p_.head_stride(layout) && in_token % p_.head_stride(layout) < p_.head_dim)
        continue;
      const std::size_t byte = static_cast<std::size_t>(at) * element;
      if (std::memcmp(out_bytes_.data() + byte, before_.data() + byte, element) != 0) return at;
    }
    return std::nullopt;
  }

  /// `result` against a merge: the right one, or an imagined one.
  [[nodiscard]] RowVerdict compare(std::span<const double> y, const double* lse, const Row& row,
                                   const MergedState& merged) const {
    RowVerdict v;
    const auto differ = [&](double ratio, int column) {
      if (ratio > 1) ++v.failing;
      if (ratio > v.used || v.column < 0) {
        v.used = ratio;
        v.column = column;
      }
    };
    if (merged.empty) {
      for (std::size_t d = 0; d < y.size(); ++d) differ(y[d] == 0 ? 0 : infinity, static_cast<int>(d));
      if (lse != nullptr) v.lse_used = *lse == -infinity ? 0 : infinity;
      v.telling = lse != nullptr;
    } else {
      const MergeBound bound = bound_merge(row.lse, row.out, merged, base_two(), profile_);
      for (std::size_t d = 0; d < y.size(); ++d) {
        const double o = merged.out[d];
        const double cell = grid_.step(std::max(std::abs(y[d]), std::abs(o))) / 2;
        differ(std::isfinite(y[d]) ? std::max(0.0, std::abs(y[d] - o) - cell) / bound.element[d] : infinity,
               static_cast<int>(d));
        v.telling = v.telling || std::abs(o) - grid_.step(o) / 2 > bound.element[d];
      }
      if (lse != nullptr)
        v.lse_used = std::isfinite(*lse) ? std::abs(*lse - merged.lse) / bound.lse : infinity;
    }
    v.of_lse = v.lse_used > v.used;
    v.failed = v.used > 1 || v.lse_used > 1;
    v.non_finite = !std::all_of(y.begin(), y.end(), [](double x) { return std::isfinite(x); });
    return v;
  }

 private:
  static std::vector<double> decoded(cases::Format format, std::span<const std::byte> bytes) {
    const reference::Format f = to_reference(format);
    std::vector<double> values(bytes.size() / static_cast<std::size_t>(reference::bytes_per_element(f)));
    reference::decode(f, bytes, values);
    return values;
  }
  [[nodiscard]] std::int64_t out_at(int token, int head) const {
    const cases::StateLayout layout = p_.out_layout();
    return token * p_.token_stride(layout) + head * p_.head_stride(layout);
  }
  template <typename LayoutOf>
  [[nodiscard]] Row row_at(int token, int head, const LayoutOf& layout_of) const {
    Row row{token, head, {}, Matrix(static_cast<Eigen::Index>(states_.size()), p_.head_dim)};
    for (std::size_t s = 0; s < states_.size(); ++s) {
      const cases::StateLayout& layout = p_.states[layout_of(s)];
      const std::int64_t at = token * p_.token_stride(layout) + head * p_.head_stride(layout);
      row.lse.push_back(double{in_.states[s].lse[static_cast<std::size_t>(p_.lse_index(token, head))]});
      for (int d = 0; d < p_.head_dim; ++d)
        row.out(static_cast<Eigen::Index>(s), d) = states_[s][static_cast<std::size_t>(at + d)];
    }
    return row;
  }

  const cases::Case& c_;
  const MergeStates& p_;
  const cases::MergeStatesInputs& in_;
  const PrecisionProfile& profile_;
  RoundingGrid grid_;
  std::vector<std::vector<double>> states_;
  std::span<const std::byte> out_bytes_;
  std::vector<std::byte> before_;
  std::vector<double> out_, lse_;
};

/// A merge with one defect: what it would make of a row, for each variant; nullopt where it does not apply.
struct ImaginedMerge {
  const char* text;
  int variants;
  std::function<std::optional<std::pair<Row, MergedState>>(int token, int head, int variant)> make;
};

class Examination {
 public:
  Examination(const MergeLaunch& launch, std::vector<std::pair<int, int>> failing)
      : launch_(launch), failing_(std::move(failing)) {
    for (const auto& [token, head] : failing_) {
      const auto y = launch_.result(token, head);
      const double* lse = launch_.result_lse(token, head);
      const bool finite = std::all_of(y.begin(), y.end(), [](double x) { return std::isfinite(x); }) &&
                          (lse == nullptr || !std::isnan(*lse));
      (finite ? finite_ : non_finite_).emplace_back(token, head);
    }
  }

  Named diagnose() const {
    const auto untouched = std::count_if(failing_.begin(), failing_.end(), [&](const auto& at) {
      return launch_.untouched(at.first, at.second);
    });
    if (untouched > 0) return {"rows unwritten", fmt::format("{} rows hold what the buffer held", untouched)};
    if (finite_.empty()) return not_a_number();
    for (const bool with_lse : {true, false}) {
      if (with_lse && !launch_.problem().return_lse) continue;
      for (const ImaginedMerge& imagined : catalogue())
        for (int v = 0; v < imagined.variants; ++v)
          if (explains(imagined, v, with_lse))
            return {
                imagined.text,
                fmt::format("{}{}", imagined.variants > 1 ? fmt::format("state {}", v) : "all rows",
                            with_lse || !launch_.problem().return_lse ? "" : "; the lse does not follow")};
    }
    if (lse_alone()) return {"lse", "the outputs are right"};
    return {"unexplained difference", {}};
  }

 private:
  [[nodiscard]] bool lse_alone() const {
    return std::all_of(finite_.begin(), finite_.end(), [&](const auto& at) {
      const Row row = launch_.row(at.first, at.second);
      const auto merged = reference::merge_states(row.lse, row.out, launch_.base_two());
      return !launch_.compare(launch_.result(at.first, at.second), nullptr, row, merged).failed;
    });
  }

  [[nodiscard]] Named not_a_number() const {
    bool all_empty = true, plus_inf = true, some_empty = true;
    for (const auto& [token, head] : non_finite_) {
      const Row row = launch_.row(token, head);
      const auto is_inf = [](double x) { return std::isinf(x); };
      all_empty = all_empty && std::all_of(row.lse.begin(), row.lse.end(), is_inf);
      some_empty = some_empty && std::any_of(row.lse.begin(), row.lse.end(), is_inf);
      plus_inf =
          plus_inf && std::any_of(row.lse.begin(), row.lse.end(), [](double x) { return x == infinity; });
    }
    const std::string first = fmt::format("{} rows, the first is token {}, head {}", non_finite_.size(),
                                          non_finite_.front().first, non_finite_.front().second);
    if (all_empty) return {"nan where no state has keys", first};
    if (plus_inf) return {"nan from an lse of +inf", first};
    if (some_empty) return {"nan from a state without keys", first};
    return {"not finite", first};
  }

  [[nodiscard]] bool explains(const ImaginedMerge& imagined, int variant, bool with_lse) const {
    bool changed = false;
    const std::size_t step = std::max<std::size_t>(1, finite_.size() / most_witnesses);
    for (std::size_t i = 0; i < finite_.size(); i += step) {
      const auto [token, head] = finite_[i];
      const auto alternative = imagined.make(token, head, variant);
      if (!alternative) return false;
      const double* lse = with_lse ? launch_.result_lse(token, head) : nullptr;
      if (launch_.compare(launch_.result(token, head), lse, alternative->first, alternative->second).failed)
        return false;
      const Row row = launch_.row(token, head);
      const auto right = reference::merge_states(row.lse, row.out, launch_.base_two());
      changed = changed || launch_.compare(launch_.result(token, head), lse, row, right).failed;
    }
    return changed;  // else it would explain what is not wrong
  }

  [[nodiscard]] std::vector<ImaginedMerge> catalogue() const {
    const MergeLaunch& launch = launch_;
    const int states = static_cast<int>(launch.problem().states.size());
    const bool base_two = launch.base_two();
    using Made = std::optional<std::pair<Row, MergedState>>;
    const auto merged = [base_two](Row row) -> Made {
      MergedState m = reference::merge_states(row.lse, row.out, base_two);
      return std::pair{std::move(row), std::move(m)};
    };
    std::vector<ImaginedMerge> all;
    all.push_back({"one state missing", states, [&launch, merged](int token, int head, int s) -> Made {
                     Row row = launch.row(token, head);
                     row.lse[static_cast<std::size_t>(s)] = -infinity;
                     return merged(std::move(row));
                   }});
    all.push_back({"states without keys take weight", 1, [&launch, merged](int token, int head, int) -> Made {
                     Row row = launch.row(token, head);
                     for (std::size_t s = 0; s < row.lse.size(); ++s)
                       if (std::isinf(row.lse[s])) {
                         row.lse[s] = 0;
                         row.out.row(static_cast<Eigen::Index>(s)).setZero();
                       }
                     return merged(std::move(row));
                   }});
    all.push_back({base_two ? "lse base 2 merged as natural" : "natural lse merged as base 2", 1,
                   [&launch, base_two](int token, int head, int) -> Made {
                     Row row = launch.row(token, head);
                     MergedState m = reference::merge_states(row.lse, row.out, !base_two);
                     // The sum of these weights, as the logarithm the caller asked for.
                     if (!m.empty) m.lse = m.max + (m.lse - m.max) * (base_two ? 1 / ln_2 : ln_2);
                     return std::pair{std::move(row), std::move(m)};
                   }});
    all.push_back(
        {"strides of the first state for all", 1, [&launch, base_two](int token, int head, int) -> Made {
           auto row = launch.row_by_first_strides(token, head);
           if (!row) return std::nullopt;
           MergedState m = reference::merge_states(row->lse, row->out, base_two);
           return std::pair{*std::move(row), std::move(m)};
         }});
    all.push_back({"states merged without their lse", 1, [&launch, merged](int token, int head, int) -> Made {
                     Row row = launch.row(token, head);
                     for (double& lse : row.lse)
                       if (std::isfinite(lse)) lse = 0;
                     return merged(std::move(row));
                   }});
    return all;
  }

  const MergeLaunch& launch_;
  std::vector<std::pair<int, int>> failing_, finite_, non_finite_;
};

}  // namespace

MergeBound bound_merge(const std::vector<double>& lse, const Matrix& out, const MergedState& merged,
                       bool base_two, const PrecisionProfile& profile) {
  const auto n = static_cast<double>(lse.size());
  const double natural = base_two ? ln_2 : 1.0;
  const auto columns = static_cast<std::size_t>(out.cols());
  std::vector<double> spread(columns, 0.0), magnitude(columns, 0.0), sum(columns, 0.0);
  double thetas = 0;
  for (std::size_t s = 0; s < lse.size(); ++s) {
    if (!std::isfinite(lse[s])) continue;
    const double w = merged.weights[s];
    const double theta = u * (3 * std::abs(lse[s] - merged.max) * natural + (2 * profile.exp2_ulp + 1) * n);
    thetas += w * theta;
    for (std::size_t d = 0; d < columns; ++d) {
      const double o = out(static_cast<Eigen::Index>(s), static_cast<Eigen::Index>(d));
      spread[d] += w * theta * std::abs(o - merged.out[d]);
      magnitude[d] += w * std::abs(o);
      sum[d] += std::abs(o);
    }
  }
  MergeBound bound;
  bound.element.resize(columns);
  for (std::size_t d = 0; d < columns; ++d)
    bound.element[d] =
        1.02 * (spread[d] + (n + 2) * u * magnitude[d] + (n + 4) * u * std::abs(merged.out[d])) +
        0x1p-126 * (sum[d] + n + 2);
  bound.lse =
      (1.02 * (thetas + n * u) + 4 * u * (std::abs(merged.lse - merged.max) * natural + 1)) / natural +
      u * std::abs(merged.lse);
  return bound;
}

Verdict judge_merge_states(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs,
                           const PrecisionProfile& profile) {
  MergeLaunch launch(c, inputs, profile);
  Verdict verdict;
  if (std::string why = launch.open(outputs); !why.empty()) {
    verdict.kind = VerdictKind::harness_error;
    verdict.diagnosis = "outputs missing or of the wrong size";
    verdict.detail = std::move(why);
    return verdict;
  }
  const MergeStates& p = launch.problem();
  std::vector<std::pair<int, int>> failing;
  MismatchGrid grid("head");
  WorstFirst worst;
  bool telling = false, any_class = false, any_element = false;
  for (int token = 0; token < p.tokens; ++token)
    for (int head = 0; head < p.heads; ++head) {
      const Row row = launch.row(token, head);
      const MergedState merged = reference::merge_states(row.lse, row.out, launch.base_two());
      const auto y = launch.result(token, head);
      const double* lse = launch.result_lse(token, head);
      const RowVerdict v = launch.compare(y, lse, row, merged);
      verdict.elements_checked += p.head_dim + (lse != nullptr ? 1 : 0);
      verdict.elements_failed += v.failing + (v.lse_used > 1 ? 1 : 0);
      verdict.used_budget = std::max({verdict.used_budget, v.used, v.lse_used});
      telling = telling || v.telling;
      const bool nan =
          v.non_finite && std::any_of(y.begin(), y.end(), [](double x) { return std::isnan(x); });
      grid.note(0, token, head,
                nan ? std::numeric_limits<double>::quiet_NaN() : std::max(v.used, v.lse_used));
      if (!v.failed) continue;
      ++verdict.rows_failed;
      failing.emplace_back(token, head);
      any_class = any_class || std::isinf(v.used) || std::isinf(v.lse_used);
      any_element = any_element || v.used > 1;
      Element e;
      e.position = token;
      e.head = head;
      e.column = v.of_lse ? -1 : v.column;
      e.expected = v.of_lse ? merged.lse : merged.out[static_cast<std::size_t>(v.column)];
      e.got = v.of_lse ? *lse : y[static_cast<std::size_t>(v.column)];
      if (!merged.empty) {
        const MergeBound bound = bound_merge(row.lse, row.out, merged, launch.base_two(), profile);
        e.bound = v.of_lse ? bound.lse : bound.element[static_cast<std::size_t>(v.column)];
      }
      e.term = merged.empty ? "class" : v.of_lse ? "lse" : "weights";
      worst.offer(std::max(v.used, v.lse_used), std::move(e));
    }

  verdict.lane = "element";
  if (const auto at = launch.changed_padding()) {
    verdict.kind = VerdictKind::fail;
    verdict.stage = "padding";
    verdict.diagnosis = "wrote between its rows";
    verdict.detail = fmt::format("element {} of out lies in the padding and changed", *at);
    return verdict;
  }
  if (!failing.empty()) {
    verdict.kind = VerdictKind::fail;
    verdict.stage = any_class ? "class" : any_element ? "element" : "lse";
    verdict.mismatch = grid.map();
    verdict.worst = worst.take();
    const Named named = Examination(launch, std::move(failing)).diagnose();
    verdict.diagnosis = named.text;
    const Element& e = verdict.worst.front();
    verdict.detail = fmt::format(
        "{}{}{} of {} rows fail; worst at token {}, head {}, {}: {:.9g}, expected {:.9g} within {:.3g}",
        named.detail, named.detail.empty() ? "" : "; ", verdict.rows_failed,
        static_cast<std::int64_t>(p.tokens) * p.heads, e.position, e.head,
        e.column < 0 ? "lse" : fmt::format("column {}", e.column), e.got, e.expected, e.bound);
    return verdict;
  }
  if (!telling) {
    verdict.kind = VerdictKind::mistrusted;
    verdict.diagnosis = "nothing was proved";
    verdict.detail = "a result of zeros would have passed";
  }
  return verdict;
}

}  // namespace attest::oracle
