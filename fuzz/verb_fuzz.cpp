// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "fuzz/campaign.h"
#include "fuzz/case_files.h"
#include "fuzz/interrupt.h"
#include "fuzz/ledger.h"
#include "fuzz/selection.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {
namespace {

std::vector<std::string> kernels_of(const Common& common, const FuzzOptions& options) {
  std::vector<std::string> kernels;
  for (const std::string& name : options.kernels) {
    std::vector<std::string> meant = kernels_of_word(name, common);
    if (meant.empty()) meant.push_back(name);
    for (std::string& kernel : meant) kernels.push_back(std::move(kernel));
  }
  if (!options.op.empty())
    for (std::string& name : kernels_of_op(options.op, common)) kernels.push_back(std::move(name));
  if (kernels.empty() && !common.worker.empty())
    for (const device::Kernel* k : device::kernels())
      if (k->arch() == common.arch) kernels.push_back(k->name());
  if (kernels.empty()) throw UsageError("say what to test: --kernel NAME (attest kernels) or --op OP");
  for (const std::string& name : kernels) select_kernel(name, common);
  return kernels;
}

/// Known failures are no findings, quarantined cases are not launched.
void go_by_ledger(CampaignOptions& campaign) {
  if (campaign.known.empty()) return;
  const auto ledger = std::make_shared<const Ledger>(Ledger::read(campaign.known));
  for (const KnownFailure& entry : ledger->entries())
    if (const auto fault = fault_of(entry, today()))
      fmt::print(stderr, "attest: {}: entry {} {}; it still counts here, the gate refuses it\n",
                 campaign.known, entry.id, *fault);
  campaign.excuse = [ledger, arch = campaign.arch, device = campaign.device](
                        const std::string&, const std::string&, const std::string& kernel,
                        const cases::Case& c, const std::string& signature) -> std::optional<std::string> {
    const KnownFailure* known = ledger->tolerates(kernel, arch, device, c, signature);
    if (known == nullptr) return std::nullopt;
    return fmt::format("known: {} ({})", known->id, known->issue);
  };
  campaign.quarantine = [ledger, arch = campaign.arch, device = campaign.device](
                            const std::string& kernel, const cases::Case& c) -> std::optional<std::string> {
    const KnownFailure* known = ledger->quarantines(kernel, arch, device, c);
    return known == nullptr ? std::nullopt : std::optional<std::string>(known->id);
  };
}

CampaignOptions new_campaign(const Common& common, const FuzzOptions& options) {
  CampaignOptions campaign;
  campaign.kernels = kernels_of(common, options);
  campaign.device = common.device;
  campaign.worker = common.worker;
  campaign.arch = common.arch;
  campaign.seed = options.seed;
  campaign.cases = options.cases.value_or(options.seconds ? unlimited : 1000);
  if (options.seconds) campaign.seconds = std::chrono::seconds(*options.seconds);
  campaign.shrink_seconds = std::chrono::seconds(options.shrink_seconds);
  campaign.shrink_budget = options.shrink_budget;
  campaign.max_shrunk = options.max_shrunk;
  campaign.stop_on_finding = options.stop_on_finding;
  campaign.detectors = select_detectors(options.detectors, common);
  campaign.schedule = select_schedule(options.schedule, common);
  campaign.deadline_seconds = options.deadline_seconds;
  campaign.memory_mib = options.memory_mib;
  campaign.files = file_cases("corpus", options.corpus, campaign.kernels);
  for (FileCase& c : file_cases("regression", options.regressions, campaign.kernels))
    campaign.files.push_back(std::move(c));
  campaign.known = options.known;
  go_by_ledger(campaign);
  std::string from;
  campaign.shard = select_shard(options.shard, from);
  if (!from.empty() && !common.quiet)
    fmt::print(stderr, "attest: shard {}/{}, by {}\n", campaign.shard.index, campaign.shard.count, from);
  if (campaign.shard.count > 1 && campaign.stop_on_finding)
    throw UsageError("--stop-on-finding in a shard would depend on what the others find; leave one out");
  if (options.steer == "branches" && (common.device != "sim" || !common.worker.empty()))
    throw UsageError("--steer branches: only the simulator sees a kernel's branches, use --device sim");
  campaign.branch_steering =
      options.steer == "branches" ||
      (options.steer.empty() && common.device == "sim" && common.worker.empty() && campaign.shard.count == 1);
  return campaign;
}

/// The files that the run in `folder` recorded, read again.
std::vector<FileCase> files_again(const Json& recorded) {
  std::vector<FileCase> files;
  for (const Json& entry : recorded) {
    const Reproduction r = read_reproduction(entry.at("file").get<std::string>());
    FileCase f{.source = entry.at("source").get<std::string>(),
               .file = entry.at("file").get<std::string>(),
               .kernel = entry.at("kernel").get<std::string>(),
               .c = r.c,
               .detectors = own_choice(r.detectors),
               .schedule = own_choice(r.schedule)};
    if (cases::case_id(f.c) != entry.at("id").get<std::string>())
      throw UsageError(
          fmt::format("{}: holds another case than when the run began; start a new run", f.file));
    files.push_back(std::move(f));
  }
  return files;
}

void print_cells(const Summary& summary) {
  fmt::print("\n{:<58} {:>6} {:>8} {:>8} {:>7} {:>8} {:>9}\n", "cells of", "run", "refused", "failing",
             "cases", "seconds", "findings");
  for (const auto& [name, kernel] : summary.kernels) {
    const auto findings = std::count_if(summary.findings.begin(), summary.findings.end(),
                                        [&](const Finding& f) { return f.kernel == name; });
    const Cells::Counts counts = kernel.cells.counts();
    fmt::print("{:<58} {:>6} {:>8} {:>8} {:>7} {:>8.1f} {:>9}\n", name, counts.run, counts.refused,
               counts.failing, kernel.cases, kernel.cells.seconds(), findings);
    for (const auto& [why, count] : kernel.cells.refusals())
      fmt::print("    {} unsupported: {}\n", count, why);
  }
}

PoolOptions workers(const Common& common, const FuzzOptions& options, const CampaignOptions& campaign) {
  PoolOptions pool = pool_options(common, options.jobs, campaign.deadline_seconds, campaign.memory_mib);
  pool.detectors = campaign.detectors;
  pool.schedule = campaign.schedule;
  return pool;
}

int exit_code_of(const Summary& summary) {
  bool harness = false;
  for (const Finding& f : summary.findings) {
    if (f.verdict().kind != oracle::VerdictKind::harness_error) return exit_verdict;
    harness = true;
  }
  if (harness || !summary.complete) return exit_harness;
  return summary.tested() == 0 ? exit_nothing_tested : exit_ok;
}

}  // namespace

