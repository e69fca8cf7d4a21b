// SPDX-License-Identifier: MIT
#include "fuzz/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "device/kernel.h"
#include "fuzz/case_files.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {
namespace {

struct Named {
  Outcome outcome;
  const char* name;
  int exit_code;
};
constexpr std::array<Named, 9> outcomes = {{
    {Outcome::no_device, "no device", exit_nothing_tested},
    {Outcome::no_test, "no test", exit_no_test},
    {Outcome::all_skipped, "all skipped", exit_all_skipped},
    {Outcome::new_failure, "new failure", exit_verdict},
    {Outcome::unexpected_pass, "unexpected pass", exit_verdict},
    {Outcome::harness_error, "harness error", exit_harness},
    {Outcome::missing_cell, "missing promised cell", exit_missing_cell},
    {Outcome::ledger_fault, "ledger fault", exit_ledger},
    {Outcome::good, "all as expected", exit_ok},
}};

std::string without_fault(const std::string& kernel) {
  return kernel.substr(0, kernel.find('+'));
}

bool here(const std::string& kernel, const std::string& arch) {
  const device::Kernel* k = device::find_kernel(kernel);
  return k != nullptr && k->arch() == arch;
}

/// Only the simulator can choose an order of events, or watch for hazards.
bool needs_simulator(const Reproduction& r) {
  return r.detectors != "none" || r.schedule != "plain";
}

void plan_corpus(GatePlan& plan, const std::string& folder, const std::string& arch,
                 const std::string& device, const std::vector<Cell>& cells) {
  if (!std::filesystem::exists(folder)) return;
  const auto add = [&](const std::string& file, const std::string& kernel, const Reproduction& r,
                       const std::string& expected) {
    const auto skip = [&](const char* why) {
      plan.skipped.push_back({.group = kernel, .what = file, .result = Check::Result::skipped, .why = why});
    };
    if (!here(kernel, arch)) return skip("the kernel is not in this build");
    if (device != "sim" && needs_simulator(r)) return skip("shows on the simulator only");
    plan.files.push_back({.source = "corpus",
                          .file = file,
                          .kernel = kernel,
                          .c = r.c,
                          .detectors = own_choice(r.detectors),
                          .schedule = own_choice(r.schedule)});
    plan.expected.push_back(expected);
    plan.entries.emplace_back();
  };
  for (const std::string& file : json_files({folder})) {
    const Reproduction r = read_reproduction(file);
    if (r.kernel.empty()) {
      for (const Cell& cell : cells)
        if (cell.op == cases::op_name(r.c.problem)) add(file, cell.kernel, r, "");
      continue;
    }
    add(file, r.kernel, r, r.signature);
    if (without_fault(r.kernel) != r.kernel) add(file, without_fault(r.kernel), r, "");
  }
}

void plan_probes(GatePlan& plan, const std::string& cases_folder, const std::string& arch,
                 const std::string& device) {
  for (const KnownFailure& entry : plan.ledger.entries()) {
    if (entry.quarantined) continue;
    const std::string file = cases_folder + "/" + entry.probe;
    const Reproduction r = read_reproduction(file);
    if (!here(r.kernel, arch) || !concerns(entry, r.kernel, arch, device)) {
      plan.skipped.push_back({.group = "ledger",
                              .what = entry.id,
                              .result = Check::Result::skipped,
                              .why = fmt::format("its kernel {} is not in this build, or not on {} {}",
                                                 r.kernel, arch, device)});
      continue;
    }
    plan.files.push_back({.source = "probe",
                          .file = file,
                          .kernel = r.kernel,
                          .c = r.c,
                          .detectors = own_choice(r.detectors),
                          .schedule = own_choice(r.schedule)});
    plan.expected.push_back(r.signature);
    plan.entries.push_back(entry.id);
  }
}

/// What a verdict says in a sentence.
std::string said(const Json& verdict) {
  const Json& v = verdict.at("evaluation").at("verdict");
  const auto kind = v.at("kind").get<std::string>();
  const auto diagnosis = v.at("diagnosis").get<std::string>();
  return diagnosis.empty() ? kind : kind + ": " + diagnosis;
}

double seconds_of(const Json& verdict) {
  const Json& e = verdict.at("evaluation");
  return e.at("materialise_seconds").get<double>() + e.at("run_seconds").get<double>() +
         e.at("judge_seconds").get<double>();
}

/// The file's verdict against its expectation.
Check check_file(const GatePlan& plan, std::size_t which, const Json& verdict) {
  const FileCase& f = plan.files[which];
  const bool probe = !plan.entries[which].empty();
  Check check{.group = probe ? "ledger" : f.kernel,
              .what = probe ? plan.entries[which] : f.file,
              .why = {},
              .seconds = seconds_of(verdict)};
  const auto kind = verdict.at("evaluation").at("verdict").at("kind").get<std::string>();
  const auto signature = verdict.value("signature", "");
  const auto fails = [&](Outcome outcome, const std::string& why) {
    check.result = Check::Result::failed;
    check.outcome = outcome;
    check.why = fmt::format("{}\nreproduce: attest replay {} --kernel {}", why, f.file, f.kernel);
  };
  const std::string& expected = plan.expected[which];
  if (kind == "harness_error") {
    fails(Outcome::harness_error, verdict.at("evaluation").at("verdict").at("detail").get<std::string>());
  } else if (expected.empty()) {
    if (kind == "unsupported") {
      check.result = Check::Result::skipped;
      check.why = verdict.at("evaluation").at("verdict").at("detail").get<std::string>();
    } else if (kind == "mistrusted") {
      fails(Outcome::new_failure, "expected to pass, and proves nothing: " + said(verdict));
    } else if (kind != "pass" && !verdict.contains("excuse")) {
      fails(Outcome::new_failure, fmt::format("expected to pass, {} ({})", said(verdict), signature));
    }
  } else if (kind == "pass" || kind == "mistrusted" || kind == "unsupported") {
    fails(Outcome::unexpected_pass,
          fmt::format("expected to fail with {}, {}{}", expected, said(verdict),
                      probe ? "; the ledger entry is stale: remove it, keep the case in the corpus" : ""));
  } else if (signature != expected && !verdict.contains("excuse")) {
    fails(Outcome::new_failure, fmt::format("expected to fail with {}, fails with {}", expected, signature));
  }
  return check;
}

void conclude(GateReport& report) {
  report.outcome = Outcome::good;
  for (const Check& check : report.checks)
    if (check.result == Check::Result::failed) report.outcome = std::min(report.outcome, check.outcome);
}

void check_ledger(GateReport& report, const Ledger& ledger) {
  for (const KnownFailure& entry : ledger.entries())
    if (const auto fault = fault_of(entry, today()))
      report.checks.push_back(
          {.group = "ledger",
           .what = entry.id,
           .result = Check::Result::failed,
           .outcome = Outcome::ledger_fault,
           .why = fmt::format("entry {} {}: look at it again, then renew or remove it", entry.id, *fault)});
}

void check_cells(GateReport& report) {
  for (const CellResult& c : report.cells) {
    Check check{.group = "support",
                .what = fmt::format("{} on {} {}", c.cell.kernel, c.cell.arch, c.cell.device),
                .why = {}};
    if (!c.built)
      check.why = "promised, and not in this build";
    else if (c.tested < c.cell.least_tested)
      check.why = fmt::format("promised, and only {} of {} cases were really tested; {} are asked for",
                              c.tested, c.cases, c.cell.least_tested);
    if (!check.why.empty()) {
      check.result = Check::Result::failed;
      check.outcome = Outcome::missing_cell;
    }
    report.checks.push_back(std::move(check));
  }
}

GateReport empty_report(const CampaignOptions& options) {
  GateReport report;
  report.device = options.device;
  report.arch = options.arch;
  report.seed = options.seed;
  return report;
}

std::vector<std::string> unpromised(const GatePlan& plan, const std::string& arch,
                                    const std::string& device) {
  std::vector<std::string> remarks;
  const auto cells = plan.support.of(arch, device);
  for (const device::Kernel* k : device::kernels())
    if (k->arch() == arch && k->fault().empty() && k->contract() == "attest" &&
        std::none_of(cells.begin(), cells.end(), [&](const Cell& c) { return c.kernel == k->name(); }))
      remarks.push_back(fmt::format("{} is built and not promised: the gate does not test it", k->name()));
  return remarks;
}

}  // namespace

