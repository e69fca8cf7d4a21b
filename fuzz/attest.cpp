// SPDX-License-Identifier: MIT
//
// The command line `attest`: declares options, hands them to a verb, turns what verbs throw into one line and
// an exit code. Unknown options are refused by name.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>

#include "cases/case.h"
#include "device/kernel.h"
#include "device/simulator/detect/detectors.h"
#include "device/simulator/detect/schedule.h"
#include "fuzz/allocation.h"
#include "fuzz/build_info.h"
#include "fuzz/pool.h"
#include "fuzz/run_folder.h"
#include "fuzz/selection.h"
#include "fuzz/usage_error.h"
#include "fuzz/verbs.h"
#include "fuzz/worker.h"

namespace {

using namespace attest::fuzz;

int fail(const std::string& message, int code) {
  fmt::print(stderr, "attest: {}\n", message);
  return code;
}

void add_aiter_option(CLI::App& verb, Common& common) {
  verb.add_option(
      "--aiter-hsa", common.aiter_hsa,
      "The hsa folder of an AITER checkout or wheel: adds its kernels as aiter/<object> [$ATTEST_AITER_HSA]");
}

void add_device_options(CLI::App& verb, Common& common) {
  verb.add_option("--device", common.device, "What executes the kernel: sim or hip")->capture_default_str();
  verb.add_option("--arch", common.arch, "Instruction set")->capture_default_str();
  add_aiter_option(verb, common);
}

void add_detect_option(CLI::App& verb, std::string& detectors, const std::string& otherwise) {
  verb.add_option("--detect", detectors,
                  fmt::format("What the simulator looks for: a list of {} [{}]",
                              attest::device::sim::detect::DetectorSet::known(), otherwise));
}

void add_schedule_option(CLI::App& verb, std::string& schedule, const std::string& otherwise) {
  verb.add_option("--schedule", schedule,
                  fmt::format("The simulator's order of events: {} [{}]",
                              attest::device::sim::detect::Schedule::known(), otherwise));
}

int run(int argc, char** argv) {
  Common common;
  common.self = std::filesystem::read_symlink("/proc/self/exe").string();

  CLI::App app{"attest: is this attention kernel right on every shape a serving engine can send it?"};
  app.set_version_flag("--version", [] { return build_info().dump(2); });
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 all as expected, 1 a kernel failed, 2 usage, 3 nothing was really tested, 4 attest "
      "failed.\n"
      "attest VERB --help shows the options of a verb.");

  FuzzOptions fuzz;
  CLI::App* fuzz_verb =
      app.add_subcommand("fuzz", "Test kernels on generated cases; shrink and record what fails");
  fuzz_verb->add_option(
      "--kernel", fuzz.kernels,
      "Kernel to test, as attest kernels names it; aiter: all of AITER's; aiter@sound: those, on the cases "
      "where they are known to be right (repeatable)");
  fuzz_verb->add_option("--op", fuzz.op, "Test every faultless kernel of this op");
  fuzz_verb
      ->add_option("--cases", fuzz.cases,
                   "Fresh cases per kernel [1000; with --seconds: until they are over]")
      ->check(CLI::PositiveNumber);
  fuzz_verb->add_option("--seconds", fuzz.seconds, "Stop, cleanly, after so long")
      ->check(CLI::PositiveNumber);
  fuzz_verb->add_option("--seed", fuzz.seed, "Case k of a campaign is a function of (seed, k)")
      ->capture_default_str();
  fuzz_verb->add_option("--jobs", fuzz.jobs, "Worker processes; 0 = one per core")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  fuzz_verb->add_option("--deadline", fuzz.deadline_seconds, "Seconds a case may take before it is a timeout")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  fuzz_verb->add_option("--shrink-budget", fuzz.shrink_budget, "Evaluations spent on making a finding small")
      ->capture_default_str();
  fuzz_verb->add_option("--max-shrunk", fuzz.max_shrunk, "Findings per kernel that are shrunk")
      ->capture_default_str();
  fuzz_verb
      ->add_option("--shrink-seconds", fuzz.shrink_seconds,
                   "With --seconds: how much longer shrinking may take; the best so far is kept")
      ->capture_default_str();
  fuzz_verb->add_flag("--stop-on-finding", fuzz.stop_on_finding, "Leave a kernel after its first finding");
  fuzz_verb
      ->add_option("--worker-memory", fuzz.memory_mib,
                   "MiB a worker may hold before it is killed: a crash verdict; 0 = any")
      ->capture_default_str();
  add_detect_option(*fuzz_verb, fuzz.detectors, "none");
  add_schedule_option(*fuzz_verb, fuzz.schedule, "plain");
  fuzz_verb->add_option("--corpus", fuzz.corpus, "Case files, or folders of them, to run first (repeatable)");
  fuzz_verb->add_option(
      "--regressions", fuzz.regressions,
      "Failure files, or folders of them, to run next: the last run's failures (repeatable)");
  fuzz_verb->add_option("--shard", fuzz.shard,
                        "INDEX/COUNT: do only this part, the index from 0 [by BUILDKITE_PARALLEL_JOB, "
                        "SLURM_ARRAY_TASK_ID, GTEST_SHARD_INDEX or TEST_SHARD_INDEX, else all]");
  fuzz_verb->add_option("--out", fuzz.out, "Run folder [attest-runs/<next number>]");
  CLI::Option* resume = fuzz_verb->add_option(
      "--resume", fuzz.resume,
      "Go on with the run in this folder, with its own options: nothing is lost or done again");
  fuzz_verb->add_flag("--json", common.json, "Print the summary as JSON on stdout");
  fuzz_verb->add_flag("--quiet", common.quiet, "No progress on stderr");
  add_device_options(*fuzz_verb, common);
  for (CLI::Option* other : fuzz_verb->get_options())
    if (other != resume && other->get_name() != "--help" && other->get_name() != "--jobs" &&
        other->get_name() != "--json" && other->get_name() != "--quiet" && other->get_name() != "--aiter-hsa")
      resume->excludes(other);

