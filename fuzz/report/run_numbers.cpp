// SPDX-License-Identifier: MIT
#include "fuzz/report/run_numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "fuzz/run_folder.h"
#include "fuzz/summary.h"

namespace attest::fuzz::report {
namespace {

double number_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  return json == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
}

/// A member that may be missing or null.
template <class T>
T member(const Json& json, const char* name, T otherwise = {}) {
  const auto it = json.find(name);
  return it == json.end() || it->is_null() ? std::move(otherwise) : it->get<T>();
}

std::optional<Json> read_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Json json = Json::parse(file, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

/// The lower, the worse. What takes the server down, then what is wrong, then what is not certain.
int rank_of(const std::string& kind) {
  constexpr std::array<std::string_view, 6> worst_first = {"crash",  "timeout", "fail",
                                                           "hazard", "flaky",   "harness_error"};
  const auto at = std::find(worst_first.begin(), worst_first.end(), kind);
  return static_cast<int>(at - worst_first.begin());
}

int exactness_rank(const std::string& exactness) {
  constexpr std::array<std::string_view, 4> least_first = {"not modelled", "unverified", "approximate",
                                                           "exact"};
  const auto at = std::find(least_first.begin(), least_first.end(), exactness);
  return static_cast<int>(at - least_first.begin());
}

class Reader {
 public:
  explicit Reader(const std::string& folder) { run_.folder = folder; }

  void apply(const Json& event) {
    try {
      take(event);
    } catch (const Json::exception& error) {
      if (run_.unreadable++ == 0) first_unreadable_ = error.what();
    }
  }

  RunNumbers finish() {
    for (FindingNumbers& f : run_.findings)
      f.count = std::max<std::uint64_t>(f.count, by_signature_[f.signature]);
    read_failure_files();
    for (FindingNumbers& f : run_.findings) {
      if (f.same < f.runs && f.kind != "flaky") {
        f.kind = "flaky";
        f.detail = fmt::format("{} of {} runs agree; first: {}", f.same, f.runs, f.detail);
      }
      if (const auto kernel = index_.find(f.kernel); kernel != index_.end())
        ++run_.kernels[kernel->second].findings;
    }
    std::sort(run_.findings.begin(), run_.findings.end(), [](const auto& a, const auto& b) {
      if (rank_of(a.kind) != rank_of(b.kind)) return rank_of(a.kind) < rank_of(b.kind);
      return a.count != b.count ? a.count > b.count : a.signature < b.signature;
    });
    for (const auto& [op, row] : fidelity_) run_.fidelity.push_back(row);
    std::sort(run_.fidelity.begin(), run_.fidelity.end(), [](const auto& a, const auto& b) {
      if (exactness_rank(a.exactness) != exactness_rank(b.exactness))
        return exactness_rank(a.exactness) < exactness_rank(b.exactness);
      return a.count != b.count ? a.count > b.count : a.op < b.op;
    });
    fill_rate();
    find_untested();
    remark();
    return std::move(run_);
  }

 private:
  void take(const Json& event) {
    const auto what = event.at("event").get<std::string>();
    if (const double t = member(event, "t", -1.0); t >= 0) run_.seconds = std::max(run_.seconds, t);
    if (what == "run") {
      run_.schema = event.value("schema", Json());
      run_.build = event.value("attest", Json::object());
      run_.options = event.contains("options") ? event.at("options") : event;
      run_.jobs = member(event, "jobs", 0);
      if (const Json device = event.value("device", Json()); device.is_object()) run_.device = device;
      run_.merged = member(event, "merged", std::vector<std::string>());
    } else if (what == "resume") {
      run_.ended = run_.complete = false;
      ++run_.resumed;
      run_.resumed_at.push_back(member(event, "t", 0.0));
      if (const Json build = event.value("attest", Json::object()); build != run_.build)
        run_.remarks.push_back(fmt::format("It was resumed by another build of attest: {}.", build.dump()));
    } else if (what == "end") {
      run_.ended = true;
      run_.complete = member(event, "complete", true);
    } else if (what == "worker") {
      ++run_.workers_lost;
      run_.lost_at.push_back(member(event, "t", 0.0));
    } else if (what == "quarantined") {
      if (quarantined_.insert(event.at("item").get<std::uint64_t>()).second) ++run_.quarantined;
    } else if (what == "start") {
      if (event.contains("case")) started_[item_of(event)] = event.at("case");
    } else if (what == "verdict") {
      take_verdict(event);
    } else if (what == "finding") {
      take_finding(event);
    } else if (what == "confirmed" || what == "smaller" || what == "shrunk") {
      take_pursuit(what, event);
    }
  }

  static std::uint64_t item_of(const Json& event) {
    return event.contains("item") ? event.at("item").get<std::uint64_t>()
                                  : event.at("number").get<std::uint64_t>();
  }

  KernelNumbers& kernel(const std::string& name) {
    const auto [it, fresh] = index_.try_emplace(name, run_.kernels.size());
    if (fresh) {
      run_.kernel_names.push_back(name);
      run_.kernels.emplace_back();
      run_.kernels.back().name = name;
    }
    return run_.kernels[it->second];
  }

  void take_verdict(const Json& event) {
    const std::uint64_t item = item_of(event);
    Json of_case;
    if (const auto it = started_.find(item); it != started_.end()) {
      of_case = std::move(it->second);
      started_.erase(started_.begin(), std::next(it));  // those before it were never launched
    }
    const auto name = event.at("kernel").get<std::string>();
    const Json& evaluation = event.at("evaluation");
    const Json& verdict = evaluation.at("verdict");
    CaseNumbers c;
    c.kind = verdict.at("kind").get<std::string>();
    KernelNumbers& k = kernel(name);
    c.kernel = static_cast<std::uint32_t>(index_.at(name));
    c.id = member(event, "id", std::string());
    c.lane = member(verdict, "lane", std::string());
    c.source = member(event, "source", std::string("fresh"));
    c.item = item;
    c.number = member(event, "number", item);
    c.file = member(event, "file", std::string());
    c.excused = event.contains("excuse");
    c.t = member(event, "t", -1.0);
    c.used_budget = number_of(verdict.value("used_budget", Json(0.0)));
    c.elements_checked = member(verdict, "elements_checked", std::int64_t{0});
    c.wave_instructions = member(evaluation, "wave_instructions", std::uint64_t{0});
    c.materialise_seconds = member(evaluation, "materialise_seconds", 0.0);
    c.run_seconds = member(evaluation, "run_seconds", 0.0);
    c.judge_seconds = member(evaluation, "judge_seconds", 0.0);

    ++run_.cases_run;
    ++run_.verdicts[c.kind];
    ++k.cases;
    ++k.verdicts[c.kind];
    k.seconds += c.seconds();
    k.run_seconds += c.run_seconds;
    k.wave_instructions += c.wave_instructions;
    if (c.tested()) {
      ++run_.tested;
      ++k.tested;
      if (!c.lane.empty()) k.budgets[c.lane].add(c.used_budget);
      if (of_case.is_object()) {
        if (!k.coverage) k.coverage = std::make_unique<Coverage>(name);
        k.coverage->add(of_case);
      }
    } else {
      const auto why = member(verdict, "detail", std::string());
      ++k.reasons[c.kind + ": " + (why.empty() ? member(verdict, "diagnosis", std::string()) : why)];
    }
    if (c.excused) {
      ++run_.excused;
      ++run_.excuses[event.at("excuse").get<std::string>()];
    } else if (event.contains("signature")) {
      ++by_signature_[event.at("signature").get<std::string>()];
      last_failure_ = {item, name, verdict, of_case};
    }
    k.branches.add(member(evaluation, "branches", BranchWays()));
    if (evaluation.contains("observed")) take_fidelity(evaluation.at("observed"));
    run_.cases.push_back(std::move(c));
  }

  void take_fidelity(const Json& observed) {
    if (!observed.contains("fidelity") || observed.at("fidelity").empty()) return;
    ++run_.fidelity_cases;
    for (const Json& row : observed.at("fidelity")) {
      const auto op = row.at("op").get<std::string>();
      const auto exactness = row.at("exactness").get<std::string>();
      FidelityRow& sum = fidelity_[{op, exactness}];
      sum.op = op;
      sum.exactness = exactness;
      sum.reason = member(row, "reason", std::string());
      sum.ulp = std::max(sum.ulp, member(row, "ulp", 0.0));
      sum.count += row.at("count").get<std::uint64_t>();
    }
  }

  FindingNumbers* find(const std::string& signature) {
    const auto it = std::find_if(run_.findings.begin(), run_.findings.end(),
                                 [&](const FindingNumbers& f) { return f.signature == signature; });
    return it == run_.findings.end() ? nullptr : &*it;
  }

  void set_verdict(FindingNumbers& f, const Json& verdict) {
    f.verdict = verdict;
    f.kind = member(verdict, "kind", f.kind);
    f.diagnosis = member(verdict, "diagnosis", f.diagnosis);
    f.detail = member(verdict, "detail", f.detail);
  }

  void take_finding(const Json& event) {
    FindingNumbers f;
    f.signature = event.at("signature").get<std::string>();
    f.kernel = member(event, "kernel", std::string());
    f.source = member(event, "source", std::string("fresh"));
    f.number = member(event, "number", std::uint64_t{0});
    f.from_file = member(event, "file", std::string());
    if (last_failure_.item == item_of(event)) {
      if (f.kernel.empty()) f.kernel = last_failure_.kernel;
      set_verdict(f, last_failure_.verdict);
      f.original = f.minimised = last_failure_.of_case;
    }
    Finding named;
    named.signature = f.signature;
    f.file = named.file();
    f.reproduce = fuzz::reproduction(named, run_.folder);
    if (find(f.signature) == nullptr) run_.findings.push_back(std::move(f));
  }

  void take_pursuit(const std::string& what, const Json& event) {
    FindingNumbers* f = find(event.at("signature").get<std::string>());
    if (f == nullptr) return;
    if (what == "confirmed") {
      f->confirmed = true;
      f->same = event.at("same").get<int>();
      f->runs = event.at("runs").get<int>();
      return;
    }
    f->evaluations = member(event, "evaluations", std::uint64_t{0});
    f->steps = member(event, "steps", std::uint64_t{0});
    if (what == "smaller") {
      f->minimised = event.at("case");
      set_verdict(*f, event.at("evaluation").at("verdict"));
    } else {
      f->done = true;
      f->minimal = member(event, "minimal", false);
    }
  }

  void read_failure_files() {
    std::vector<std::filesystem::path> paths;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(run_.folder + "/failures", none))
      if (entry.path().extension() == ".json") paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
      const std::optional<Json> json = read_json(path.string());
      try {
        if (!json) throw std::invalid_argument("is no JSON object");
        take_failure_file(*json, "failures/" + path.filename().string());
      } catch (const std::exception& error) {
        run_.remarks.push_back(fmt::format("{} was left out: {}.", path.string(), error.what()));
      }
    }
  }