const char* name(Outcome outcome) {
  return std::find_if(outcomes.begin(), outcomes.end(), [&](const Named& n) { return n.outcome == outcome; })
      ->name;
}

int exit_code(Outcome outcome) {
  return std::find_if(outcomes.begin(), outcomes.end(), [&](const Named& n) { return n.outcome == outcome; })
      ->exit_code;
}

std::uint64_t seed_of_commit(std::string_view commit) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : commit) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

GatePlan plan_gate(const std::string& cases, const std::string& arch, const std::string& device) {
  GatePlan plan;
  plan.support = Support::read(cases + "/support.json");
  if (std::filesystem::exists(cases + "/known.json")) plan.ledger = Ledger::read(cases + "/known.json");
  const auto cells = plan.support.of(arch, device);
  plan_corpus(plan, cases + "/corpus", arch, device, cells);
  plan_corpus(plan, cases + "/seeds", arch, device, cells);
  plan_corpus(plan, cases + "/findings", arch, device, cells);
  plan_probes(plan, cases, arch, device);
  return plan;
}

GateReport run_gate(const GatePlan& plan, CampaignOptions options, std::uint64_t fresh_cases, Pool& pool,
                    RunFolder& folder, Progress& progress) {
  GateReport report = empty_report(options);
  report.folder = folder.path();
  report.checks = plan.skipped;
  report.remarks = unpromised(plan, options.arch, options.device);
  options.files = plan.files;
  options.cases = fresh_cases != 0 ? fresh_cases : plan.support.fresh_cases;
  options.kernels.clear();
  for (const Cell& cell : plan.support.of(options.arch, options.device)) {
    report.cells.push_back({.cell = cell, .built = here(cell.kernel, options.arch)});
    if (report.cells.back().built) options.kernels.push_back(cell.kernel);
  }

  std::map<std::pair<std::string, std::string>, std::size_t> file_number;
  for (std::size_t i = 0; i < plan.files.size(); ++i)
    file_number[{plan.files[i].source + " " + plan.files[i].file, plan.files[i].kernel}] = i;
  options.excuse = [&](const std::string& source, const std::string& file, const std::string& kernel,
                       const cases::Case& c, const std::string& signature) -> std::optional<std::string> {
    const auto it = file_number.find({source + " " + file, kernel});
    if (it != file_number.end() && plan.expected[it->second] == signature) return "expected";
    if (const KnownFailure* known = plan.ledger.tolerates(kernel, options.arch, options.device, c, signature))
      return fmt::format("known: {} ({})", known->id, known->issue);
    return std::nullopt;
  };
  options.quarantine = [&](const std::string& kernel, const cases::Case& c) -> std::optional<std::string> {
    if (const KnownFailure* known = plan.ledger.quarantines(kernel, options.arch, options.device, c))
      return known->id;
    return std::nullopt;
  };
  std::map<std::string, std::uint64_t> known;
  options.observe = [&](const Json& verdict) {
    const auto kernel = verdict.at("kernel").get<std::string>();
    if (verdict.at("source") != "fresh") {
      const auto at = file_number.at(
          {verdict.at("source").get<std::string>() + " " + verdict.at("file").get<std::string>(), kernel});
      report.checks.push_back(check_file(plan, at, verdict));
    } else if (verdict.contains("excuse")) {
      ++known[kernel];
    }
  };
  const Summary summary = run_campaign(options, pool, folder, progress);
  report.seconds = summary.seconds;

  std::map<std::string, std::string> news;
  std::set<std::string> broken;
  for (const Finding& f : summary.findings) {
    if (f.source != "fresh") continue;
    const oracle::Verdict verdict = f.verdict();
    news[f.kernel] +=
        fmt::format("{}{}, {} of {} cases: {}\nreproduce: {}", news[f.kernel].empty() ? "" : "\n",
                    f.signature, f.count, options.cases, verdict.detail, reproduction(f, folder.path()));
    if (verdict.kind == oracle::VerdictKind::harness_error) broken.insert(f.kernel);
  }
  for (CellResult& c : report.cells) {
    if (!c.built) continue;
    const std::string& kernel = c.cell.kernel;
    if (const auto it = summary.kernels.find(kernel); it != summary.kernels.end()) {
      c.cases = it->second.cases;
      c.tested = Summary::tested(it->second.cases, it->second.verdicts);
      c.pairs_covered = it->second.coverage.covered();
      c.pairs_reachable = it->second.coverage.reachable();
    }
    for (const Finding& f : summary.findings)
      if (f.kernel == kernel) c.failed += f.count;
    c.known = known[kernel];
    if (const auto it = summary.quarantined.find(kernel); it != summary.quarantined.end())
      c.quarantined = it->second.size();
    Check check{
        .group = kernel,
        .what = fmt::format("{} fresh cases of seed {}", options.cases, options.seed),
        .why = {},
        .seconds = summary.seconds / static_cast<double>(std::max<std::size_t>(options.kernels.size(), 1))};
    if (const auto it = news.find(kernel); it != news.end()) {
      check.result = Check::Result::failed;
      check.outcome = broken.count(kernel) != 0 ? Outcome::harness_error : Outcome::new_failure;
      check.why = it->second;
    }
    report.checks.push_back(std::move(check));
  }
  check_cells(report);
  check_ledger(report, plan.ledger);
  if (!summary.complete)
    report.checks.push_back({.group = "gate",
                             .what = "run to the end",
                             .result = Check::Result::failed,
                             .outcome = Outcome::harness_error,
                             .why = "interrupted"});
  const bool anything = !options.files.empty() || !options.kernels.empty();
  if (!anything && report.cells.empty())
    report.checks.push_back(
        {.group = "gate",
         .what = "something to test",
         .result = Check::Result::failed,
         .outcome = Outcome::no_test,
         .why = fmt::format("nothing is promised for {} {}, and no corpus file runs there", options.arch,
                            options.device)});
  if (anything && summary.tested() == 0)
    report.checks.push_back({.group = "gate",
                             .what = "something really tested",
                             .result = Check::Result::failed,
                             .outcome = Outcome::all_skipped,
                             .why = fmt::format("not one of {} cases was really tested: all unsupported, "
                                                "mistrusted or quarantined",
                                                summary.cases)});
  conclude(report);
  return report;
}

GateReport gate_without_device(const GatePlan& plan, const CampaignOptions& options, const std::string& why) {
  GateReport report = empty_report(options);
  report.checks = plan.skipped;
  for (const Cell& cell : plan.support.of(options.arch, options.device))
    report.cells.push_back({.cell = cell, .built = here(cell.kernel, options.arch)});
  report.checks.push_back({.group = "gate",
                           .what = "a device",
                           .result = Check::Result::failed,
                           .outcome = Outcome::no_device,
                           .why = why});
  check_ledger(report, plan.ledger);
  conclude(report);
  return report;
}

}  // namespace attest::fuzz
