// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "fuzz/gate.h"
#include "fuzz/gate_reports.h"
#include "fuzz/interrupt.h"
#include "fuzz/selection.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {
namespace {

std::string commit_of(const GateOptions& options) {
  if (!options.commit.empty()) return options.commit;
  for (const char* name : {"BUILDKITE_COMMIT", "GITHUB_SHA"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  std::string commit;
  if (std::FILE* git = ::popen("git rev-parse HEAD 2>/dev/null", "re")) {
    std::array<char, 128> line{};
    if (std::fgets(line.data(), line.size(), git) != nullptr) commit = line.data();
    ::pclose(git);
  }
  while (!commit.empty() && commit.back() == '\n') commit.pop_back();
  return commit;
}

void hand_over(const Common& common, const GateOptions& options, const GateReport& report) {
  if (!options.junit.empty()) write_whole_file(options.junit, junit_xml(report));
  if (!options.summary.empty()) write_whole_file(options.summary, markdown(report));
  if (const char* page = std::getenv("GITHUB_STEP_SUMMARY"); page != nullptr && options.summary.empty()) {
    std::ofstream file(page, std::ios::app);
    file << markdown(report);
    file.close();
    if (!file) throw UsageError(fmt::format("{}: cannot be written ($GITHUB_STEP_SUMMARY)", page));
  }
  if (!report.folder.empty()) write_whole_file(report.folder + "/gate.json", to_json(report).dump(2) + "\n");
  if (common.json)
    std::cout << to_json(report).dump(2) << "\n";
  else
    std::cout << markdown(report);
}

}  // namespace

int verb_gate(const Common& common, const GateOptions& options) {
  CampaignOptions campaign;
  campaign.device = common.device;
  campaign.arch = common.arch;
  campaign.deadline_seconds = options.deadline_seconds;
  campaign.memory_mib = options.memory_mib;
  campaign.shrink_budget = options.shrink_budget;
  const std::string commit = commit_of(options);
  if (commit.empty() && !options.seed)
    throw UsageError("no commit to derive the seed from: give --commit SHA or --seed N");
  campaign.seed = options.seed ? *options.seed : seed_of_commit(commit);
  const GatePlan plan = plan_gate(options.cases, common.arch, common.device);
  const PoolOptions workers =
      pool_options(common, options.jobs, options.deadline_seconds, options.memory_mib);

  GateReport report;
  try {
    Pool pool(workers);
    RunFolder folder(options.out.empty() ? next_run_path() : options.out);
    Progress progress(common.quiet);
    catch_interrupts();
    report = run_gate(plan, campaign, options.fresh_cases, pool, folder, progress);
  } catch (const PoolError& error) {
    if (error.exit_code != exit_nothing_tested) throw;
    report = gate_without_device(plan, campaign, error.what());
    fmt::print(stderr, "attest: {}\n", error.what());
  }
  report.commit = commit;
  hand_over(common, options, report);
  return exit_code(report.outcome);
}

}  // namespace attest::fuzz
