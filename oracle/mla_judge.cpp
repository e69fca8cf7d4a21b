// SPDX-License-Identifier: MIT
#include "oracle/mla_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "oracle/diagnosis.h"
#include "oracle/key_weights.h"
#include "oracle/mla_bound.h"
#include "oracle/mla_compare.h"
#include "oracle/mla_launch.h"
#include "oracle/worst_first.h"

namespace attest::oracle {
namespace {

using cases::Fill;
using Eigen::Index;

bool power_of_two(double x) {
  int exponent = 0;
  return std::abs(std::frexp(x, &exponent)) == 0.5F;
}

Rules rules_for(const MlaLaunch& launch) {
  Rules rules;
  rules.grid = launch.grid;
  rules.rounding = launch.profile.output;
  rules.lse_empty = launch.profile.lse_empty;
  rules.empty = launch.profile.empty;
  const Fill fill = launch.c.data.fill;
  const bool equal_weights = fill == Fill::constant_scores || fill == Fill::exact;
  rules.exact = equal_weights && power_of_two(launch.scales.kv_scale);
  rules.statistics = !equal_weights;
  rules.generic = fill != Fill::tiny && fill != Fill::cancelling && !equal_weights;
  return rules;
}

/// With equal scores P is 1 in every kernel and every format: its rounding is no excuse.
PrecisionProfile profile_for(const PrecisionProfile& declared, const Rules& rules) {
  PrecisionProfile p = declared;
  if (rules.exact) {
    p.p_roundoff = 0x1p-24;
    p.p_floor = 0;
  }
  return p;
}

struct Candidate {
  double ratio = 0;
  int group = 0;
  Index row = 0;
  Element element;
};

/// The worst failing rows by their worst element, and the element nearest to its limit when nothing failed.
class WorstElements {
 public:
  void offer(const MlaLaunch& launch, const MlaRequest& request, const MlaBound& bound, Index row,
             const RowResult& result) {
    const bool of_lse = result.lse_used > result.used || result.column < 0;
    const double ratio = std::max(result.used, result.lse_used);
    if (result.failed == Stage::none) {
      if (any_failed_ || (!kept_.empty() && ratio <= kept_.front().ratio)) return;
      kept_.clear();
    } else if (!any_failed_) {
      kept_.clear();
      any_failed_ = true;
    }
    const auto worse = [](const Candidate& a, const Candidate& b) { return a.ratio > b.ratio; };
    Candidate c;
    c.ratio = ratio;
    const auto place = std::upper_bound(kept_.begin(), kept_.end(), c, worse);
    if (place == kept_.end() && kept_.size() == most_elements) return;
    c.group = request.index;
    c.row = row;
    Element& e = c.element;
    e.request = request.group.request;
    e.position = request.position(row);
    e.head = request.head(row);
    e.column = of_lse ? -1 : result.column;
    const Index in_launch = request.first_row + row;
    if (of_lse) {
      e.expected = request.attention.lse[row];
      e.got = launch.has_lse() ? launch.lse[in_launch] : 0;
      e.bound = bound.lse[row];
    } else {
      e.expected = request.attention.out(row, result.column);
      e.got = launch.out(in_launch, result.column);
      e.bound = bound.element(row, result.column);
    }
    if (bound.row_class[static_cast<std::size_t>(row)] == RowClass::empty) e.expected = e.bound = 0;
    if (result.failed == Stage::row)
      e.term = fmt::format("row: residual {:.3g} of {:.3g}, scale {:.3g} of {:.3g}", result.residual,
                           result.residual_limit, result.scale, result.scale_limit);
    else if (of_lse)
      e.term = "lse";
    kept_.insert(place, std::move(c));
    if (kept_.size() > most_elements) kept_.pop_back();
  }

  /// Fills in the terms that need the request, before it goes away.
  void explain(const MlaRequest& request, const MlaBound& bound, const MlaLaunch& launch,
               const PrecisionProfile& profile) {
    for (Candidate& c : kept_)
      if (c.group == request.index && c.element.term.empty())
        c.element.term =
            bound.row_class[static_cast<std::size_t>(c.row)] == RowClass::judged
                ? dominating_term(request.for_bound(launch.scales), profile, c.row, c.element.column)
                : "class";
  }

