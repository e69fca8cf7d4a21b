// SPDX-License-Identifier: MIT
//
// A run folder (fuzz/run_folder.h) as the numbers that a report shows.
//
// Like fuzz/summary.h a fold over the events, and for the same events it counts the same. It differs in what
// it asks of them. A campaign that goes on must understand every event, and Summary throws at one that it
// does not. A report is read when something went wrong: the run was killed, or its folder was made by another
// version, whose cases this build cannot read. So every field may be missing, an event that cannot be
// understood is counted, and what that leaves unknown is said on the page (`remarks`).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/branches.h"
#include "fuzz/coverage.h"
#include "fuzz/record.h"
#include "fuzz/report/budget_histogram.h"
#include "fuzz/report/mismatch_map.h"

namespace attest::fuzz::report {

/// One verdict.
struct CaseNumbers {
  std::uint32_t kernel = 0;  ///< index in RunNumbers::kernel_names
  std::string id;            ///< of the case
  std::string kind;          ///< of the verdict: "pass"
  std::string lane;
  std::string source;        ///< "fresh", "neighbour", "corpus", "regression"
  std::uint64_t item = 0;    ///< of the run
  std::uint64_t number = 0;  ///< of a fresh case or a neighbour
  std::string file;          ///< of another
  bool excused = false;      ///< the failure was expected or is known
  double t = -1;             ///< seconds since the start of the run; -1 unknown
  double used_budget = 0;
  std::int64_t elements_checked = 0;
  std::uint64_t wave_instructions = 0;
  double materialise_seconds = 0, run_seconds = 0, judge_seconds = 0;

  [[nodiscard]] double seconds() const { return materialise_seconds + run_seconds + judge_seconds; }
  /// Put to the test: neither unsupported nor mistrusted nor harness_error.
  [[nodiscard]] bool tested() const;
};

struct FindingNumbers {
  std::string signature, kernel, kind, diagnosis, detail;
  std::string file;          ///< failures/<id>.json, whether it is there or not
  std::string reproduce;     ///< a command line
  std::string source;        ///< of the first case
  std::uint64_t number = 0;  ///< of a fresh one or a neighbour
  std::string from_file;     ///< of another
  std::uint64_t count = 0;   ///< cases with this signature
  int same = 1, runs = 1;    ///< how often the first case gave the same failure
  bool confirmed = false, minimal = false, done = false;
  std::uint64_t evaluations = 0, steps = 0;  ///< of making it small
  Json verdict = Json::object();             ///< of the smallest case
  Json original, minimised;                  ///< cases; null: unknown
  std::optional<MismatchMap> original_map, minimised_map;
};

struct KernelNumbers {
  std::string name;
  std::uint64_t cases = 0, tested = 0, findings = 0;
  std::map<std::string, std::uint64_t> verdicts;
  std::map<std::string, std::uint64_t> reasons;    ///< "kind: why" of what was not tested
  std::map<std::string, BudgetHistogram> budgets;  ///< of what was tested, by lane
  double run_seconds = 0, seconds = 0;
  std::uint64_t wave_instructions = 0;
  std::unique_ptr<Coverage> coverage;  ///< nullptr: the events hold no cases
  BranchCoverage branches;             ///< none: the device does not tell

  /// The largest used budget within the limit, over all lanes; NaN when there is none.
  [[nodiscard]] double worst_within() const;
};

/// What was executed and how exactly, over all cases (device/simulator/exec/fidelity.h).
struct FidelityRow {
  std::string op, exactness, reason;
  double ulp = 0;
  std::uint64_t count = 0;
};

struct RateBucket {
  double from = 0, to = 0;
  std::uint64_t cases = 0;
};

struct RunNumbers {
  std::string folder;
  Json schema;                   ///< as the run says it
  Json build = Json::object();   ///< what attest was made of when the run began
  Json device = Json::object();  ///< what its workers ran on
  Json options = Json::object();
  int jobs = 0;
  std::vector<std::string> merged;  ///< folders of the shards it was joined from

  std::uint64_t cases_run = 0, tested = 0, excused = 0, quarantined = 0, workers_lost = 0;
  std::map<std::string, std::uint64_t> verdicts;
  std::map<std::string, std::uint64_t> excuses;
  double seconds = 0;
  int resumed = 0;
  std::vector<double> resumed_at, lost_at;  ///< seconds
  bool ended = false;                       ///< has an end event
  bool complete = false;                    ///< and was not interrupted

  std::vector<std::string> kernel_names;
  std::vector<KernelNumbers> kernels;    ///< in the order of kernel_names
  std::vector<CaseNumbers> cases;        ///< in order
  std::vector<FindingNumbers> findings;  ///< worst first
  std::vector<RateBucket> rate;
  std::vector<FidelityRow> fidelity;  ///< least exact first, then the most executed
  std::uint64_t fidelity_cases = 0;   ///< cases whose events say it
  std::vector<std::string> untested;  ///< kernels that were to be tested and were not

  std::uint64_t unreadable = 0;      ///< events
  std::vector<std::string> remarks;  ///< what the reader of the report must know about the run folder

  /// Covered and reachable pairs over all kernels.
  [[nodiscard]] std::pair<std::size_t, std::size_t> pairs() const;
  /// Sides of branches executed and there, over all kernels.
  [[nodiscard]] std::pair<std::size_t, std::size_t> branches() const;
  /// The `most` that took longest, the longest first.
  [[nodiscard]] std::vector<const CaseNumbers*> slowest(std::size_t most) const;
  /// Kernels by index: with findings first, then by how near they came to the limit.
  [[nodiscard]] std::vector<std::size_t> worst_first() const;
  /// How to run a case again.
  [[nodiscard]] std::string reproduction(const CaseNumbers& c) const;
};

/// Throws RunFolderError: no run there, or a line that is not JSON.
RunNumbers read_run(const std::string& folder);

/// Everything that the page shows in numbers, for --json.
Json report_json(const RunNumbers& run);

}  // namespace attest::fuzz::report
