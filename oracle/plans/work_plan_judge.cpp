// SPDX-License-Identifier: MIT
//
// Two judgements that know nothing of each other: the lists by what every plan must satisfy, and what running
// them gave by the definition of attention. A plan that is wrong in a way the conditions miss shows in the
// result, one that happens to give the right result shows in the conditions.
//
// The result. Weights are powers of two, values integers of at most V = 8, so that sums over the keys of a
// piece are exact in fp32 (below 2^24) and what rounds is, with u = 2^-24 and L = ln of the largest sum:
//
//   o_s       one quotient: 3 u V through a reciprocal
//   lse_s     log2 within one ulp, times a rounded ln 2: l = 3 u (1 + L)
//   w_s       exp2((lse_s - M) log2 e): the argument is off by 2 l + 3 u L, exp2 by 2 u, so that the weight
//             is off by r = 2 l + 3 u (L + 1) relatively
//   merge     two sums of n terms and a quotient: (2 n + 3) u V
//
//   |out - o| <= V (2 r + (2 n + 6) u),   |lse - l| <= 2 l + r + (n + 3) u (1 + L)
//
// with n the pieces of the tile, at most slots. An empty row is 0 and -inf.
#include "oracle/plans/work_plan_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "oracle/plans/integers.h"

namespace attest::oracle {
namespace {

using cases::WorkPlan;
using cases::WorkPlanInputs;
using Step = WorkPlanInputs::Step;
using Ints = std::vector<std::int32_t>;
constexpr double roundoff = 0x1p-24;
constexpr int columns = WorkPlanInputs::columns;
constexpr std::size_t most_elements = 10;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// Which request a query row belongs to; -1: none.
int request_of(const Step& step, int row) {
  for (std::size_t r = 0; r + 1 < step.qo_indptr.size(); ++r)
    if (row >= step.qo_indptr[r] && row < step.qo_indptr[r + 1]) return static_cast<int>(r);
  return -1;
}

/// Keys [kv_indptr[r], this) are what a row sees.
int key_bound(const WorkPlan& p, const Step& step, int r, int row) {
  const int end = step.kv_indptr[at(r) + 1];
  const int bound = p.causal ? end - (step.qo_indptr[at(r) + 1] - row - 1) : end;
  return std::max(bound, step.kv_indptr[at(r)]);
}

struct Work {
  int batch, partial, qo_start, qo_end, kv_start, kv_end, offset;
};
Work work_at(const PlanLists& plan, int w) {
  const auto info = plan.work_info_set.subspan(8 * at(w), 8);
  return {info[0], info[1], info[2], info[3], info[4], info[5], info[6]};
}

std::string defect_of_work(const Work& w, const WorkPlan& p, const Step& step) {
  if (w.batch < 0 || at(w.batch) + 1 >= step.qo_indptr.size()) return "a work of no request";
  const int kv_begin = step.kv_indptr[at(w.batch)], kv_end = step.kv_indptr[at(w.batch) + 1];
  if (w.kv_start >= w.kv_end) return "a work without keys";
  if (w.qo_start >= w.qo_end) return "a work without rows";
  if (w.qo_start < step.qo_indptr[at(w.batch)] || w.qo_end > step.qo_indptr[at(w.batch) + 1] ||
      w.kv_start < kv_begin || w.kv_end > kv_end)
    return "a work outside of its request";
  if (w.qo_end - w.qo_start > p.tile_tokens) return "a work of more rows than a kernel holds";
  if ((w.kv_start - kv_begin) % p.granularity != 0) return "a cut off the granularity";
  if (w.offset != kv_end - w.kv_end) return "kv_offset is not the keys behind the work";
  return {};
}

/// Pieces of one range of rows.
using Tiles = std::map<std::pair<int, int>, std::vector<Work>>;

std::string defect_of_tile(std::vector<Work> pieces, const WorkPlan& p, const Step& step) {
  std::sort(pieces.begin(), pieces.end(),
            [](const Work& a, const Work& b) { return a.kv_start < b.kv_start; });
  const Work& first = pieces.front();
  if (first.kv_start != step.kv_indptr[at(first.batch)]) return "first keys of a tile not covered";
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    if (pieces[i].kv_start > pieces[i - 1].kv_end) return "keys between two pieces not covered";
    if (pieces[i].kv_start < pieces[i - 1].kv_end) return "keys covered twice";
  }
  // The last row sees the most.
  if (pieces.back().kv_end < key_bound(p, step, first.batch, first.qo_end - 1))
    return "last keys of a tile not covered";
  if (pieces.size() == 1 && first.partial != -1) return "an unsplit tile with a partial row";
  for (const Work& w : pieces)
    if (pieces.size() > 1 && w.partial < 0) return "a piece without a partial row";
  return {};
}

std::string defect_of_merges(const PlanLists& plan, const Tiles& tiles, const WorkPlan& p, const Step& step,
                             std::vector<int>& covered) {
  if (plan.reduce_indptr.front() != 0) return "reduce_indptr does not begin with 0";
  std::set<std::pair<int, int>> merged;
  std::set<std::int32_t> named;
  for (int t = 0; t < plan.merged_tiles; ++t) {
    const std::pair<int, int> rows{plan.reduce_final_map[2 * at(t)], plan.reduce_final_map[2 * at(t) + 1]};
    const int begin = plan.reduce_indptr[at(t)], end = plan.reduce_indptr[at(t) + 1];
    if (begin > end || end > plan.pieces) return "reduce_indptr decreases";
    if (!merged.insert(rows).second) return "rows merged twice";
    const auto found = tiles.find(rows);
    const auto list = plan.reduce_partial_map.subspan(at(begin), at(end - begin));
    if (found == tiles.end()) {
      if (!list.empty()) return "a merge of rows that nobody splits";
      for (int row = rows.first; row < rows.second; ++row) {
        const int r = request_of(step, row);
        if (r < 0) return "a merge of rows that do not exist";
        if (key_bound(p, step, r, row) > step.kv_indptr[at(r)]) return "rows with keys merged from nothing";
        ++covered[at(row)];
      }
      continue;
    }
    if (found->second.size() < 2 || found->second.size() != list.size())
      return "a merge of another number of pieces";
    std::vector<Work> pieces = found->second;
    std::sort(pieces.begin(), pieces.end(),
              [](const Work& a, const Work& b) { return a.kv_start < b.kv_start; });
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (pieces[i].partial != list[i]) return "a merge of other partial rows";
      if (!named.insert(list[i]).second) return "a partial row merged twice";
    }
  }
  for (const auto& [rows, pieces] : tiles)
    if (pieces.size() > 1 && merged.count(rows) == 0) return "a split tile that is not merged";
  for (std::size_t t = at(plan.merged_tiles); t < plan.reduce_indptr.size(); ++t)
    if (plan.reduce_indptr[t] != plan.pieces) return "reduce_indptr does not go on with its last value";
  return {};
}