  MergeOptions merge;
  CLI::App* merge_verb = app.add_subcommand("merge", "Join the run folders of all shards of a campaign");
  merge_verb->add_option("folder", merge.folders, "Run folders, one per shard")->required();
  merge_verb->add_option("-o,--out", merge.out, "Folder for the joined run [attest-runs/<next number>]");
  merge_verb->add_flag("--json", common.json, "Print the summary as JSON on stdout");

  ReplayOptions replay;
  CLI::App* replay_verb = app.add_subcommand("replay", "Run case files, failure files or SEED:NUMBER again");
  replay_verb->add_option("case", replay.cases, "Case file, failure file, or SEED:NUMBER")->required();
  replay_verb->add_option("--kernel", replay.kernels,
                          "Kernel [the failure file's, else attest/<op>] (repeatable)");
  replay_verb->add_flag("--original", replay.original,
                        "Of a failure file: the case as found, not the minimised one");
  replay_verb->add_option("--deadline", replay.deadline_seconds, "Seconds a case may take")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  add_detect_option(*replay_verb, replay.detectors, "the failure file's, else none");
  add_schedule_option(*replay_verb, replay.schedule, "the failure file's, else plain");
  replay_verb->add_flag("--fidelity", replay.fidelity,
                        "Print what was executed and how exactly (chooses the detector fidelity too)");
  replay_verb->add_flag("--json", common.json, "Print the results as JSON on stdout");
  add_device_options(*replay_verb, common);

  ShrinkOptions shrink;
  CLI::App* shrink_verb = app.add_subcommand("shrink", "Make a failing case small, keeping its signature");
  shrink_verb->add_option("case", shrink.file, "Case file, failure file, or SEED:NUMBER")->required();
  shrink_verb->add_option("--kernel", shrink.kernel, "Kernel [the failure file's, else attest/<op>]");
  shrink_verb->add_option("--budget", shrink.budget, "Evaluations to spend")->capture_default_str();
  shrink_verb->add_option("--jobs", shrink.jobs, "Worker processes; 0 = one per core")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  add_detect_option(*shrink_verb, shrink.detectors, "the failure file's, else none");
  add_schedule_option(*shrink_verb, shrink.schedule, "the failure file's, else plain");
  shrink_verb->add_option("--out", shrink.out, "File for the minimised case [stdout]");
  shrink_verb->add_flag("--json", common.json, "Print the result as JSON");
  shrink_verb->add_flag("--quiet", common.quiet, "No progress on stderr");
  add_device_options(*shrink_verb, common);

  CLI::App* kernels_verb = app.add_subcommand("kernels", "List what can be tested");
  kernels_verb->add_flag("--json", common.json, "As JSON");
  add_aiter_option(*kernels_verb, common);
  CLI::App* devices_verb = app.add_subcommand("devices", "List what can execute kernels here, and why not");
  devices_verb->add_flag("--json", common.json, "As JSON");

  std::string worker_device;
  int worker_ordinal = 0;
  CLI::App* worker_verb = app.add_subcommand("worker", "Internal: serve evaluations on descriptor 3");
  worker_verb->group("");
  worker_verb->add_option("device", worker_device)->required();
  worker_verb->add_option("ordinal", worker_ordinal)->required();

  if (argc > 1 && argv[1][0] != '-') {
    const auto all = app.get_subcommands([](const CLI::App*) { return true; });
    if (std::none_of(all.begin(), all.end(),
                     [&](const CLI::App* verb) { return verb->get_name() == argv[1]; }))
      return fail(fmt::format("no verb '{}'; see attest --help", argv[1]), exit_usage);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    return fail(fmt::format("{}; see attest --help", error.what()), exit_usage);
  }

  // Kernels are found once, here and in every worker; workers inherit the environment.
  if (!common.aiter_hsa.empty())
    ::setenv("ATTEST_AITER_HSA", std::filesystem::absolute(common.aiter_hsa).c_str(), 1);

  if (fuzz_verb->parsed()) return verb_fuzz(common, fuzz);
  if (merge_verb->parsed()) return verb_merge(common, merge);
  if (replay_verb->parsed()) return verb_replay(common, replay);
  if (shrink_verb->parsed()) return verb_shrink(common, shrink);
  if (kernels_verb->parsed()) return verb_kernels(common);
  if (devices_verb->parsed()) return verb_devices(common);
  return serve(3, worker_device, worker_ordinal);
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error to report, not a death
  try {
    return run(argc, argv);
  } catch (const UsageError& error) {
    return fail(error.what(), exit_usage);
  } catch (const attest::cases::CaseError& error) {
    return fail(error.what(), exit_usage);
  } catch (const attest::device::DeviceUnavailable& error) {
    return fail(error.what(), exit_nothing_tested);
  } catch (const attest::device::DeviceError& error) {
    return fail(error.what(), exit_usage);
  } catch (const PoolError& error) {
    return fail(error.what(), error.exit_code);
  } catch (const RunFolderError& error) {
    return fail(error.what(), error.exit_code);
  } catch (const std::exception& error) {
    return fail(error.what(), exit_harness);
  }
}
