// SPDX-License-Identifier: MIT
//
// A campaign: generated cases on kernels, findings de-duplicated by signature, shrunk, recorded.
//
// Case `number` of a campaign is generate(seed, number): a pure function. Verdicts are taken in order of
// number whatever worker gave them, so the same seed gives the same findings with any number of jobs. The
// first case of each signature is run again `confirmations` times; if it does not repeat, the finding is
// `flaky` (k of n), else it is shrunk.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/progress.h"
#include "fuzz/record.h"
#include "fuzz/run_folder.h"
#include "fuzz/worker.h"

namespace attest::fuzz {

struct CampaignOptions {
  std::vector<std::string> kernels;
  std::string device = "sim", arch = "gfx942";
  std::uint64_t seed = 0;
  std::uint64_t cases = 1000;                   ///< per kernel
  std::optional<std::chrono::seconds> seconds;  ///< in all; ended cleanly between cases
  std::size_t shrink_budget = 600;              ///< evaluations per finding
  std::size_t max_shrunk = 8;  ///< findings per kernel that are shrunk; later ones keep their case
  int confirmations = 2;
  bool stop_on_finding = false;  ///< go on to the next kernel after the first finding
};

struct Finding {
  std::string signature, kernel, diagnosis;
  std::string file;       ///< relative to the run folder
  std::string reproduce;  ///< a command line
  oracle::Verdict verdict;
  cases::Case minimised;
  std::uint64_t first_number = 0, count = 0;
  bool shrunk = false;
};

struct Summary {
  std::uint64_t cases = 0;
  std::map<std::string, std::uint64_t> verdicts;  ///< by name
  double seconds = 0;
  std::vector<Finding> findings;

  /// Cases in which a kernel was really put to the test: neither unsupported nor mistrusted nor
  /// harness_error.
  [[nodiscard]] std::uint64_t tested() const;
};

Json to_json(const Summary& summary, const CampaignOptions& options);

Summary run_campaign(const CampaignOptions& options, Pool& pool, RunFolder& folder, Progress& progress);

}  // namespace attest::fuzz