  /// What events do not say: the mismatch. And the whole finding, when they do not tell of it.
  void take_failure_file(const Json& json, const std::string& file) {
    const auto signature = json.at("signature").get<std::string>();
    FindingNumbers* f = find(signature);
    if (f == nullptr) {
      run_.remarks.push_back(fmt::format("{} holds a finding that events.jsonl does not tell of.", file));
      FindingNumbers made;
      made.signature = signature;
      made.kernel = member(json, "kernel", std::string());
      const Json found = json.value("found", Json::object());
      made.source = member(found, "source", std::string("fresh"));
      made.number = member(found, "number", std::uint64_t{0});
      made.from_file = member(found, "file", std::string());
      made.count = 1;
      const Json repeats = json.value("repeats", Json::object());
      made.same = member(repeats, "same", 1);
      made.runs = member(repeats, "runs", 1);
      run_.findings.push_back(std::move(made));
      f = &run_.findings.back();
      f->original = json.value("original", Json());
      f->minimised = json.value("minimised", Json());
      if (json.contains("verdict")) set_verdict(*f, json.at("verdict"));
    }
    f->file = file;
    f->reproduce = fmt::format("attest replay {}/{}", run_.folder, file);
    if (f->minimised.is_null()) f->minimised = json.value("minimised", Json());
    if (f->original.is_null()) f->original = json.value("original", Json());
    if (f->verdict.empty() && json.contains("verdict")) set_verdict(*f, json.at("verdict"));
    const Json mismatch = json.value("mismatch", Json::object());
    f->original_map = read_mismatch(mismatch.value("original", Json()));
    f->minimised_map = read_mismatch(mismatch.value("minimised", Json()));
  }

