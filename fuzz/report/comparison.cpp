// SPDX-License-Identifier: MIT
#include "fuzz/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <unordered_map>

#include "fuzz/usage_error.h"

namespace attest::fuzz::report {
namespace {

using Cases = std::vector<const CaseNumbers*>;

constexpr const char* passes = "pass";

bool is_failure(const std::string& kind) {
  const std::set<std::string> no_failures = {passes, "unsupported", "mistrusted"};
  return no_failures.count(kind) == 0;
}

std::map<std::string, Cases> by_kernel(const RunNumbers& run) {
  std::map<std::string, Cases> all;
  for (const CaseNumbers& c : run.cases) all[run.kernel_names[c.kernel]].push_back(&c);
  return all;
}

/// The n-th time that an id comes in one run is paired with the n-th time in the other.
std::vector<std::pair<const CaseNumbers*, const CaseNumbers*>> pair_up(const Cases& before,
                                                                       const Cases& after) {
  std::unordered_map<std::string, std::vector<const CaseNumbers*>> waiting;
  for (auto it = before.rbegin(); it != before.rend(); ++it)
    if (!(*it)->id.empty()) waiting[(*it)->id].push_back(*it);
  std::vector<std::pair<const CaseNumbers*, const CaseNumbers*>> pairs;
  for (const CaseNumbers* c : after) {
    const auto it = waiting.find(c->id);
    if (it == waiting.end() || it->second.empty()) continue;
    pairs.emplace_back(it->second.back(), c);
    it->second.pop_back();
  }
  return pairs;
}

bool is_measured(const CaseNumbers& c) {
  return c.kind == passes && c.elements_checked > 0;
}

/// Fresh cases below this number were drawn, and steered, alike in both runs (fuzz/coverage.h).
std::uint64_t common_numbers(const Cases& before, const Cases& after) {
  const auto end = [](const Cases& cases) {
    std::uint64_t next = 0;
    for (const CaseNumbers* c : cases)
      if (c->source == "fresh") next = std::max(next, c->number + 1);
    return next;
  };
  return std::min(end(before), end(after));
}

std::vector<Used> fresh_passes(const Cases& cases, std::uint64_t below) {
  std::vector<Used> all;
  for (const CaseNumbers* c : cases)
    if (c->source == "fresh" && c->number < below && is_measured(*c))
      all.push_back({c->used_budget, c->elements_checked});
  return all;
}

double median_seconds(std::vector<double> seconds) {
  if (seconds.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

KernelComparison compare_kernel(const std::string& name, const Cases& before, const Cases& after,
                                double alpha, const RunNumbers& after_run, Comparison& all) {
  KernelComparison k;
  k.name = name;
  for (const CaseNumbers* c : before) {
    k.tested_before += c->tested() ? 1 : 0;
    if (is_measured(*c)) k.histogram_before.add(c->used_budget);
  }
  for (const CaseNumbers* c : after) {
    k.tested_after += c->tested() ? 1 : 0;
    if (is_measured(*c)) k.histogram_after.add(c->used_budget);
  }
  k.no_more_tested = k.tested_before > 0 && k.tested_after == 0;

  const auto pairs = pair_up(before, after);
  k.same_cases = pairs.size();
  std::vector<UsedTwice> used;
  std::vector<double> seconds_before, seconds_after;
  for (const auto& [a, b] : pairs) {
    if (is_measured(*a) && is_measured(*b))
      used.push_back({{a->used_budget, a->elements_checked}, {b->used_budget, b->elements_checked}});
    seconds_before.push_back(a->run_seconds);
    seconds_after.push_back(b->run_seconds);
    k.instructions_before += a->wave_instructions;
    k.instructions_after += b->wave_instructions;
    if (a->kind == b->kind) continue;
    const bool worse = !b->excused && ((a->kind == passes && b->kind != passes) ||
                                       (!is_failure(a->kind) && is_failure(b->kind)));
    all.changes.push_back({name, b->id, a->kind, b->kind, after_run.reproduction(*b), worse});
    ++all.change_counts[{a->kind, b->kind}];
  }
  // The same cases tell more, when they are most of what there is.
  if (2 * pairs.size() >= std::min(before.size(), after.size())) {
    k.drift = drift_case_by_case(used, alpha);
  } else {
    const std::uint64_t below = common_numbers(before, after);
    k.drift = drift_by_distribution(fresh_passes(before, below), fresh_passes(after, below), alpha);
    seconds_before.clear();
    seconds_after.clear();
    for (const CaseNumbers* c : before) seconds_before.push_back(c->run_seconds);
    for (const CaseNumbers* c : after) seconds_after.push_back(c->run_seconds);
  }
  k.seconds_before = median_seconds(std::move(seconds_before));
  k.seconds_after = median_seconds(std::move(seconds_after));
  return k;
}

void compare_findings(const RunNumbers& before, const RunNumbers& after, Comparison& all) {
  std::set<std::string> old;
  for (const FindingNumbers& f : before.findings) old.insert(f.signature);
  std::set<std::string> now;
  for (const FindingNumbers& f : after.findings) {
    now.insert(f.signature);
    (old.count(f.signature) == 0 ? all.fresh : all.still).push_back(&f);
  }
  for (const FindingNumbers& f : before.findings)
    if (now.count(f.signature) == 0) all.vanished.push_back(&f);
}

void compare_circumstances(const RunNumbers& before, const RunNumbers& after, Comparison& all) {
  for (const char* name : {"device", "arch", "detectors", "schedule"}) {
    const Json a = before.options.value(name, Json()), b = after.options.value(name, Json());
    if (a != b) all.remarks.push_back(fmt::format("They differ in {}: {} and {}.", name, a.dump(), b.dump()));
  }
  if (before.build != after.build)
    all.remarks.push_back(fmt::format("They were made by different builds of attest: {} and {}.",
                                      before.build.dump(), after.build.dump()));
  for (const RunNumbers* run : {&before, &after}) {
    if (!run->complete)
      all.remarks.push_back(fmt::format("{} has not ended, or was interrupted.", run->folder));
    for (const std::string& remark : run->remarks)
      all.remarks.push_back(fmt::format("{}: {}", run->folder, remark));
  }
}

const char* verdict_name(Drift::Verdict verdict) {
  switch (verdict) {
    case Drift::Verdict::none:
      return "none";
    case Drift::Verdict::worse:
      return "worse";
    case Drift::Verdict::better:
      return "better";
  }
  return "none";
}

Json findings_json(const std::vector<const FindingNumbers*>& findings) {
  Json all = Json::array();
  for (const FindingNumbers* f : findings)
    all.push_back({{"signature", f->signature},
                   {"kernel", f->kernel},
                   {"kind", f->kind},
                   {"diagnosis", f->diagnosis},
                   {"count", f->count},
                   {"reproduce", f->reproduce}});
  return all;
}

}  // namespace

std::uint64_t Comparison::worse_verdicts() const {
  return static_cast<std::uint64_t>(
      std::count_if(changes.begin(), changes.end(), [](const VerdictChange& c) { return c.worse; }));
}

std::uint64_t Comparison::drifted() const {
  return static_cast<std::uint64_t>(
      std::count_if(kernels.begin(), kernels.end(),
                    [](const KernelComparison& k) { return k.drift.verdict == Drift::Verdict::worse; }));
}

std::uint64_t Comparison::no_more_tested() const {
  const auto in_both = static_cast<std::uint64_t>(std::count_if(
      kernels.begin(), kernels.end(), [](const KernelComparison& k) { return k.no_more_tested; }));
  return in_both + only_before.size();
}

bool Comparison::worse() const {
  return !fresh.empty() || worse_verdicts() > 0 || drifted() > 0 || no_more_tested() > 0;
}

Comparison compare(const RunNumbers& before, const RunNumbers& after) {
  Comparison all;
  compare_findings(before, after, all);
  compare_circumstances(before, after, all);
  const auto old = by_kernel(before), now = by_kernel(after);
  std::vector<std::string> names;
  for (const auto& [name, cases] : old) {
    if (now.count(name) != 0)
      names.push_back(name);
    else if (std::any_of(cases.begin(), cases.end(), [](const CaseNumbers* c) { return c->tested(); }))
      all.only_before.push_back(name);
  }
  for (const auto& [name, cases] : now)
    if (old.count(name) == 0) all.only_after.push_back(name);
  if (names.empty())
    throw UsageError(fmt::format("{} and {} have no kernel in common: nothing can be compared", before.folder,
                                 after.folder));
  const double alpha = false_alarms / static_cast<double>(names.size());
  for (const std::string& name : names) {
    all.kernels.push_back(compare_kernel(name, old.at(name), now.at(name), alpha, after, all));
    all.same_cases += all.kernels.back().same_cases;
  }
  std::sort(all.changes.begin(), all.changes.end(), [](const VerdictChange& a, const VerdictChange& b) {
    if (a.worse != b.worse) return a.worse;
    return std::tie(a.kernel, a.id) < std::tie(b.kernel, b.id);
  });
  const auto rank = [](const KernelComparison& k) {
    if (k.no_more_tested) return 0;
    return k.drift.verdict == Drift::Verdict::worse ? 1 : k.drift.verdict == Drift::Verdict::better ? 2 : 3;
  };
  std::sort(all.kernels.begin(), all.kernels.end(),
            [&](const KernelComparison& a, const KernelComparison& b) {
              return rank(a) != rank(b) ? rank(a) < rank(b) : a.name < b.name;
            });
  return all;
}

Json comparison_json(const RunNumbers& before, const RunNumbers& after, const Comparison& comparison) {
  Json changes = Json::array();
  for (const VerdictChange& c : comparison.changes)
    changes.push_back({{"kernel", c.kernel},
                       {"id", c.id},
                       {"before", c.before},
                       {"after", c.after},
                       {"worse", c.worse},
                       {"reproduce", c.reproduce}});
  Json kernels = Json::object();
  for (const KernelComparison& k : comparison.kernels) {
    const Drift& d = k.drift;
    kernels[k.name] = {{"tested", {k.tested_before, k.tested_after}},
                       {"no_more_tested", k.no_more_tested},
                       {"same_cases", k.same_cases},
                       {"drift",
                        {{"verdict", verdict_name(d.verdict)},
                         {"rule", d.case_by_case ? "case by case" : "by distribution"},
                         {"cases", {d.before, d.after}},
                         {"moved_up", d.ups},
                         {"moved_down", d.downs},
                         {"chance", d.chance},
                         {"alpha", d.alpha},
                         {"median", {number_json(d.median_before), number_json(d.median_after)}},
                         {"worst", {number_json(d.worst_before), number_json(d.worst_after)}}}},
                       {"median_run_seconds", {number_json(k.seconds_before), number_json(k.seconds_after)}},
                       {"wave_instructions", {k.instructions_before, k.instructions_after}}};
  }
  return {{"schema", record_schema},
          {"worse", comparison.worse()},
          {"before", before.folder},
          {"after", after.folder},
          {"remarks", comparison.remarks},
          {"same_cases", comparison.same_cases},
          {"new_findings", findings_json(comparison.fresh)},
          {"vanished_findings", findings_json(comparison.vanished)},
          {"same_findings", comparison.still.size()},
          {"worse_verdicts", comparison.worse_verdicts()},
          {"verdict_changes", std::move(changes)},
          {"drifted_kernels", comparison.drifted()},
          {"kernels_no_more_tested", comparison.no_more_tested()},
          {"only_before", comparison.only_before},
          {"only_after", comparison.only_after},
          {"by_kernel", std::move(kernels)}};
}

}  // namespace attest::fuzz::report
