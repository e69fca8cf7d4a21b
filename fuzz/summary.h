// SPDX-License-Identifier: MIT
//
// What a run says, as a fold over its events (fuzz/run_folder.h). A live campaign applies each event as it
// writes it; a resumed one first applies those of the file; attest merge applies those of all shards in order
// of item. So all three say the same about the same verdicts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fuzz/branches.h"
#include "fuzz/cells.h"
#include "fuzz/coverage.h"
#include "fuzz/record.h"
#include "fuzz/shrink.h"

namespace attest::fuzz {

struct Finding {
  std::string signature, kernel, diagnosis;
  std::uint64_t item = 0;               ///< the first case with this signature
  std::string source;                   ///< "corpus", "regression", "fresh" or "neighbour"
  std::uint64_t first_number = 0;       ///< of a fresh case or a neighbour
  std::string first_file;               ///< of another
  std::uint64_t count = 0;              ///< cases with this signature
  std::string detectors{}, schedule{};  ///< of a failure file that was run; empty: the run's
  cases::Case original;
  oracle::Mismatch mismatch;  ///< of the original
  ShrinkResult best{};        ///< the smallest case so far
  int same = 1, runs = 1;     ///< how often the first case gave the same failure and bits
  bool confirmed = false;     ///< it was run again
  bool shrunk = false;        ///< it was made smaller, or shown to be as small as can be
  bool done = false;          ///< nothing more will come

  [[nodiscard]] bool flaky() const { return same < runs; }
  /// Of the smallest case; `flaky` with its rate when the first case does not repeat.
  [[nodiscard]] oracle::Verdict verdict() const;
  /// "case 12", "neighbour 3", or the file.
  [[nodiscard]] std::string first_seen() const;
  /// Relative to the run folder.
  [[nodiscard]] std::string file() const;
  /// While the smallest case is the original.
  void set_mismatch(oracle::Mismatch map);
};

class Summary {
 public:
  /// The events of one run, in order.
  void apply(const Json& event);

  std::uint64_t cases = 0;
  std::map<std::string, std::uint64_t> verdicts;  ///< by name
  double seconds = 0;
  std::vector<Finding> findings;                 ///< in order of item
  std::map<std::string, std::uint64_t> excused;  ///< failures that were expected or are known, by reason
  std::map<std::string, std::set<std::uint64_t>> quarantined;  ///< items never launched, by kernel
  std::uint64_t workers_lost = 0;
  bool complete = false;  ///< not interrupted
  std::uint64_t next_item = 0;
  Json options;  ///< of the "run" event

  struct OfKernel {
    explicit OfKernel(const std::string& kernel) : coverage(kernel) {}
    std::uint64_t cases = 0;
    std::map<std::string, std::uint64_t> verdicts;
    Coverage coverage;
    BranchCoverage branches;
    Cells cells;
  };
  std::map<std::string, OfKernel> kernels;

  /// Cases in which a kernel was really put to the test: neither unsupported nor mistrusted nor
  /// harness_error.
  [[nodiscard]] std::uint64_t tested() const { return tested(cases, verdicts); }
  static std::uint64_t tested(std::uint64_t cases, const std::map<std::string, std::uint64_t>& verdicts);

  /// nullptr when no case had this signature.
  Finding* find(const std::string& signature);
  [[nodiscard]] bool has_seen(const std::string& signature) const { return seen_.count(signature) != 0; }
  /// The last verdict's event when a finding should have followed it and did not: the run was killed between.
  [[nodiscard]] std::optional<Json> unmade_finding() const;
  /// Pairs of strata covered and reachable, over all kernels.
  [[nodiscard]] std::pair<std::size_t, std::size_t> pairs() const;
  /// Sides of branches executed and there, over all kernels; nothing where the device does not tell.
  [[nodiscard]] std::pair<std::size_t, std::size_t> branches() const;

  /// summary.json. @param folder the run folder, for the command lines that reproduce
  [[nodiscard]] Json json(const std::string& folder) const;
  /// failures/<id>.json (fuzz/record.h).
  [[nodiscard]] Json failure_file(const Finding& finding, const std::string& folder) const;

 private:
  void take_verdict(const Json& event);

  std::map<std::uint64_t, Json> started_;      ///< cases without a verdict yet, by item
  std::map<std::string, std::uint64_t> seen_;  ///< cases by signature, excused ones not
  Json last_case_, last_verdict_;              ///< of the last verdict: a finding follows it at once
};

/// "attest replay <folder>/failures/<id>.json", and " --worker '<command>'" when that is not empty.
std::string reproduction(const Finding& finding, const std::string& folder, const std::string& worker = "");

}  // namespace attest::fuzz
