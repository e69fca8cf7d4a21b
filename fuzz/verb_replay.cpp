// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <iostream>

#include "fuzz/exchange/worker_option.h"
#include "fuzz/selection.h"
#include "fuzz/verbs.h"
#include "fuzz/verdict_lines.h"

namespace attest::fuzz {
namespace {

struct Job {
  std::string word, kernel, expected_digest, expected_signature;
  cases::Case c;
  std::string detectors, schedule;
};

std::vector<Job> jobs_of(const Common& common, const ReplayOptions& options) {
  std::vector<Job> jobs;
  for (const std::string& kernel : options.kernels) select_kernel(kernel, common);
  for (const std::string& word : options.cases) {
    const Reproduction r =
        select_case(word, options.kernels.empty() ? only_worker_kernel(common) : options.kernels.front());
    if (options.original && !r.original)
      throw UsageError(fmt::format("{}: --original needs a failure file, this is a plain case", word));
    std::string detectors =
        select_detectors(options.detectors.empty() ? r.detectors : options.detectors, common);
    if (options.fidelity)
      detectors = select_detectors(detectors == "none"  ? "fidelity"
                                   : detectors == "all" ? detectors
                                                        : detectors + ",fidelity",
                                   common);
    std::vector<std::string> kernels = options.kernels;
    if (kernels.empty()) kernels.push_back(kernel_of(r, common));
    for (const std::string& kernel : kernels) {
      if (options.kernels.empty()) select_kernel(kernel, common);
      const bool as_recorded = kernel == r.kernel && !options.original;
      jobs.push_back(
          {.word = word,
           .kernel = kernel,
           .expected_digest = as_recorded ? r.output_digest : "",
           .expected_signature = as_recorded ? r.signature : "",
           .c = options.original ? *r.original : r.c,
           .detectors = detectors,
           .schedule = select_schedule(options.schedule.empty() ? r.schedule : options.schedule, common)});
    }
  }
  return jobs;
}

void print_observed(const device::Observations& seen, bool ledger) {
  for (const auto& h : seen.hazards) fmt::print("  {:<11} {}\n", h.hard ? "hazard" : "advisory", h.line);
  if (seen.clipped_loads + seen.clipped_stores + seen.clipped_atomics > 0)
    fmt::print("  clipped     {} loads, {} stores, {} atomics of single lanes, by their buffer descriptors\n",
               seen.clipped_loads, seen.clipped_stores, seen.clipped_atomics);
  if (!ledger) return;
  std::uint64_t all = 0, exact = 0;
  for (const auto& row : seen.ledger) {
    all += row.count;
    if (row.exactness == "exact") exact += row.count;
  }
  fmt::print("  fidelity    {} of {} wave instructions are exact\n", exact, all);
  for (const auto& row : seen.ledger) {
    fmt::print("  {:>14}  {:<28} {}", row.count, row.op, row.exactness);
    if (row.ulp != 0) fmt::print(" within {:g} ulp", row.ulp);
    if (!row.reason.empty()) fmt::print(": {}", row.reason);
    fmt::print("\n");
  }
}

void print_for_people(const Job& job, const Evaluation& e, const std::string& signature, bool ledger,
                      const std::string& worker) {
  const auto& v = e.verdict;
  fmt::print("{}  {}  {}\n", oracle::name(v.kind), job.kernel, job.word);
  fmt::print("  case        {}\n", cases::canonical_json(job.c));
  print_verdict(v);
  if (e.wave_instructions > 0)
    fmt::print("  cost        {} wave instructions, {:.2f} ms\n", e.wave_instructions, e.run_seconds * 1e3);
  print_observed(e.observed, ledger);
  if (!job.expected_signature.empty()) {
    if (signature != job.expected_signature)
      fmt::print("  recorded    DIFFERENT: the file says {}\n", job.expected_signature);
    else if (e.output_digest != job.expected_digest)
      fmt::print("  recorded    same failure, other bits: output digest {} (file: {})\n", e.output_digest,
                 job.expected_digest);
    else
      fmt::print("  recorded    reproduced bit for bit (output digest {})\n",
                 e.output_digest.empty() ? "none" : e.output_digest);
  }
  fmt::print("  reproduce   attest replay {} --kernel {}{}{}\n", job.word, job.kernel,
             exchange::worker_option(worker),
             (job.detectors == "none" ? "" : " --detect " + job.detectors) +
                 (job.schedule == "plain" ? "" : " --schedule " + job.schedule));
}

}  // namespace

int verb_replay(const Common& common, const ReplayOptions& options) {
  const std::vector<Job> jobs = jobs_of(common, options);
  Pool pool(pool_options(common, 1, options.deadline_seconds));
  Json results = Json::array();
  std::size_t asked = 0, tested = 0;
  bool failed = false, harness = false;
  pool.run(
      [&]() -> std::optional<Pool::Task> {
        if (asked == jobs.size()) return std::nullopt;
        const Job& job = jobs[asked++];
        return Pool::Task{job.kernel, job.c, job.detectors, job.schedule};
      },
      [&](std::size_t index, const Evaluation& e) {
        const Job& job = jobs[index];
        const std::string signature = signature_of(job.kernel, job.c, e.verdict);
        if (e.verdict.kind == oracle::VerdictKind::harness_error)
          harness = true;
        else if (is_finding(e.verdict.kind))
          failed = true;
        if (is_finding(e.verdict.kind) || e.verdict.kind == oracle::VerdictKind::pass) ++tested;
        if (common.json) {
          Json json = {{"word", job.word},
                       {"kernel", job.kernel},
                       {"id", cases::case_id(job.c)},
                       {"case", to_json(job.c)},
                       {"evaluation", to_json(e)}};
          if (!signature.empty()) json["signature"] = signature;
          if (!job.expected_signature.empty())
            json["reproduced"] =
                signature == job.expected_signature && e.output_digest == job.expected_digest;
          results.push_back(std::move(json));
        } else {
          print_for_people(job, e, signature, options.fidelity, common.worker);
        }
        return true;
      });
  if (common.json) std::cout << Json{{"schema", record_schema}, {"results", results}}.dump(2) << "\n";
  if (failed) return exit_verdict;
  if (harness) return exit_harness;
  return tested == 0 ? exit_nothing_tested : exit_ok;
}

}  // namespace attest::fuzz