  [[nodiscard]] const std::vector<Candidate>& kept() const { return kept_; }

 private:
  std::vector<Candidate> kept_;
  bool any_failed_ = false;
};

/// Which keys failing rows weigh wrongly, of up to `most_rows` of them.
class WrongKeys {
 public:
  void look_at(const MlaLaunch& launch, const MlaRequest& request, const MlaBound& bound, Index row,
               const Rules& rules) {
    constexpr int most_rows = 64;
    if (rows_ == most_rows || request.kv_len == 0 || request.kv_len > KeyWeights::most_keys) return;
    if (group_ != request.index) {
      group_ = request.index;
      solver_.emplace(request.k.leftCols(reference::kv_lora_rank) * launch.scales.kv_scale);
    }
    if (!solver_->tell()) return;
    const double* y = &launch.out(request.first_row + row, 0);
    const double* o = &request.attention.out(row, 0);
    const auto columns = static_cast<std::size_t>(launch.out.cols());
    const bool empty = bound.row_class[static_cast<std::size_t>(row)] == RowClass::empty;
    std::vector<double> within(columns);
    for (std::size_t d = 0; d < columns; ++d)
      within[d] = (empty ? 0 : bound.element(row, static_cast<Index>(d))) +
                  rules.grid.step(std::max(std::abs(y[d]), std::abs(o[d]))) *
                      (rules.rounding == OutputRounding::nearest_even ? 0.5 : 1);
    const auto weights = solver_->of(
        {y, columns}, within, {&request.attention.weights(row, 0), static_cast<std::size_t>(request.kv_len)});
    if (!weights) return;
    ++rows_;
    for (std::size_t j = 0; j < weights->size(); ++j)
      grid_.note(request.group.request, request.position(row), static_cast<int>(j), (*weights)[j].used());
    if (std::string words = in_words(*weights); says_.empty() && !words.empty())
      says_ = fmt::format("request {}, position {}, head {}: {}", request.group.request,
                          request.position(row), request.head(row), words);
  }

  /// None when no row tells of its keys, or all weigh them as they should.
  [[nodiscard]] std::vector<Mismatch> maps() const {
    if (says_.empty()) return {};
    Mismatch map = grid_.map();
    map.says = says_;
    return {std::move(map)};
  }

