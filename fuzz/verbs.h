// SPDX-License-Identifier: MIT
//
// The verbs of the command line. Each takes its parsed options and returns the exit code:
//
//   0  all as expected
//   1  a verdict differs from its expectation (a kernel failed)
//   2  usage: a bad option, case, code object or output folder; one line on stderr says which
//   3  nothing was really tested: no device, no supported case, all skipped
//   4  attest itself failed, or was interrupted
//
// The gate tells more apart (fuzz/gate.h):
//
//   1  also: what is expected or known to fail passed
//   3  no device
//   5  the ledger of known failures is not in order: an entry has expired or has no issue link
//   6  a promised cell was not tested
//   7  no test: nothing is promised for this device, and no corpus file runs there
//   8  all skipped: cases, and not one was really tested
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attest::fuzz {

enum Exit : int {
  exit_ok = 0,
  exit_verdict = 1,
  exit_usage = 2,
  exit_nothing_tested = 3,
  exit_harness = 4,
  exit_ledger = 5,
  exit_missing_cell = 6,
  exit_no_test = 7,
  exit_all_skipped = 8,
};

struct Common {
  std::string device = "sim", arch = "gfx942";
  bool json = false, quiet = false;
  std::string aiter_hsa;  ///< AITER's hsa folder; empty = its kernels are not there
  std::string worker;  ///< shell command of a program with kernels of its own (fuzz/exchange); empty = none
  std::string self;    ///< path of this executable, to start workers
};

struct FuzzOptions {
  std::vector<std::string> kernels;
  std::string op;
  std::optional<std::uint64_t> cases;  ///< per kernel; nullopt = 1000, or no end when `seconds` is set
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> seconds;
  int jobs = 0;  ///< 0 = one per core (sim) or per device (hip)
  std::uint64_t deadline_seconds = 120, memory_mib = 4096;
  std::uint64_t shrink_budget = 600, max_shrunk = 8, shrink_seconds = 60;
  bool stop_on_finding = false;
  std::string
      steer;  ///< "pairs" or "branches"; empty = branches where that is the whole run on the simulator
  std::string detectors = "none", schedule = "plain";
  std::vector<std::string> corpus, regressions;  ///< case and failure files, or folders of them: run first
  std::string known;                             ///< ledger of known failures; empty = none
  std::string shard;                             ///< "i/n"; empty = by the launcher's environment
  std::string out;                               ///< run folder; empty = attest-runs/<next number>
  std::string resume;                            ///< run folder to go on with; the options are then its own
};
int verb_fuzz(const Common& common, const FuzzOptions& options);

/// Prints what a run says and gives its exit code. @param folder the run folder
int say_summary(const Common& common, const class Summary& summary, const std::string& folder);

struct ReplayOptions {
  std::vector<std::string> cases;    ///< case file, failure file, or SEED:NUMBER
  std::vector<std::string> kernels;  ///< empty = the failure file's kernel, else attest/<op>
  bool original = false;             ///< of a failure file: the case as found instead of the minimised one
  std::string detectors;             ///< empty = the failure file's, else none
  std::string schedule;              ///< empty = the failure file's, else plain
  bool fidelity = false;             ///< print the ledger of what was executed and how exactly
  std::uint64_t deadline_seconds = 600;
};
int verb_replay(const Common& common, const ReplayOptions& options);

/// One case on one kernel.
struct SubjectOptions {
  std::string file;                 ///< case file, failure file, or SEED:NUMBER
  std::string kernel;               ///< empty = as for replay
  bool original = false;            ///< of a failure file: the case as found instead of the minimised one
  std::string detectors, schedule;  ///< empty = as for replay
};

struct ExplainOptions {
  SubjectOptions subject;
  std::uint64_t deadline_seconds = 600;
};
int verb_explain(const Common& common, const ExplainOptions& options);

struct TraceOptions {
  SubjectOptions subject;
  std::vector<int> element;  ///< request, position, head, column (-1: the lse); empty = the worst one
  std::string buffer;        ///< instead: bytes [offset, offset + bytes) of this buffer
  std::uint64_t offset = 0, bytes = 4;
  std::uint32_t window = 0;  ///< instructions around the store to list
  std::size_t lines = 60;    ///< about as many, besides those of the window
  std::uint64_t deadline_seconds = 600;
};
int verb_trace(const Common& common, const TraceOptions& options);

struct ShrinkOptions {
  std::string file;    ///< case file, failure file, or SEED:NUMBER
  std::string kernel;  ///< empty = as for replay
  std::uint64_t budget = 2000;
  std::string detectors, schedule;  ///< empty = as for replay
  int jobs = 0;
  std::string out;  ///< where the minimised case goes; empty = stdout
};
int verb_shrink(const Common& common, const ShrinkOptions& options);

struct ExportOptions {
  std::string file;    ///< case file, failure file, or SEED:NUMBER
  std::string kernel;  ///< whose cases SEED:NUMBER counts
  std::string out;     ///< safetensors file to write
};
int verb_export(const Common& common, const ExportOptions& options);

struct CheckOptions {
  std::string file;                    ///< as for export, or what export wrote
  std::string kernel;                  ///< as for export
  std::string outputs;                 ///< safetensors file
  std::string precision = "bf16-any";  ///< profile of the program that computed them (oracle/precision.h)
};
int verb_check(const Common& common, const CheckOptions& options);

struct CaptureOptions {
  std::string dump;    ///< safetensors file with the arguments of a call
  std::string kernel;  ///< runs the call again, and the case like it; empty = none, or the worker's only one
  std::string precision = "bf16-any";  ///< of what the dump says the call returned
  std::uint64_t budget = 300;          ///< evaluations spent on making what fails small
  std::uint64_t deadline_seconds = 600;
  std::string out;    ///< file for the case: like the call, or the smallest that fails; empty = stdout
  std::string small;  ///< file for the smallest part of the call that fails
};
int verb_capture(const Common& common, const CaptureOptions& options);

struct GateOptions {
  std::string cases = "cases";        ///< folder with corpus/, findings/, known.json, support.json
  std::string commit;                 ///< empty = of the CI's environment, or of the repository
  std::optional<std::uint64_t> seed;  ///< instead of the commit's
  std::uint64_t fresh_cases = 0;      ///< per cell; 0 = as the support manifest says
  std::uint64_t deadline_seconds = 120, memory_mib = 4096, shrink_budget = 300;
  int jobs = 0;
  std::string junit, summary, out;
};
int verb_gate(const Common& common, const GateOptions& options);

struct MergeOptions {
  std::vector<std::string> folders;
  std::string out;
};
int verb_merge(const Common& common, const MergeOptions& options);

struct ReportOptions {
  std::vector<std::string> folders;  ///< one run, or two to compare
  std::string out;  ///< HTML file; empty = report.html or comparison.html in the last of them
};
int verb_report(const Common& common, const ReportOptions& options);

struct TriageOptions {
  std::vector<std::string> words;  ///< run folders, failure files, or folders of them
  std::string causes = "cases/causes.json";
};
int verb_triage(const Common& common, const TriageOptions& options);

int verb_kernels(const Common& common);
int verb_devices(const Common& common);

}  // namespace attest::fuzz
