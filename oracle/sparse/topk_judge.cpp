// SPDX-License-Identifier: MIT
#include "oracle/sparse/topk_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "oracle/sparse/numbers.h"
#include "reference/top_k.h"

namespace attest::oracle {
namespace {

using cases::TopK;
using cases::TopKInputs;
using reference::Selection;

struct Finding {
  std::string diagnosis;  ///< empty: the row is right
  std::string detail;
  int entry = -1;
  double expected = 0, got = 0;
};

class RowJudge {
 public:
  RowJudge(const TopK& p, const TopKInputs& in) : p_(p), in_(in) {}

  Finding judge(std::size_t row, std::span<const std::int32_t> got, std::span<const std::int32_t> before) {
    const int begin = in_.row_begin[row];
    const int n = std::max(in_.row_end[row] - begin, 0);
    load(row, begin, n);
    local_.assign(got.begin(), got.end());
    if (p_.coordinates == cases::Coordinates::absolute)
      for (std::int32_t& position : local_)
        if (position >= 0) position -= begin;

    const Selection s = reference::check_top_k(scores_, {}, p_.k, local_, ordered());
    if (s.fault != Selection::Fault::none) return explain(s, row, n, got, before);

    const auto hole = std::find(local_.begin(), local_.end(), -1);
    const auto after = std::find_if(hole, local_.end(), [](std::int32_t position) { return position != -1; });
    if (after != local_.end())
      return {"entry after the end of the list", "-1 before a position",
              static_cast<int>(hole - local_.begin()), -1, static_cast<double>(*after)};
    if (p_.order == cases::TopKOrder::ascending) return check_order(n);
    return {};
  }

 private:
  [[nodiscard]] bool ordered() const { return p_.nan == cases::NanOrder::ordered; }

  void load(std::size_t row, int first, int n) {
    const float* from = in_.logits.data() + row * static_cast<std::size_t>(in_.row_stride) + first;
    scores_.assign(from, from + n);
  }

  Finding check_order(int n) const {
    const std::size_t count = static_cast<std::size_t>(std::min(n, p_.k));
    for (std::size_t e = 1; e < count; ++e)
      if (local_[e] < local_[e - 1])
        return {"positions out of order", "not ascending", static_cast<int>(e),
                static_cast<double>(local_[e - 1]), static_cast<double>(local_[e])};
    if (!ordered() && std::any_of(scores_.begin(), scores_.end(), [](double s) { return std::isnan(s); }))
      return {};
    const std::vector<std::int32_t> expected = reference::top_k(scores_, p_.k);
    const auto [wanted, got] = std::mismatch(expected.begin(), expected.end(), local_.begin());
    if (wanted == expected.end()) return {};
    return {"not the first of equal scores", "", static_cast<int>(got - local_.begin()),
            static_cast<double>(*wanted), static_cast<double>(*got)};
  }

  /// Whether the list would be right if this were the row's first column, or the offset of its positions.
  bool right_from(std::size_t row, int first_column, int n, int offset, std::span<const std::int32_t> got) {
    load(row, first_column, n);
    local_.assign(got.begin(), got.end());
    for (std::int32_t& position : local_)
      if (position != -1) position -= offset;
    return reference::check_top_k(scores_, {}, p_.k, local_, ordered()).fault == Selection::Fault::none;
  }