  void fill_rate() {
    constexpr std::array<double, 16> steps = {0.1, 0.2, 0.5, 1,   2,   5,    10,   20,
                                              30,  60,  120, 300, 600, 1200, 1800, 3600};
    constexpr double most_buckets = 60;
    if (run_.seconds <= 0 || run_.cases.empty() || run_.cases.front().t < 0) return;
    const auto step =
        std::find_if(steps.begin(), steps.end(), [&](double s) { return run_.seconds <= s * most_buckets; });
    const double width = step != steps.end() ? *step : run_.seconds / most_buckets;
    const auto count = static_cast<std::size_t>(std::ceil(run_.seconds / width));
    for (std::size_t i = 0; i < count; ++i)
      run_.rate.push_back(
          {static_cast<double>(i) * width, std::min(static_cast<double>(i + 1) * width, run_.seconds), 0});
    for (const CaseNumbers& c : run_.cases)
      if (c.t >= 0) ++run_.rate[std::min(count - 1, static_cast<std::size_t>(c.t / width))].cases;
  }

  void find_untested() {
    if (!run_.options.contains("kernels") || !run_.options.at("kernels").is_array()) return;
    for (const Json& name : run_.options.at("kernels")) {
      if (!name.is_string()) continue;
      const auto it = index_.find(name.get<std::string>());
      if (it == index_.end() || run_.kernels[it->second].tested == 0)
        run_.untested.push_back(name.get<std::string>());
    }
  }