int say_summary(const Common& common, const Summary& summary, const std::string& folder) {
  if (common.json) {
    std::cout << summary.json(folder).dump(2) << "\n";
  } else {
    std::vector<std::string> counts;
    for (const auto& [kind, count] : summary.verdicts) counts.push_back(fmt::format("{} {}", count, kind));
    fmt::print("{} cases in {:.1f} s: {}\n", summary.cases, summary.seconds,
               counts.empty() ? "none run" : fmt::format("{}", fmt::join(counts, ", ")));
    for (const Finding& f : summary.findings) {
      const oracle::Verdict verdict = f.verdict();
      fmt::print("\n{}  {}\n", f.kernel, oracle::name(verdict.kind));
      fmt::print("  diagnosis   {}\n", f.diagnosis);
      fmt::print("  detail      {}\n", verdict.detail);
      fmt::print("  first seen  {}, {} case{} in all\n", f.first_seen(), f.count, f.count == 1 ? "" : "s");
      fmt::print("  {}    {}\n", f.shrunk ? "smallest" : "as found", cases::canonical_json(f.best.c));
      fmt::print("  reproduce   {}\n", reproduction(f, folder, summary.options.value("worker", "")));
    }
    print_cells(summary);
    const auto [covered, reachable] = summary.pairs();
    fmt::print("\ncoverage {} of {} pairs of strata", covered, reachable);
    if (const auto [executed, there] = summary.branches(); there != 0)
      fmt::print(", {} of {} sides of branches", executed, there);
    fmt::print("\n");
    if (summary.workers_lost > 0) fmt::print("workers lost {}\n", summary.workers_lost);
    fmt::print("run folder {}\n", folder);
  }
  if (!summary.complete)
    fmt::print(stderr, "attest: interrupted; attest fuzz --resume {} goes on\n", folder);
  else if (summary.tested() == 0)
    fmt::print(stderr, "attest: nothing was tested: every case was unsupported, mistrusted or lost\n");
  return exit_code_of(summary);
}

int verb_fuzz(const Common& common, const FuzzOptions& options) {
  if (options.resume.empty()) {
    const CampaignOptions campaign = new_campaign(common, options);
    Pool pool(workers(common, options, campaign));
    RunFolder folder(options.out.empty() ? next_run_path() : options.out);
    Progress progress(common.quiet);
    catch_interrupts();
    return say_summary(common, run_campaign(campaign, pool, folder, progress), folder.path());
  }
  Json files;
  CampaignOptions campaign = read_options(options.resume, files);
  Common as_recorded = common;
  as_recorded.device = campaign.device;
  as_recorded.arch = campaign.arch;
  use_worker(as_recorded, campaign.worker);
  campaign.files = files_again(files);
  go_by_ledger(campaign);
  for (const std::string& name : campaign.kernels) select_kernel(name, as_recorded);
  RunFolder folder(options.resume, RunFolder::Open::resume);
  Pool pool(workers(as_recorded, options, campaign));
  Progress progress(common.quiet);
  catch_interrupts();
  return say_summary(common, resume_campaign(campaign, pool, folder, progress), folder.path());
}

}  // namespace attest::fuzz