/// The results of a step.
struct Results {
  std::vector<float> out, lse;
};

std::vector<float> floats(const Ints& words) {
  std::vector<float> values(words.size());
  if (!words.empty()) std::memcpy(values.data(), words.data(), 4 * words.size());
  return values;
}

/// One row by the definition, over keys [begin, end).
struct RowSum {
  double weight = 0;
  std::vector<double> value = std::vector<double>(columns);
};
RowSum row_sum(const Step& step, int begin, int end) {
  RowSum sum;
  for (int key = begin; key < end; ++key) {
    const double w = std::ldexp(1.0, step.scores[at(key)]);
    sum.weight += w;
    for (int c = 0; c < columns; ++c) sum.value[at(c)] += w * double{step.values[at(key) * columns + at(c)]};
  }
  return sum;
}

struct RowBound {
  double out, lse;
};
RowBound row_bound(int kv_len, int slots) {
  const double largest = std::log(std::max(1.0, std::ldexp(1.0, WorkPlanInputs::most_score) * kv_len));
  const double l = 3 * roundoff * (1 + largest);
  const double r = 2 * l + 3 * roundoff * (largest + 1);
  return {WorkPlanInputs::most_value * (2 * r + (2.0 * slots + 6) * roundoff),
          2 * l + r + (slots + 3.0) * roundoff * (1 + largest)};
}

/// Where a row of the results is not this one, the lse (column -1) first; nullopt: nowhere.
std::optional<Element> wrong_in(const Results& got, int row, const RowSum& sum, const RowBound& bound) {
  const auto differs = [&](int column, double value, double expected,
                           double within) -> std::optional<Element> {
    if (value == expected || std::abs(value - expected) <= within) return std::nullopt;
    return Element{.column = column, .expected = expected, .got = value, .bound = within, .term = "sums"};
  };
  const bool empty = sum.weight == 0;
  auto wrong = differs(-1, double{got.lse[at(row)]}, std::log(sum.weight), empty ? 0 : bound.lse);
  for (int c = 0; c < columns && !wrong; ++c)
    wrong = differs(c, double{got.out[at(row) * columns + at(c)]}, empty ? 0 : sum.value[at(c)] / sum.weight,
                    empty ? 0 : bound.out);
  return wrong;
}