  void remark() {
    if (run_.schema != record_schema)
      run_.remarks.push_back(fmt::format(
          "The run folder has schema {}, this attest knows {}: what it does not understand is left out.",
          run_.schema.is_null() ? "none" : run_.schema.dump(), record_schema));
    if (run_.unreadable > 0)
      run_.remarks.push_back(
          fmt::format("{} events could not be understood and are not in these numbers; the first: {}.",
                      run_.unreadable, first_unreadable_));
    if (run_.cases_run > 0 &&
        std::none_of(run_.kernels.begin(), run_.kernels.end(),
                     [](const KernelNumbers& k) { return k.coverage != nullptr; }) &&
        run_.tested > 0)
      run_.remarks.emplace_back(
          "The events hold no cases (an older version wrote them): coverage is not known.");
    if (!run_.cases.empty() && run_.cases.front().t < 0)
      run_.remarks.emplace_back(
          "The events hold no times (an older version wrote them): cases/s over time is not known.");
    if (const std::optional<Json> summary = read_json(run_.folder + "/summary.json")) {
      if (run_.seconds == 0 && summary->contains("seconds")) run_.seconds = number_of(summary->at("seconds"));
      std::uint64_t said = 0;
      if (summary->contains("cases") && summary->at("cases").is_number_unsigned())
        said = summary->at("cases").get<std::uint64_t>();
      if (said != run_.cases_run)
        run_.remarks.push_back(
            fmt::format("summary.json says {} cases, events.jsonl holds {}: one of them was changed; these "
                        "are the events' numbers.",
                        said, run_.cases_run));
    } else if (run_.ended) {
      run_.remarks.emplace_back("summary.json is missing or damaged; these numbers are of events.jsonl.");
    }
  }

