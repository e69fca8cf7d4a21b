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
#include "fuzz/completion.h"
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

void add_worker_option(CLI::App& verb, Common& common) {
  verb.add_option("--worker", common.worker,
                  "Command that starts a program with kernels of its own: they are what is tested "
                  "(fuzz/exchange/README.md)");
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

/// What --help says after the options: how a verb is used, what it leaves behind, how it ends.
void add_footers(CLI::App& app) {
  const auto footer = [&](const char* verb, const char* text) { app.get_subcommand(verb)->footer(text); };
  footer(
      "fuzz",
      R"(The cases are numbered: first those of --corpus and --regressions, then fresh case 0, 1, ... on each kernel
in turn. Case N is a function of kernel, seed and N, and verdicts are taken in order, so the same options
give the same findings with any number of jobs, in any shards, killed and resumed or not (unless --seconds
ends the run). Ctrl-C, or SIGTERM, ends it cleanly; so does kill -9, up to the cases under way.

Leaves, in the run folder: events.jsonl (everything, line by line), failures/<id>.json (one per finding, for
attest replay), summary.json.

  attest fuzz --kernel attest/mla_decode --cases 1000 --seed 7
  attest fuzz --op mla_decode --seconds 3600 --known cases/known.json --corpus cases/corpus --out night
  attest fuzz --resume night
  attest fuzz --kernel aiter --aiter-hsa ~/aiter/hsa --shard 0/8
  attest fuzz --worker 'python3 fuzz/exchange/workers/numpy_mla_decode.py' --cases 200

Exit codes: 0 no findings; 1 findings; 2 a bad option, file or folder; 3 nothing was really tested;
4 attest failed or was interrupted.)");
  footer(
      "gate",
      R"(Runs the corpus (<cases>/corpus, seeds, findings), the probes of the known failures (<cases>/known.json)
and fresh cases for every cell that <cases>/support.json promises for this device and arch, and holds every
verdict against its expectation. fuzz/README.md shows how to set it up.

  attest gate --junit junit.xml                     a pull request, on the simulator
  attest gate --device hip --junit junit.xml        the same on a GPU
  attest gate --cases mine --commit "$SHA" --json

Exit codes: 0 all as expected, known failures included; 1 a new failure, or an unexpected pass; 2 a bad option
or a broken file in --cases; 3 no device; 4 attest failed or was interrupted; 5 an entry of known.json has
expired or has no issue link; 6 a promised cell was not tested; 7 nothing to test; 8 all skipped. Of several
that hold the first of 3, 7, 8, 1, 4, 6, 5 counts.)");
  footer(
      "merge",
      R"(All shards of one campaign, each once and ended; what is missing is named. The joined run is equal to the
unsharded one: same verdicts, counts, coverage and findings.

  attest merge night/shard-* --out night/joined

Exit codes: as attest fuzz would have ended.)");
  footer(
      "report",
      R"(One HTML file with all that a run folder says: findings, worst first, each with the command that reproduces
it; used budgets; coverage; speed; fidelity; the environment. It loads nothing and runs no script, so it can be
mailed or kept as a CI artifact. A run that still goes on, was killed, or was made by another version is
reported as far as it can be read, and the page says so.

  attest report night/joined                        writes night/joined/report.html
  attest report night/joined --json                 the numbers, and no page
  attest report last/joined night/joined            what became worse; writes night/joined/comparison.html

Two runs are compared by their findings, by the verdicts of the cases that are in both, and by the used budgets
of what passes: case by case where the cases are the same, by distribution where the seeds differ. A kernel
has drifted when it lost more accuracy than reordering its sums would cost, and not by chance (one false alarm
in a thousand comparisons; fuzz/report/drift.h derives the rule). Speed is shown and decides nothing.

Exit codes: 0 written, and nothing became worse; of two runs, 1 a new finding, a worse verdict, drift, or a
kernel that is no more tested; 2 a bad option, file or folder, or runs without a kernel in common.)");
  footer(
      "triage",
      R"(Sorts what campaigns found by known causes: a finding is of a cause when kernel, smallest case, diagnosis
and detail are as the list says (fuzz/causes.h). What fits none is new, and is listed with the command that
explains it.

  attest triage night/joined
  attest triage night/joined --causes mine.json --json

Exit codes: 0 all findings are of known causes, or there are none; 1 a new one; 2 a bad file or folder.)");
  footer(
      "replay",
      R"(A failure file runs on the kernel it was found with and says whether the recorded failure came back, bit for
bit. A case file runs on attest/<op> or the kernels named.

  attest replay night/failures/bbece4e040767dfa.json
  attest replay night/failures/bbece4e040767dfa.json --kernel attest/mla_decode     does another kernel pass?
  attest replay 7:1234 --kernel attest/mla_decode                                   case 1234 of seed 7

Exit codes: 0 passed; 1 failed, as recorded or not; 2 a bad option or file; 3 nothing was really tested;
4 attest failed.)");
  footer(
      "explain",
      R"(Runs the case as attest replay does and says, in this order: what it asks for, what is wrong, which
model of a defect gives the same result and how many elements agree with it, the worst elements with what their
rows see of the cache, and a map of the result. Of a crash, a timeout or a hazard: the fault, piece by piece.

  attest explain night/failures/bbece4e040767dfa.json
  attest explain 7:1234 --kernel attest/mla_decode+qlen_mask --json

Exit codes: as attest replay.)");
  footer(
      "trace",
      R"(Finds the store that wrote the element last and follows its value backwards through the registers and
the LDS of the workgroup (device/simulator/detect/slice.h says how exactly): every instruction that
contributed, at its latest execution, with the bits it produced, then the memory that was read, for the value
itself and for where to look, with pages and slots. What an earlier launch of the case left in a buffer is
followed there. The case is run several times; every run is the same.

  attest trace night/failures/bbece4e040767dfa.json
  attest trace case.json --element 0,2,5,17 --window 40
  attest trace case.json --buffer partial_out --offset 4096

Exit codes: 0 answered, be it that nothing ever wrote the element; 2 a bad option or file, or no wrong element
to begin from; 4 attest failed.)");
  footer("shrink", R"(  attest shrink case.json --kernel attest/mla_decode --out small.json

Exit codes: 0 done; 2 a bad option or file; 3 the case does not fail; 4 attest failed.)");
  footer(
      "export",
      R"(Writes every input of a case, by the names of the field, and in its metadata the op, all scalars, the case
and the outputs that are wanted: attest check judges them wherever they were computed.
fuzz/exchange/README.md lists the tensors of each op.

  attest export cases/corpus/ragged_batch.json --out x.safetensors
  attest export 7:1234 --kernel attest/mla_decode --out x.safetensors
  attest check x.safetensors y.safetensors

Exit codes: 0 written; 2 a bad option, case or place; 4 attest failed.)");
  footer(
      "check",
      R"(The outputs are judged as those of any kernel: against the fp64 reference, within a bound computed from the
data and from the arithmetic that --precision declares.

  attest check x.safetensors y.safetensors
  attest check case.json y.safetensors --precision fp32p --json

Exit codes: 0 passed; 1 wrong; 2 a bad option or file: a tensor is missing, or has another shape or element
type; 3 nothing was proved; 4 attest failed.)");
  footer(
      "capture",
      R"(A dump holds the arguments of a real call, under the names of AITER's mla_decode_fwd or vLLM's, and perhaps what
it returned; fuzz/exchange/README.md lists them and has the lines that write one. What it returned is judged on
the call's own data. A kernel at hand is run on that data too, and on a case like the call: same lengths, formats and
page layout, made data. If it fails there, the case is shrunk; else, if it fails on the call's data, the call is.

  attest capture dump.safetensors
  attest capture dump.safetensors --kernel attest/mla_decode --out case.json --small small.safetensors
  attest capture dump.safetensors --worker 'python3 my_worker.py'

Exit codes: 0 all passed; 1 something failed; 2 a bad option or dump; 3 nothing was judged: the dump holds no result
and no kernel was named; 4 attest failed.)");
  footer("completion", R"(  source <(attest completion bash))");
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
  fuzz_verb
      ->add_option(
          "--steer", fuzz.steer,
          "pairs: to combinations not tried yet. branches: besides, to sides of the kernels' branches "
          "that few cases executed, by neighbours of those cases; the simulator only [branches, in a "
          "shard pairs, so that the shards together are the whole run]")
      ->check(CLI::IsMember({"pairs", "branches"}));
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
  fuzz_verb->add_option(
      "--known", fuzz.known,
      "Ledger of known failures, as cases/known.json: they are counted and are no findings");
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
  add_worker_option(*fuzz_verb, common);
  for (CLI::Option* other : fuzz_verb->get_options())
    if (other != resume && other->get_name() != "--help" && other->get_name() != "--jobs" &&
        other->get_name() != "--json" && other->get_name() != "--quiet" && other->get_name() != "--aiter-hsa")
      resume->excludes(other);

  GateOptions gate;
  CLI::App* gate_verb = app.add_subcommand(
      "gate", "What CI runs: corpus and fresh cases against expectations, known failures and promises");
  gate_verb->add_option("--cases", gate.cases, "Folder with corpus/, findings/, known.json and support.json")
      ->capture_default_str();
  gate_verb->add_option("--commit", gate.commit,
                        "Its fresh cases are drawn by a seed derived from this [$BUILDKITE_COMMIT, "
                        "$GITHUB_SHA, git rev-parse HEAD]");
  gate_verb->add_option("--seed", gate.seed, "Seed of the fresh cases, instead of the commit's");
  gate_verb->add_option("--fresh", gate.fresh_cases, "Fresh cases per promised kernel [support.json]");
  gate_verb->add_option("--jobs", gate.jobs, "Worker processes; 0 = one per core or GPU")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  gate_verb->add_option("--deadline", gate.deadline_seconds, "Seconds a case may take before it is a timeout")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  gate_verb->add_option("--worker-memory", gate.memory_mib, "MiB a worker may hold; 0 = any")
      ->capture_default_str();
  gate_verb->add_option("--shrink-budget", gate.shrink_budget, "Evaluations spent on making a finding small")
      ->capture_default_str();
  gate_verb->add_option("--junit", gate.junit, "File for JUnit XML");
  gate_verb->add_option("--summary", gate.summary,
                        "File for the Markdown summary [appended to $GITHUB_STEP_SUMMARY when set]");
  gate_verb->add_option("--out", gate.out, "Run folder [attest-runs/<next number>]");
  gate_verb->add_flag("--json", common.json, "Print the report as JSON on stdout instead of Markdown");
  gate_verb->add_flag("--quiet", common.quiet, "No progress on stderr");
  add_device_options(*gate_verb, common);

  MergeOptions merge;
  CLI::App* merge_verb = app.add_subcommand("merge", "Join the run folders of all shards of a campaign");
  merge_verb->add_option("folder", merge.folders, "Run folders, one per shard")->required();
  merge_verb->add_option("-o,--out", merge.out, "Folder for the joined run [attest-runs/<next number>]");
  merge_verb->add_flag("--json", common.json, "Print the summary as JSON on stdout");

  ReportOptions report;
  CLI::App* report_verb =
      app.add_subcommand("report", "Write a run as one offline HTML page, or compare two runs");
  report_verb->add_option("folder", report.folders, "Run folder; or two, the earlier one first, to compare")
      ->required()
      ->expected(1, 2);
  report_verb->add_option(
      "-o,--out", report.out,
      "File for the page [report.html, or comparison.html, in the (later) run folder; none with --json]");
  report_verb->add_flag("--json", common.json, "Print the numbers of the page as JSON on stdout");

  TriageOptions triage;
  CLI::App* triage_verb =
      app.add_subcommand("triage", "Sort what runs found by known causes; say what is new");
  triage_verb->add_option("run", triage.words, "Run folders, failure files, or folders of them")->required();
  triage_verb->add_option("--causes", triage.causes, "List of known causes (fuzz/causes.h)")
      ->capture_default_str();
  triage_verb->add_flag("--json", common.json, "Print the sorted findings as JSON on stdout");

  ReplayOptions replay;
  CLI::App* replay_verb =
      app.add_subcommand("replay", "Run case files, failure files, SEED:NUMBER or RUN:ITEM again");
  replay_verb->add_option("case", replay.cases, "Case file, failure file, SEED:NUMBER, or RUN:ITEM")
      ->required();
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
  add_worker_option(*replay_verb, common);

  const auto add_subject = [&](CLI::App& verb, SubjectOptions& subject) {
    verb.add_option("case", subject.file, "Case file, failure file, SEED:NUMBER, or RUN:ITEM")->required();
    verb.add_option("--kernel", subject.kernel, "Kernel [the failure file's, else attest/<op>]");
    verb.add_flag("--original", subject.original,
                  "Of a failure file: the case as found, not the minimised one");
    add_schedule_option(verb, subject.schedule, "the failure file's, else plain");
  };

  ExplainOptions explain;
  CLI::App* explain_verb = app.add_subcommand(
      "explain", "Say what is wrong with a result: where, by how much, and what it is instead");
  add_subject(*explain_verb, explain.subject);
  add_detect_option(*explain_verb, explain.subject.detectors, "the failure file's, else none");
  explain_verb->add_option("--deadline", explain.deadline_seconds, "Seconds the case may take")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  explain_verb->add_flag("--json", common.json, "Print all of it as JSON on stdout");
  add_device_options(*explain_verb, common);

  TraceOptions trace;
  CLI::App* trace_verb = app.add_subcommand(
      "trace", "On the simulator: the instructions and loads that a wrong value was made by");
  add_subject(*trace_verb, trace.subject);
  CLI::Option* trace_element =
      trace_verb
          ->add_option("--element", trace.element,
                       "REQUEST,POSITION,HEAD,COLUMN; column -1 is the lse [the worst element]")
          ->delimiter(',')
          ->allow_extra_args(false);
  trace_verb->add_option("--buffer", trace.buffer, "A device buffer by its name, instead of an element")
      ->excludes(trace_element);
  trace_verb->add_option("--offset", trace.offset, "Its first byte that is traced")->capture_default_str();
  trace_verb->add_option("--bytes", trace.bytes, "How many")->capture_default_str()->check(CLI::Range(1, 64));
  trace_verb
      ->add_option("--window", trace.window, "List as many instructions of the wave around the store as well")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000));
  trace_verb->add_option("--lines", trace.lines, "About as many lines of the rest")
      ->capture_default_str()
      ->check(CLI::Range(10, 100000));
  trace_verb->add_option("--deadline", trace.deadline_seconds, "Seconds the case may take")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  trace_verb->add_flag("--json", common.json, "Print all of it as JSON on stdout");
  add_device_options(*trace_verb, common);

  ShrinkOptions shrink;
  CLI::App* shrink_verb = app.add_subcommand("shrink", "Make a failing case small, keeping its signature");
  shrink_verb->add_option("case", shrink.file, "Case file, failure file, SEED:NUMBER, or RUN:ITEM")
      ->required();
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
  add_worker_option(*shrink_verb, common);

  ExportOptions exported;
  CLI::App* export_verb =
      app.add_subcommand("export", "Write the inputs of a case as safetensors, for other programs");
  export_verb->add_option("case", exported.file, "Case file, failure file, SEED:NUMBER, or RUN:ITEM")
      ->required();
  export_verb->add_option("--kernel", exported.kernel, "Kernel whose cases SEED:NUMBER counts");
  export_verb->add_option("-o,--out", exported.out, "File to write")->required();
  export_verb->add_flag("--json", common.json, "Print what was written as JSON");
  add_aiter_option(*export_verb, common);

  CheckOptions check;
  CLI::App* check_verb = app.add_subcommand("check", "Judge outputs that another program computed");
  check_verb
      ->add_option("case", check.file,
                   "What attest export wrote, or a case file, failure file, SEED:NUMBER, or RUN:ITEM")
      ->required();
  check_verb->add_option("outputs", check.outputs, "safetensors file with the outputs")->required();
  check_verb->add_option("--kernel", check.kernel, "Kernel whose cases SEED:NUMBER counts");
  check_verb->add_option("--precision", check.precision, "Declared arithmetic (oracle/precision.h lists)")
      ->capture_default_str();
  check_verb->add_flag("--json", common.json, "Print the verdict as JSON");
  add_aiter_option(*check_verb, common);

  CaptureOptions capture;
  CLI::App* capture_verb = app.add_subcommand(
      "capture", "Judge a call dumped from another program, run it again, and make a small case of it");
  capture_verb->add_option("dump", capture.dump, "safetensors file with the call's arguments")->required();
  capture_verb->add_option("--kernel", capture.kernel,
                           "Kernel to run the call on, and the case like it [with --worker, its only one]");
  capture_verb
      ->add_option("--precision", capture.precision,
                   "Declared arithmetic of what returned the dump's out (oracle/precision.h lists)")
      ->capture_default_str();
  capture_verb->add_option("--budget", capture.budget, "Evaluations spent on making what fails small")
      ->capture_default_str();
  capture_verb->add_option("--deadline", capture.deadline_seconds, "Seconds a run may take")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  capture_verb->add_option("-o,--out", capture.out,
                           "File for the case: like the call, or the smallest that fails [stdout]");
  capture_verb->add_option("--small", capture.small,
                           "File for the smallest part of the call itself that fails on the kernel");
  capture_verb->add_flag("--json", common.json, "Print the result as JSON");
  capture_verb->add_flag("--quiet", common.quiet, "No progress on stderr");
  add_device_options(*capture_verb, common);
  add_worker_option(*capture_verb, common);

  CLI::App* kernels_verb = app.add_subcommand("kernels", "List what can be tested");
  kernels_verb->add_flag("--json", common.json, "As JSON");
  add_aiter_option(*kernels_verb, common);
  CLI::App* devices_verb = app.add_subcommand("devices", "List what can execute kernels here, and why not");
  devices_verb->add_flag("--json", common.json, "As JSON");

  CLI::App* completion_verb = app.add_subcommand("completion", "Print a shell completion script");
  std::string shell;
  completion_verb->add_option("shell", shell, "bash")->required()->check(CLI::IsMember({"bash"}));

  add_footers(app);

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

  use_worker(common, common.worker);

  if (fuzz_verb->parsed()) return verb_fuzz(common, fuzz);
  if (gate_verb->parsed()) return verb_gate(common, gate);
  if (completion_verb->parsed()) {
    std::cout << bash_completion(app);
    return exit_ok;
  }
  if (merge_verb->parsed()) return verb_merge(common, merge);
  if (report_verb->parsed()) return verb_report(common, report);
  if (triage_verb->parsed()) return verb_triage(common, triage);
  if (replay_verb->parsed()) return verb_replay(common, replay);
  if (explain_verb->parsed()) return verb_explain(common, explain);
  if (trace_verb->parsed()) return verb_trace(common, trace);
  if (shrink_verb->parsed()) return verb_shrink(common, shrink);
  if (export_verb->parsed()) return verb_export(common, exported);
  if (capture_verb->parsed()) return verb_capture(common, capture);
  if (check_verb->parsed()) return verb_check(common, check);
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
