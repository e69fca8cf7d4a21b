// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>

#include "fuzz/campaign.h"
#include "fuzz/selection.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {
namespace {

void print_for_people(const Summary& summary, const std::string& folder) {
  std::vector<std::string> counts;
  for (const auto& [kind, count] : summary.verdicts) counts.push_back(fmt::format("{} {}", count, kind));
  fmt::print("{} cases in {:.1f} s: {}\n", summary.cases, summary.seconds,
             counts.empty() ? "none run" : fmt::format("{}", fmt::join(counts, ", ")));
  for (const Finding& f : summary.findings) {
    fmt::print("\n{}  {}\n", f.kernel, oracle::name(f.verdict.kind));
    fmt::print("  diagnosis   {}\n", f.diagnosis);
    fmt::print("  detail      {}\n", f.verdict.detail);
    fmt::print("  first seen  case {}, {} case{} in all\n", f.first_number, f.count, f.count == 1 ? "" : "s");
    fmt::print("  {}    {}\n", f.shrunk ? "smallest" : "as found", cases::canonical_json(f.minimised));
    fmt::print("  reproduce   {}\n", f.reproduce);
  }
  fmt::print("\nrun folder {}\n", folder);
}

int exit_code_of(const Summary& summary) {
  bool harness = false;
  for (const Finding& f : summary.findings) {
    if (f.verdict.kind != oracle::VerdictKind::harness_error) return exit_verdict;
    harness = true;
  }
  if (harness) return exit_harness;
  return summary.tested() == 0 ? exit_nothing_tested : exit_ok;
}

}  // namespace

int verb_fuzz(const Common& common, const FuzzOptions& options) {
  CampaignOptions campaign;
  for (const std::string& name : options.kernels) {
    if (name != "aiter") {
      campaign.kernels.push_back(name);
      continue;
    }
    for (std::string& kernel : kernels_of_contract(name, common))
      campaign.kernels.push_back(std::move(kernel));
  }
  if (!options.op.empty())
    for (std::string& name : kernels_of_op(options.op, common)) campaign.kernels.push_back(std::move(name));
  if (campaign.kernels.empty())
    throw UsageError("say what to test: --kernel NAME (attest kernels) or --op OP");
  for (const std::string& name : campaign.kernels) select_kernel(name, common);
  campaign.device = common.device;
  campaign.arch = common.arch;
  campaign.seed = options.seed;
  campaign.cases = options.cases;
  if (options.seconds) campaign.seconds = std::chrono::seconds(*options.seconds);
  campaign.shrink_budget = options.shrink_budget;
  campaign.max_shrunk = options.max_shrunk;
  campaign.stop_on_finding = options.stop_on_finding;

  Pool pool(pool_options(common, options.jobs, options.deadline_seconds));
  RunFolder folder(options.out.empty() ? next_run_path() : options.out);
  Progress progress(common.quiet);
  const Summary summary = run_campaign(campaign, pool, folder, progress);

  if (common.json)
    std::cout << to_json(summary, campaign).dump(2) << "\n";
  else
    print_for_people(summary, folder.path());
  if (summary.tested() == 0)
    fmt::print(stderr, "attest: nothing was tested: every case was unsupported, mistrusted or lost\n");
  return exit_code_of(summary);
}

}  // namespace attest::fuzz