  struct Failure {
    std::uint64_t item = ~std::uint64_t{0};
    std::string kernel;
    Json verdict, of_case;
  };
  RunNumbers run_;
  std::map<std::string, std::size_t> index_;
  std::map<std::uint64_t, Json> started_;
  std::set<std::uint64_t> quarantined_;
  std::map<std::string, std::uint64_t> by_signature_;
  std::map<std::pair<std::string, std::string>, FidelityRow> fidelity_;
  Failure last_failure_;
  std::string first_unreadable_;
};

Json counts_json(const std::map<std::string, std::uint64_t>& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json[name] = count;
  return json;
}

Json finding_json(const FindingNumbers& f) {
  Json json = {{"signature", f.signature}, {"kernel", f.kernel},       {"kind", f.kind},
               {"diagnosis", f.diagnosis}, {"detail", f.detail},       {"count", f.count},
               {"source", f.source},       {"reproduce", f.reproduce}, {"case", f.file}};
  if (f.from_file.empty())
    json["first_number"] = f.number;
  else
    json["first_file"] = f.from_file;
  json.update({{"repeats", {{"same", f.same}, {"runs", f.runs}}},
               {"minimal", f.minimal},
               {"evaluations", f.evaluations},
               {"minimised", f.minimised}});
  return json;
}

Json histogram_json(const BudgetHistogram& h) {
  return {{"cases", h.total()},
          {"median", number_json(h.quantile_within(0.5))},
          {"p99", number_json(h.quantile_within(0.99))},
          {"worst_within_limit", number_json(h.quantile_within(1))},
          {"beyond_limit", h.beyond()},
          {"bins", h.counts()}};
}

Json kernel_json(const KernelNumbers& k) {
  Json budgets = Json::object();
  for (const auto& [lane, histogram] : k.budgets) budgets[lane] = histogram_json(histogram);
  Json json = {{"cases", k.cases},
               {"tested", k.tested},
               {"findings", k.findings},
               {"verdicts", counts_json(k.verdicts)},
               {"not_tested_because", counts_json(k.reasons)},
               {"used_budget", std::move(budgets)},
               {"seconds", k.seconds},
               {"run_seconds", k.run_seconds},
               {"wave_instructions", k.wave_instructions}};
  if (k.coverage)
    json["pairs"] = {{"covered", k.coverage->covered()}, {"reachable", k.coverage->reachable()}};
  if (k.branches.total() != 0) json["branches"] = k.branches.json();
  return json;
}

}  // namespace

bool CaseNumbers::tested() const {
  return Summary::tested(1, {{kind, 1}}) == 1;
}

double KernelNumbers::worst_within() const {
  double worst = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [lane, histogram] : budgets) worst = std::fmax(worst, histogram.quantile_within(1));
  return worst;
}

std::pair<std::size_t, std::size_t> RunNumbers::pairs() const {
  std::pair<std::size_t, std::size_t> sum{0, 0};
  for (const KernelNumbers& k : kernels)
    if (k.coverage) {
      sum.first += k.coverage->covered();
      sum.second += k.coverage->reachable();
    }
  return sum;
}

std::pair<std::size_t, std::size_t> RunNumbers::branches() const {
  std::pair<std::size_t, std::size_t> sum{0, 0};
  for (const KernelNumbers& k : kernels) {
    sum.first += k.branches.executed();
    sum.second += k.branches.total();
  }
  return sum;
}