  Finding explain(const Selection& s, std::size_t row, int n, std::span<const std::int32_t> got,
                  std::span<const std::int32_t> before) {
    using Fault = Selection::Fault;
    Finding f;
    f.entry = s.entry;
    f.got = s.entry >= 0 ? static_cast<double>(got[static_cast<std::size_t>(s.entry)]) : 0;
    f.expected = s.position;
    const int begin = in_.row_begin[row];
    const bool local = p_.coordinates == cases::Coordinates::local;
    const double score =
        s.position >= 0 && s.position < n ? scores_[static_cast<std::size_t>(s.position)] : 0;
    if (std::equal(got.begin(), got.end(), before.begin())) {
      f.diagnosis = "rows not written";
    } else if (begin > 0 && right_from(row, 0, n, local ? 0 : begin, got)) {
      f.diagnosis = "row start ignored";
    } else if (begin > 0 && right_from(row, begin, n, local ? begin : 0, got)) {
      f.diagnosis = local ? "columns instead of positions" : "positions instead of columns";
    } else if (s.fault == Fault::out_of_range && s.entry >= 0 &&
               got[static_cast<std::size_t>(s.entry)] == before[static_cast<std::size_t>(s.entry)]) {
      f.diagnosis = "entries not written";
    } else if (s.fault == Fault::out_of_range) {
      f.diagnosis = "position outside of the row";
    } else if (s.fault == Fault::duplicate) {
      f.diagnosis = "position chosen twice";
    } else if (s.fault == Fault::missing) {
      f.diagnosis = "fewer chosen than there are";
    } else if (s.fault == Fault::surplus) {
      f.diagnosis = "more chosen than there are";
    } else {
      f.diagnosis = "not the largest scores";
      f.detail = fmt::format("position {} with score {:.9g} was left out, {:.3g} above one that was chosen",
                             s.position, score, s.shortfall);
    }
    return f;
  }

  const TopK& p_;
  const TopKInputs& in_;
  std::vector<double> scores_;
  std::vector<std::int32_t> local_;
};

}  // namespace

Verdict judge_topk(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs) {
  const auto& p = std::get<TopK>(c.problem);
  const auto& in = std::get<TopKInputs>(inputs);
  const std::size_t rows = in.row_begin.size();
  const auto k = static_cast<std::size_t>(p.k);
  Verdict verdict;
  verdict.lane = "exact";
  std::vector<std::int32_t> positions;
  if (!read_output(outputs, "positions", rows * k, positions, verdict)) return verdict;
  const std::vector<std::int32_t> before = cases::poison_integers(c, c.memory.output, rows * k, "positions");

  RowJudge judge(p, in);
  std::map<std::string, std::int64_t> times;
  MismatchGrid grid("list");
  std::map<std::string, std::string> example;
  std::int64_t telling = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<const std::int32_t> got = std::span(positions).subspan(row * k, k);
    telling += in.row_end[row] > in.row_begin[row] ? 1 : 0;
    const Finding f = judge.judge(row, got, std::span(before).subspan(row * k, k));
    grid.note(0, static_cast<int>(row), 0, f.diagnosis.empty() ? 0 : std::numeric_limits<double>::infinity());
    if (f.diagnosis.empty()) continue;
    ++verdict.rows_failed;
    ++verdict.elements_failed;
    if (++times[f.diagnosis] == 1)
      example[f.diagnosis] =
          fmt::format("row {}, columns {} to {}{}{}{}", row, in.row_begin[row], in.row_end[row],
                      f.entry >= 0 ? fmt::format(", entry {}: {}", f.entry, f.got) : "",
                      f.detail.empty() ? "" : ": ", f.detail);
    if (verdict.worst.size() < 10)
      verdict.worst.push_back({.position = static_cast<int>(row),
                               .column = f.entry,
                               .expected = f.expected,
                               .got = f.got,
                               .bound = 0,
                               .term = f.diagnosis});
  }
  verdict.elements_checked = static_cast<std::int64_t>(positions.size());
  if (times.empty()) {
    if (telling > 0) return verdict;
    verdict.kind = VerdictKind::mistrusted;
    verdict.diagnosis = "nothing was proved";
    verdict.detail = "every row is empty";
    return verdict;
  }
  const auto most = std::max_element(times.begin(), times.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  verdict.kind = VerdictKind::fail;
  verdict.stage = "exact";
  verdict.mismatch = grid.map();
  verdict.used_budget = 2;
  verdict.diagnosis = most->first;
  verdict.detail =
      fmt::format("{} of {} rows fail; first at {}", verdict.rows_failed, rows, example[most->first]);
  return verdict;
}

}  // namespace attest::oracle
