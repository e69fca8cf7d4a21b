// SPDX-License-Identifier: MIT
#include "fuzz/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "fuzz/exchange/worker_option.h"

namespace attest::fuzz {
namespace {

cases::Case case_of(const Json& json) {
  return cases::parse_case(json.dump());
}

Json counts_json(const std::map<std::string, std::uint64_t>& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json[name] = count;
  return json;
}

}  // namespace

oracle::Verdict Finding::verdict() const {
  oracle::Verdict v = best.evaluation.verdict;
  if (flaky()) {
    v.kind = oracle::VerdictKind::flaky;
    v.detail = fmt::format("{} of {} runs agree; first: {}", same, runs, v.detail);
  }
  return v;
}

void Finding::set_mismatch(oracle::Mismatch map) {
  best.evaluation.verdict.mismatch = map;
  mismatch = std::move(map);
}

std::string Finding::first_seen() const {
  if (!first_file.empty()) return first_file;
  return fmt::format("{} {}", source == "fresh" ? "case" : source, first_number);
}

std::string Finding::file() const {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : signature) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("failures/{:016x}.json", hash);
}

std::string reproduction(const Finding& finding, const std::string& folder, const std::string& worker) {
  return fmt::format("attest replay {}/{}{}", folder, finding.file(), exchange::worker_option(worker));
}

std::uint64_t Summary::tested(std::uint64_t cases, const std::map<std::string, std::uint64_t>& verdicts) {
  for (const auto kind : {oracle::VerdictKind::unsupported, oracle::VerdictKind::mistrusted,
                          oracle::VerdictKind::harness_error})
    if (const auto it = verdicts.find(oracle::name(kind)); it != verdicts.end()) cases -= it->second;
  return cases;
}

Finding* Summary::find(const std::string& signature) {
  const auto it = std::find_if(findings.begin(), findings.end(),
                               [&](const Finding& f) { return f.signature == signature; });
  return it == findings.end() ? nullptr : &*it;
}

std::optional<Json> Summary::unmade_finding() const {
  if (!last_verdict_.contains("signature") || last_verdict_.contains("excuse")) return std::nullopt;
  const auto signature = last_verdict_.at("signature").get<std::string>();
  const bool made = std::any_of(findings.begin(), findings.end(),
                                [&](const Finding& f) { return f.signature == signature; });
  return made ? std::nullopt : std::optional<Json>(last_verdict_);
}

std::pair<std::size_t, std::size_t> Summary::pairs() const {
  std::pair<std::size_t, std::size_t> sum{0, 0};
  for (const auto& [name, kernel] : kernels) {
    sum.first += kernel.coverage.covered();
    sum.second += kernel.coverage.reachable();
  }
  return sum;
}

std::pair<std::size_t, std::size_t> Summary::branches() const {
  std::pair<std::size_t, std::size_t> sum{0, 0};
  for (const auto& [name, kernel] : kernels) {
    sum.first += kernel.branches.executed();
    sum.second += kernel.branches.total();
  }
  return sum;
}

void Summary::take_verdict(const Json& event) {
  const auto item = event.at("item").get<std::uint64_t>();
  const auto name = event.at("kernel").get<std::string>();
  const auto kind = event.at("evaluation").at("verdict").at("kind").get<std::string>();
  const auto started = started_.find(item);
  if (started == started_.end())
    throw std::invalid_argument(fmt::format("item {}: a verdict without a start", item));
  last_case_ = std::move(started->second);
  last_verdict_ = event;
  started_.erase(started_.begin(), std::next(started));  // those before it were never launched
  next_item = item + 1;

  ++cases;
  ++verdicts[kind];
  OfKernel& kernel = kernels.try_emplace(name, name).first->second;
  ++kernel.cases;
  ++kernel.verdicts[kind];
  if (tested(1, {{kind, 1}}) == 1) kernel.coverage.add(last_case_);
  const Evaluation evaluation = evaluation_from_json(event.at("evaluation"));
  kernel.branches.add(evaluation.branches);
  kernel.cells.add(case_of(last_case_), evaluation);
  if (event.contains("excuse")) {
    ++excused[event.at("excuse").get<std::string>()];
  } else if (event.contains("signature")) {
    const auto signature = event.at("signature").get<std::string>();
    ++seen_[signature];
    if (Finding* known = find(signature)) ++known->count;
  }
}