 private:
  MismatchGrid grid_{"key"};
  std::optional<KeyWeights> solver_;
  int group_ = -1, rows_ = 0;
  std::string says_;
};

std::string where(const Element& e) {
  const std::string row = fmt::format("request {}, position {}, head {}", e.request, e.position, e.head);
  return e.column < 0 ? row + ", lse" : fmt::format("{}, column {}", row, e.column);
}

}  // namespace

Verdict judge_mla(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs,
                  const PrecisionProfile& profile, JudgeCost* cost) {
  Verdict verdict;
  std::string why;
  const std::optional<MlaLaunch> launch = open_launch(c, inputs, outputs, profile, why);
  if (!launch) {
    verdict.kind = VerdictKind::harness_error;
    verdict.diagnosis = "outputs missing or of the wrong size";
    verdict.detail = why;
    return verdict;
  }

  const Rules rules = rules_for(*launch);
  const PrecisionProfile judged_by = profile_for(profile, rules);
  std::vector<RowResult> rows(static_cast<std::size_t>(launch->out.rows()));
  WorstElements worst;
  MismatchGrid grid("head");
  WrongKeys wrong_keys;
  std::int64_t telling = 0, unclaimed = 0;
  Stage first_failed = Stage::none;
  for (int b = 0; b < static_cast<int>(launch->problem.groups.size()); ++b) {
    if (launch->problem.groups[static_cast<std::size_t>(b)].q_len == 0) continue;
    const auto start = std::chrono::steady_clock::now();
    const MlaRequest request = load_request(*launch, b);
    const MlaBound bound = bound_mla(request.for_bound(launch->scales), judged_by);
    if (cost != nullptr)
      cost->reference_seconds +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (Index r = 0; r < request.rows(); ++r) {
      const Index in_launch = request.first_row + r;
      const double* lse = launch->has_lse() ? &launch->lse[in_launch] : nullptr;
      const RowResult result =
          compare_row({&launch->out(in_launch, 0), static_cast<std::size_t>(launch->out.cols())}, lse,
                      request.attention, bound, r, rules);
      rows[static_cast<std::size_t>(in_launch)] = result;
      grid.note(request.group.request, request.position(r), request.head(r),
                used_budget(result,
                            {&launch->out(in_launch, 0), static_cast<std::size_t>(launch->out.cols())}, lse));
      if (!result.judged) {
        ++unclaimed;
        continue;
      }
      verdict.elements_checked += launch->out.cols() + (lse != nullptr ? 1 : 0);
      verdict.elements_failed += result.failing_elements + (result.lse_used > 1 ? 1 : 0);
      verdict.used_budget = std::max({verdict.used_budget, result.used, result.lse_used});
      telling += result.telling ? 1 : 0;
      if (result.failed != Stage::none) {
        ++verdict.rows_failed;
        if (first_failed == Stage::none || result.failed < first_failed) first_failed = result.failed;
      }
      worst.offer(*launch, request, bound, r, result);
      if (result.failing_elements > 0) wrong_keys.look_at(*launch, request, bound, r, rules);
    }
    worst.explain(request, bound, *launch, judged_by);
  }

  verdict.lane = rules.exact ? "exact" : "element";
  if (first_failed != Stage::none) {
    verdict.kind = VerdictKind::fail;
    verdict.mismatch = grid.map();
    verdict.mismatch.others = wrong_keys.maps();
    verdict.stage = name(first_failed);
    if (first_failed == Stage::row || first_failed == Stage::lse) verdict.lane = "row";
    for (const Candidate& candidate : worst.kept()) verdict.worst.push_back(candidate.element);
    const Diagnosis diagnosis = diagnose(*launch, rows, rules, judged_by);
    verdict.diagnosis = diagnosis.text;
    const Element& e = verdict.worst.front();
    verdict.detail =
        fmt::format("{}{}{} of {} rows fail; worst at {}: {:.9g}, expected {:.9g} within {:.3g} ({})",
                    diagnosis.detail, diagnosis.detail.empty() ? "" : "; ", verdict.rows_failed, rows.size(),
                    where(e), e.got, e.expected, e.bound, e.term);
    return verdict;
  }
  if (telling == 0) {
    verdict.kind = VerdictKind::mistrusted;
    verdict.diagnosis = "nothing was proved";
    verdict.detail = rows.empty()                    ? "the case has no query rows"
                     : unclaimed == std::ssize(rows) ? "every row may overflow f32: no claim is made"
                                                     : "a result of zeros would have passed";
    return verdict;
  }
  if (!worst.kept().empty())
    verdict.detail = fmt::format("largest used budget at {} ({})", where(worst.kept().front().element),
                                 worst.kept().front().element.term);
  return verdict;
}

std::optional<Alternative> alternative_mla(const cases::Case& c, const cases::Inputs& inputs,
                                           const cases::Outputs& outputs, const PrecisionProfile& profile) {
  std::string why;
  const std::optional<MlaLaunch> launch = open_launch(c, inputs, outputs, profile, why);
  if (!launch) return std::nullopt;
  const Rules rules = rules_for(*launch);
  const PrecisionProfile judged_by = profile_for(profile, rules);
  std::vector<RowResult> rows(static_cast<std::size_t>(launch->out.rows()));
  bool failed = false;
  for (int b = 0; b < static_cast<int>(launch->problem.groups.size()); ++b) {
    if (launch->problem.groups[static_cast<std::size_t>(b)].q_len == 0) continue;
    const MlaRequest request = load_request(*launch, b);
    const MlaBound bound = bound_mla(request.for_bound(launch->scales), judged_by);
    for (Index r = 0; r < request.rows(); ++r) {
      const Index in_launch = request.first_row + r;
      RowResult& result = rows[static_cast<std::size_t>(in_launch)];
      result = compare_row({&launch->out(in_launch, 0), static_cast<std::size_t>(launch->out.cols())},
                           launch->has_lse() ? &launch->lse[in_launch] : nullptr, request.attention, bound, r,
                           rules);
      failed = failed || result.failed != Stage::none;
    }
  }
  return failed ? alternative(*launch, rows, rules, judged_by) : std::nullopt;
}

}  // namespace attest::oracle