std::vector<const CaseNumbers*> RunNumbers::slowest(std::size_t most) const {
  std::vector<const CaseNumbers*> all;
  all.reserve(cases.size());
  for (const CaseNumbers& c : cases)
    if (c.seconds() > 0) all.push_back(&c);
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()));
  std::partial_sort(all.begin(), end, all.end(), [](const CaseNumbers* a, const CaseNumbers* b) {
    return a->seconds() != b->seconds() ? a->seconds() > b->seconds() : a < b;
  });
  all.erase(end, all.end());
  return all;
}

std::vector<std::size_t> RunNumbers::worst_first() const {
  std::vector<std::size_t> order(kernels.size());
  std::vector<double> nearest;
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    const double worst = kernels[i].worst_within();
    nearest.push_back(std::isnan(worst) ? -1 : worst);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (kernels[a].findings != kernels[b].findings) return kernels[a].findings > kernels[b].findings;
    if ((kernels[a].tested == 0) != (kernels[b].tested == 0)) return kernels[a].tested == 0;
    return nearest[a] != nearest[b] ? nearest[a] > nearest[b] : a < b;
  });
  return order;
}

std::string RunNumbers::reproduction(const CaseNumbers& c) const {
  if (c.source == "neighbour")
    return fmt::format("attest replay {}:{} --kernel {}", folder, c.item, kernel_names[c.kernel]);
  if (c.source != "fresh") return fmt::format("attest replay {} --kernel {}", c.file, kernel_names[c.kernel]);
  return fmt::format("attest replay {}:{} --kernel {}", options.value("seed", Json(0)).dump(), c.number,
                     kernel_names[c.kernel]);
}

RunNumbers read_run(const std::string& folder) {
  Reader reader(folder);
  read_events(folder, [&](const Json& event) { reader.apply(event); });
  return reader.finish();
}

Json report_json(const RunNumbers& run) {
  Json findings = Json::array();
  for (const FindingNumbers& f : run.findings) findings.push_back(finding_json(f));
  Json kernels = Json::object();
  for (const KernelNumbers& k : run.kernels) kernels[k.name] = kernel_json(k);
  Json rate = Json::array();
  for (const RateBucket& b : run.rate) rate.push_back({{"from", b.from}, {"to", b.to}, {"cases", b.cases}});
  Json slowest = Json::array();
  for (const CaseNumbers* c : run.slowest(10))
    slowest.push_back({{"kernel", run.kernel_names[c->kernel]},
                       {"id", c->id},
                       {"seconds", c->seconds()},
                       {"run_seconds", c->run_seconds},
                       {"reproduce", run.reproduction(*c)}});
  Json fidelity = Json::array();
  for (const FidelityRow& row : run.fidelity)
    fidelity.push_back(
        {{"op", row.op}, {"exactness", row.exactness}, {"count", row.count}, {"reason", row.reason}});
  const auto [covered, reachable] = run.pairs();
  const auto [executed, there] = run.branches();
  return {{"schema", record_schema},
          {"folder", run.folder},
          {"run_schema", run.schema},
          {"complete", run.complete},
          {"remarks", run.remarks},
          {"cases", run.cases_run},
          {"tested", run.tested},
          {"untested_kernels", run.untested},
          {"verdicts", counts_json(run.verdicts)},
          {"excused", counts_json(run.excuses)},
          {"quarantined", run.quarantined},
          {"seconds", run.seconds},
          {"workers_lost", run.workers_lost},
          {"resumed", run.resumed},
          {"pairs", {{"covered", covered}, {"reachable", reachable}}},
          {"branches", {{"executed", executed}, {"total", there}}},
          {"findings", std::move(findings)},
          {"by_kernel", std::move(kernels)},
          {"rate", std::move(rate)},
          {"slowest", std::move(slowest)},
          {"fidelity", {{"cases", run.fidelity_cases}, {"ops", std::move(fidelity)}}},
          {"environment",
           {{"attest", run.build},
            {"device", run.device},
            {"options", run.options},
            {"jobs", run.jobs},
            {"merged", run.merged}}}};
}

}  // namespace attest::fuzz::report