void Summary::apply(const Json& event) {
  const auto what = event.at("event").get<std::string>();
  if (event.contains("t")) seconds = event.at("t").get<double>();
  if (what == "run") options = event.at("options");
  if (what == "resume") complete = false;
  if (what == "end") complete = event.at("complete").get<bool>();
  if (what == "worker") ++workers_lost;
  if (what == "quarantined")
    quarantined[event.at("kernel").get<std::string>()].insert(event.at("item").get<std::uint64_t>());
  if (what == "start") started_[event.at("item").get<std::uint64_t>()] = event.at("case");
  if (what == "verdict") take_verdict(event);
  if (what == "finding") {
    Finding f;
    f.signature = event.at("signature").get<std::string>();
    f.kernel = event.at("kernel").get<std::string>();
    f.item = event.at("item").get<std::uint64_t>();
    f.source = event.at("source").get<std::string>();
    f.first_number = event.value("number", std::uint64_t{0});
    f.first_file = event.value("file", "");
    f.detectors = event.value("detectors", "");
    f.schedule = event.value("schedule", "");
    f.count = 1;
    f.original = case_of(last_case_);
    f.best = {.c = f.original, .evaluation = evaluation_from_json(last_verdict_.at("evaluation"))};
    f.diagnosis = f.best.evaluation.verdict.diagnosis;
    if (event.contains("mismatch")) f.set_mismatch(mismatch_from_json(event.at("mismatch")));
    findings.push_back(std::move(f));
  }
  if (what != "confirmed" && what != "smaller" && what != "shrunk") return;
  Finding* f = find(event.at("signature").get<std::string>());
  if (f == nullptr) throw std::invalid_argument("an event about a finding that was not made");
  if (what == "confirmed") {
    f->confirmed = true;
    f->same = event.at("same").get<int>();
    f->runs = event.at("runs").get<int>();
    if (event.contains("mismatch")) f->set_mismatch(mismatch_from_json(event.at("mismatch")));
  }
  if (what != "confirmed") {
    f->best.evaluations = event.at("evaluations").get<std::size_t>();
    f->best.steps = event.at("steps").get<std::size_t>();
  }
  if (what == "smaller") {
    f->best.c = case_of(event.at("case"));
    f->best.evaluation = evaluation_from_json(event.at("evaluation"));
    f->shrunk = true;
  }
  if (what == "shrunk") {
    f->done = true;
    f->best.minimal = event.at("minimal").get<bool>();
    f->shrunk = f->shrunk || f->best.minimal;
  }
}

Json Summary::json(const std::string& folder) const {
  Json list = Json::array();
  for (const Finding& f : findings) {
    const oracle::Verdict verdict = f.verdict();
    Json entry = {{"signature", f.signature},
                  {"kernel", f.kernel},
                  {"kind", oracle::name(verdict.kind)},
                  {"diagnosis", f.diagnosis},
                  {"case", f.file()},
                  {"reproduce", reproduction(f, folder, options.value("worker", ""))},
                  {"detail", verdict.detail},
                  {"source", f.source}};
    if (f.first_file.empty())
      entry["first_number"] = f.first_number;
    else
      entry["first_file"] = f.first_file;
    entry.update({{"count", f.count},
                  {"repeats", {{"same", f.same}, {"runs", f.runs}}},
                  {"shrunk", f.shrunk},
                  {"minimal", f.best.minimal},
                  {"evaluations", f.best.evaluations}});
    list.push_back(std::move(entry));
  }
  Json by_kernel = Json::object();
  for (const auto& [name, kernel] : kernels) {
    by_kernel[name] = {{"cases", kernel.cases},
                       {"tested", tested(kernel.cases, kernel.verdicts)},
                       {"verdicts", counts_json(kernel.verdicts)},
                       {"cells", kernel.cells.json()},
                       {"coverage", kernel.coverage.json()}};
    if (kernel.branches.total() != 0) by_kernel[name]["branches"] = kernel.branches.json();
  }
  const auto [covered, reachable] = pairs();
  const auto [executed, there] = branches();
  return {{"schema", record_schema},
          {"kernels", options.at("kernels")},
          {"device", options.at("device")},
          {"arch", options.at("arch")},
          {"seed", options.at("seed")},
          {"shard", options.at("shard")},
          {"complete", complete},
          {"cases", cases},
          {"tested", tested()},
          {"verdicts", counts_json(verdicts)},
          {"excused", counts_json(excused)},
          {"quarantined",
           std::accumulate(quarantined.begin(), quarantined.end(), std::size_t{0},
                           [](std::size_t sum, const auto& of) { return sum + of.second.size(); })},
          {"seconds", seconds},
          {"workers_lost", workers_lost},
          {"pairs", {{"covered", covered}, {"reachable", reachable}}},
          {"branches", {{"executed", executed}, {"total", there}}},
          {"findings", std::move(list)},
          {"by_kernel", std::move(by_kernel)}};
}

Json Summary::failure_file(const Finding& f, const std::string& folder) const {
  Json found = {{"seed", options.at("seed")}, {"source", f.source}};
  if (f.first_file.empty())
    found["number"] = f.first_number;
  else
    found["file"] = f.first_file;
  const oracle::Verdict verdict = f.verdict();
  Json json = {{"schema", record_schema},
               {"signature", f.signature},
               {"kernel", f.kernel},
               {"device", options.at("device")},
               {"arch", options.at("arch")},
               {"diagnosis", f.diagnosis},
               {"reproduce", reproduction(f, folder, options.value("worker", ""))},
               {"found", std::move(found)},
               {"repeats", {{"same", f.same}, {"runs", f.runs}}},
               {"original", to_json(f.original)},
               {"minimised", to_json(f.best.c)},
               {"verdict", to_json(verdict)},
               {"output_digest", f.best.evaluation.output_digest}};
  if (const std::string worker = options.value("worker", ""); !worker.empty()) json["worker"] = worker;
  if (!f.mismatch.empty())
    json["mismatch"] = {{"original", to_json(f.mismatch)}, {"minimised", to_json(verdict.mismatch)}};
  const auto chosen = [&](const char* key, const std::string& own, const char* usual) {
    const std::string text = own.empty() ? options.value(key, usual) : own;
    if (text != usual) json[key] = text;
  };
  chosen("detectors", f.detectors, "none");
  chosen("schedule", f.schedule, "plain");
  return json;
}

}  // namespace attest::fuzz