/// Whether a row of the results is this one.
bool row_is(const Results& got, int row, const RowSum& sum, const RowBound& bound) {
  return !wrong_in(got, row, sum, bound);
}

/// What a row would be with a defect of the merge, from the plan's own pieces.
RowSum imagined_row(const PlanLists& plan, const WorkPlan& p, const Step& step, int row, bool last_missing,
                    bool empty_weighs_one) {
  RowSum sum;
  const int r = request_of(step, row);
  std::vector<Work> pieces;
  for (int w = 0; w < plan.works; ++w)
    if (const Work work = work_at(plan, w); row >= work.qo_start && row < work.qo_end) pieces.push_back(work);
  std::sort(pieces.begin(), pieces.end(),
            [](const Work& a, const Work& b) { return a.kv_start < b.kv_start; });
  if (last_missing && !pieces.empty()) pieces.pop_back();
  for (const Work& work : pieces) {
    const RowSum part = row_sum(step, work.kv_start, std::min(work.kv_end, key_bound(p, step, r, row)));
    sum.weight += part.weight + (part.weight == 0 && empty_weighs_one ? 1 : 0);
    for (int c = 0; c < columns; ++c) sum.value[at(c)] += part.value[at(c)];
  }
  return sum;
}

std::string result_diagnosis(const PlanLists& plan, const WorkPlan& p, const Step& step, const Results& got,
                             const std::vector<int>& failed) {
  if (!plan.persistent) return "wrong result without a plan";
  const auto all = [&](bool last_missing, bool weighs) {
    return std::all_of(failed.begin(), failed.end(), [&](int row) {
      const int r = request_of(step, row);
      return row_is(got, row, imagined_row(plan, p, step, row, last_missing, weighs),
                    row_bound(step.kv_indptr[at(r) + 1] - step.kv_indptr[at(r)], p.slots));
    });
  };
  if (all(true, false)) return "last piece of a tile not merged";
  if (all(false, true)) return "a piece without keys weighs as one key";
  return "works not done";
}

struct StepOutputs {
  Ints header, work_indptr, work_info_set, reduce_indptr, reduce_final_map, reduce_partial_map;
  Results results;

  [[nodiscard]] PlanLists lists() const {
    return {header[0] != 0, header[1],     header[2],        header[3],         work_indptr,
            work_info_set,  reduce_indptr, reduce_final_map, reduce_partial_map};
  }
};

std::optional<StepOutputs> fetch(const cases::Outputs& outputs, const WorkPlan& p, const Step& step,
                                 std::size_t s, std::size_t max_batch, std::string& why) {
  const std::size_t tiles = at(cases::most_tiles(p)), works = tiles + at(p.slots);
  const auto get = [&](const char* name, std::size_t count) {
    return integers(outputs, fmt::format("step{}.{}", s, name), count, why);
  };
  auto header = get("header", 5 + 2 * (max_batch + 1)), work_indptr = get("work_indptr", at(p.slots) + 1),
       info = get("work_info_set", 8 * works), reduce_indptr = get("reduce_indptr", tiles + 1),
       final_map = get("reduce_final_map", 2 * tiles), partial_map = get("reduce_partial_map", works),
       out = get("out", at(step.qo_indptr.back()) * columns), lse = get("lse", at(step.qo_indptr.back()));
  if (!header || !work_indptr || !info || !reduce_indptr || !final_map || !partial_map || !out || !lse)
    return std::nullopt;
  return StepOutputs{
      *header, *work_indptr, *info, *reduce_indptr, *final_map, *partial_map, {floats(*out), floats(*lse)}};
}

}  // namespace

