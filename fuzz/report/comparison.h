// SPDX-License-Identifier: MIT
//
// Two runs, the earlier and the later: what became worse?
//
// Cases are the same when their kernel and id are: a case's id is a hash of all that it is made of. The
// findings are the same when their signatures are. "Worse" is
//
//   a new finding             a signature that the earlier run did not meet
//   a worse verdict           the same case passed and passes no more, or was no failure and is one; unless
//                             the later run knows the failure (its ledger excuses it)
//   drift                     of the used budget of a kernel's passing cases (fuzz/report/drift.h)
//   a kernel no more tested   the earlier run tested it, the later one not a single case of it
//
// Speed is shown and decides nothing: seconds are of the machine. (Wave instructions are not; they show what
// a change of the kernel cost, also on another machine.)
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/report/drift.h"
#include "fuzz/report/run_numbers.h"

namespace attest::fuzz::report {

struct VerdictChange {
  std::string kernel, id, before, after, reproduce;
  bool worse = false;
};

struct KernelComparison {
  std::string name;
  std::uint64_t tested_before = 0, tested_after = 0, same_cases = 0;
  Drift drift;
  bool no_more_tested = false;
  /// Of the same cases where there are any, else of all: medians of run_seconds, and wave instructions in
  /// all.
  double seconds_before = 0, seconds_after = 0;
  std::uint64_t instructions_before = 0, instructions_after = 0;  ///< of the same cases only
  BudgetHistogram histogram_before, histogram_after;              ///< of passing cases
};

struct Comparison {
  std::vector<const FindingNumbers*> fresh, vanished, still;  ///< fresh: in the later run only
  std::vector<VerdictChange> changes;                         ///< worse ones first
  std::map<std::pair<std::string, std::string>, std::uint64_t> change_counts;  ///< {"pass", "fail"}: 3
  std::vector<KernelComparison> kernels;             ///< of both runs, worse ones first
  std::vector<std::string> only_before, only_after;  ///< kernels
  std::uint64_t same_cases = 0;
  std::vector<std::string> remarks;

  [[nodiscard]] std::uint64_t worse_verdicts() const;
  [[nodiscard]] std::uint64_t drifted() const;
  [[nodiscard]] std::uint64_t no_more_tested() const;
  [[nodiscard]] bool worse() const;
};

/// Throws UsageError: no kernel is in both runs, so nothing can be said. Points into `before` and `after`.
Comparison compare(const RunNumbers& before, const RunNumbers& after);

/// {"schema": 1, "worse": true, "before": "<folder>", "after", "new_findings": [...], "vanished_findings",
/// "verdict_changes", "by_kernel": {...}}
Json comparison_json(const RunNumbers& before, const RunNumbers& after, const Comparison& comparison);

std::string comparison_page(const RunNumbers& before, const RunNumbers& after, const Comparison& comparison);

}  // namespace attest::fuzz::report
