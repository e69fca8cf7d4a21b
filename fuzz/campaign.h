// SPDX-License-Identifier: MIT
//
// A campaign: cases on kernels, findings de-duplicated by signature, confirmed, shrunk, recorded.
//
// The cases are numbered: first those of files (corpus, then open regressions), then fresh case `number` of
// every kernel in turn (campaign_case in fuzz/coverage.h). All of it is a pure function of the options, so a
// shard is every count-th of them and a campaign that was killed goes on with the next.
//
// With `branch_steering` one case in four of each kernel is a neighbour (fuzz/neighbours.h) of a case that
// executed a branch as few others did. That depends on verdicts, but never on when they came: the neighbour at
// item p is a function of the verdicts before item p - neighbour_lag, for which the campaign waits if it must.
// So it too is the same with any number of jobs and after a kill. In a shard it goes by the verdicts of that
// shard, and the shards together are then no longer the whole run: leave it off there if they have to be.
// Where there is no neighbour yet, or without branches, as on a GPU, the case is a fresh one.
//
// Verdicts are taken in order of item whatever worker gave them, so the same options give the same findings
// with any number of jobs, kills and shards.
//
// The first case of each signature is run again `confirmations` times; if it does not repeat, the finding is
// `flaky` (k of n), else it is shrunk. Findings are pursued beside the cases that still come, and beside each
// other.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/pool.h"
#include "fuzz/progress.h"
#include "fuzz/record.h"
#include "fuzz/run_folder.h"
#include "fuzz/shard.h"
#include "fuzz/summary.h"

namespace attest::fuzz {

/// A case that comes from a file, on one kernel.
struct FileCase {
  std::string source;  ///< "corpus", "regression" or "probe" (of a ledger entry)
  std::string file, kernel;
  cases::Case c;
  /// What a failure file was found under; empty: as the campaign has it.
  std::string detectors{}, schedule{};
};

/// Items between a neighbour and the last verdict that decides about it, per shard: those that are written
/// down together and those under way.
inline constexpr std::uint64_t neighbour_lag = 128;

inline constexpr std::uint64_t unlimited = std::uint64_t{1} << 40U;  ///< cases: until the time is up

struct CampaignOptions {
  std::vector<std::string> kernels;
  std::string device = "sim", arch = "gfx942";
  std::string worker;  ///< command of the program whose kernels these are (fuzz/exchange); empty = none
  std::uint64_t seed = 0;
  std::vector<FileCase> files;                  ///< run first, in this order
  std::uint64_t cases = 1000;                   ///< besides those of files, per kernel
  std::optional<std::chrono::seconds> seconds;  ///< in all; ended cleanly between cases
  /// Seconds that shrinking may go on when the time is up; the best so far is kept.
  std::chrono::seconds shrink_seconds{60};
  std::size_t shrink_budget = 600;  ///< evaluations per finding
  std::size_t max_shrunk = 8;       ///< findings per kernel that are shrunk; later ones keep their case
  int confirmations = 2;
  bool branch_steering = false;  ///< neighbours among the fresh cases
  bool stop_on_finding = false;  ///< no more cases for a kernel after its first finding
  Shard shard;
  std::string detectors = "none";                           ///< as Device::choose_detectors takes them
  std::string schedule = "plain";                           ///< as Device::choose_schedule takes it
  std::uint64_t deadline_seconds = 120, memory_mib = 4096;  ///< of the workers; kept for --resume
  std::string known;  ///< file of the ledger that `excuse` and `quarantine` go by; kept for --resume

  /// Why a failure is no finding: it was expected, or is known. nullopt: it is one. A function of its
  /// arguments; not part of the record.
  std::function<std::optional<std::string>(const std::string& source, const std::string& file,
                                           const std::string& kernel, const cases::Case& c,
                                           const std::string& signature)>
      excuse;
  /// Why a case must not be launched; nullopt: it may. A function of its arguments; not part of the record.
  std::function<std::optional<std::string>(const std::string& kernel, const cases::Case& c)> quarantine;
  /// Told of each verdict as it is taken: its event.
  std::function<void(const Json& verdict)> observe;
};

/// What a "run" event holds of the options; of the files: source, name, kernel and case id.
Json to_json(const CampaignOptions& options);
/// The options of the run in `folder`. Throws RunFolderError. @param files the files it ran, as recorded;
/// `options.files` stays empty
CampaignOptions read_options(const std::string& folder, Json& files);

/// Runs a new campaign in a fresh folder.
Summary run_campaign(const CampaignOptions& options, Pool& pool, RunFolder& folder, Progress& progress);

/// Goes on with the one in `folder`, opened to resume: no verdict that it holds is taken again, no case
/// without one is left out. Throws RunFolderError when this build makes other cases from its seed.
Summary resume_campaign(const CampaignOptions& options, Pool& pool, RunFolder& folder, Progress& progress);

/// The summary of a run as far as it got, and what its findings' files say.
Summary read_summary(const std::string& folder);

}  // namespace attest::fuzz