std::string plan_defect(const PlanLists& plan, const WorkPlan& p, const Step& step) {
  int longest = 0;
  for (std::size_t r = 0; r + 1 < step.qo_indptr.size(); ++r)
    longest = std::max(longest, step.qo_indptr[r + 1] - step.qo_indptr[r]);
  if (plan.persistent != (longest <= p.persistent_q_len))
    return plan.persistent ? "a plan for a q_len that no kernel supports"
                           : "no plan for a q_len that has a kernel";
  if (!plan.persistent) return {};
  if (plan.works < 0 || 8 * at(plan.works) > plan.work_info_set.size() || plan.pieces < 0 ||
      at(plan.pieces) > plan.reduce_partial_map.size() || plan.merged_tiles < 0 ||
      at(plan.merged_tiles) >= plan.reduce_indptr.size())
    return "counts out of range";
  if (plan.work_indptr.front() != 0 || plan.work_indptr.back() != plan.works ||
      !std::is_sorted(plan.work_indptr.begin(), plan.work_indptr.end()))
    return "work_indptr does not deal out all works";

  Tiles tiles;
  std::set<std::int32_t> partial_rows;
  for (int w = 0; w < plan.works; ++w) {
    const Work work = work_at(plan, w);
    if (std::string defect = defect_of_work(work, p, step); !defect.empty()) return defect;
    tiles[{work.qo_start, work.qo_end}].push_back(work);
    for (int i = 0; work.partial >= 0 && i < work.qo_end - work.qo_start; ++i)
      if (!partial_rows.insert(work.partial + i).second) return "two works share a partial row";
  }
  std::vector<int> covered(at(step.qo_indptr.back()));
  for (const auto& [rows, pieces] : tiles) {
    if (std::string defect = defect_of_tile(pieces, p, step); !defect.empty()) return defect;
    for (int row = rows.first; row < rows.second; ++row) ++covered[at(row)];
  }
  if (std::string defect = defect_of_merges(plan, tiles, p, step, covered); !defect.empty()) return defect;
  for (const int times : covered)
    if (times != 1) return times == 0 ? "rows that nobody computes" : "rows computed twice";
  return {};
}

Verdict judge_work_plan(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs) {
  const auto& p = std::get<WorkPlan>(c.problem);
  const auto& in = std::get<WorkPlanInputs>(inputs);
  std::size_t max_batch = 0;
  for (const Step& step : in.steps) max_batch = std::max(max_batch, step.qo_indptr.size() - 1);
  Verdict verdict;
  verdict.lane = "exact";
  for (std::size_t s = 0; s < in.steps.size(); ++s) {
    const Step& step = in.steps[s];
    std::string why;
    const auto got = fetch(outputs, p, step, s, max_batch, why);
    if (!got) return unreadable(why);
    const PlanLists plan = got->lists();
    verdict.elements_checked += std::ssize(got->results.out) + std::ssize(got->results.lse) + 8 * plan.works;

    if (std::string defect = plan_defect(plan, p, step); !defect.empty()) {
      verdict.kind = VerdictKind::fail;
      verdict.stage = "plan";
      verdict.detail = fmt::format("step {}: {}", s, defect);
      verdict.diagnosis = std::move(defect);
      for (std::size_t other = 0; other < s; ++other) {
        if (!plan_defect(plan, p, in.steps[other]).empty()) continue;
        verdict.diagnosis = "plan of another batch of the sequence";
        verdict.detail += fmt::format("; it is a right plan for step {}", other);
        break;
      }
      return verdict;
    }

    std::vector<int> failed;
    MismatchGrid grid("row");
    for (std::size_t r = 0; r + 1 < step.qo_indptr.size(); ++r) {
      const RowBound bound = row_bound(step.kv_indptr[r + 1] - step.kv_indptr[r], p.slots);
      for (int row = step.qo_indptr[r]; row < step.qo_indptr[r + 1]; ++row) {
        const RowSum sum = row_sum(step, step.kv_indptr[r], key_bound(p, step, static_cast<int>(r), row));
        std::optional<Element> wrong = wrong_in(got->results, row, sum, bound);
        const bool right = !wrong;
        if (wrong && verdict.worst.size() < most_elements) {
          wrong->request = static_cast<int>(r);
          wrong->position = row - step.qo_indptr[r];
          wrong->head = static_cast<int>(s);
          verdict.worst.push_back(*std::move(wrong));
        }
        grid.note(static_cast<int>(r), row - step.qo_indptr[r], 0,
                  right ? 0 : std::numeric_limits<double>::infinity());
        if (!right) failed.push_back(row);
        if (sum.weight > 0 && right)
          verdict.used_budget =
              std::max(verdict.used_budget,
                       std::abs(double{got->results.lse[at(row)]} - std::log(sum.weight)) / bound.lse);
      }
    }
    if (failed.empty()) continue;
    const int row = failed.front(), r = request_of(step, row);
    const RowSum sum = row_sum(step, step.kv_indptr[at(r)], key_bound(p, step, r, row));
    verdict.kind = VerdictKind::fail;
    verdict.stage = "element";
    verdict.lane = "element";
    verdict.mismatch = grid.map();
    verdict.rows_failed = std::ssize(failed);
    verdict.diagnosis = result_diagnosis(plan, p, step, got->results, failed);
    verdict.detail =
        fmt::format("step {}, request {}, row {}: lse {:.9g}, expected {:.9g}; {} of {} rows fail", s, r, row,
                    got->results.lse[at(row)], std::log(sum.weight), failed.size(), got->results.lse.size());
    return verdict;
  }
  return verdict;
}

}  // namespace attest::oracle
