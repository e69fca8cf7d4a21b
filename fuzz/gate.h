// SPDX-License-Identifier: MIT
//
// attest gate: may this change go in?
//
// It runs, for one device and arch,
//
//   the corpus     every file in <cases>/corpus, <cases>/seeds and <cases>/findings. A case file is expected
//                  to pass on every promised kernel of its op. A failure file is expected to fail on its
//                  kernel with its signature; when that kernel carries a planted fault, the case is expected
//                  to pass without it. Kernels that are not in this build skip their files, visibly
//   the probes     of the ledger <cases>/known.json (fuzz/ledger.h), expected to fail as known
//   fresh cases    a fixed number for each promised cell of <cases>/support.json (fuzz/support.h), from a
//                  seed derived from the commit: another commit tries others, the same commit the same
//
// and holds each verdict against its expectation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/ledger.h"
#include "fuzz/support.h"

namespace attest::fuzz {

/// In order of precedence: of several that hold, the first decides the exit code.
enum class Outcome : std::uint8_t {
  no_device,        ///< 3: there is no such device here
  no_test,          ///< 7: nothing is promised for this device and arch, and no corpus file runs
  all_skipped,      ///< 8: cases, and not one of them was really tested
  new_failure,      ///< 1: a kernel failed in a way that is neither expected nor known
  unexpected_pass,  ///< 1: what is expected or known to fail passed
  harness_error,    ///< 4: attest itself failed, or was interrupted
  missing_cell,     ///< 6: a promised cell was not tested, or not enough
  ledger_fault,     ///< 5: an entry has expired or has no issue link
  good,             ///< 0
};
const char* name(Outcome outcome);
int exit_code(Outcome outcome);

/// One thing that was held against its expectation.
struct Check {
  enum class Result : std::uint8_t { passed, failed, skipped };
  std::string group;  ///< a kernel, "ledger" or "support"
  std::string what;   ///< a file, "fresh cases", an entry's id, a cell
  Result result = Result::passed;
  Outcome outcome = Outcome::good;  ///< what it makes of the gate when it failed
  std::string why;                  ///< of a failure or a skip: one line, or several
  double seconds = 0;
};

/// What a cell came to.
struct CellResult {
  Cell cell;
  std::uint64_t cases = 0, tested = 0, failed = 0, known = 0, quarantined = 0;
  std::size_t pairs_covered = 0, pairs_reachable = 0;
  bool built = true;
};

struct GateReport {
  Outcome outcome = Outcome::good;
  std::string commit, device, arch, folder;
  std::uint64_t seed = 0;
  double seconds = 0;
  std::vector<Check> checks;
  std::vector<CellResult> cells;
  std::vector<std::string> remarks;  ///< what nobody promised, and the like
};

struct GatePlan {
  Support support;
  Ledger ledger;
  std::vector<FileCase> files;        ///< corpus, then probes
  std::vector<std::string> expected;  ///< of each file: the signature it fails with, empty = it passes
  std::vector<std::string> entries;   ///< of each file: the ledger entry it probes, else empty
  std::vector<Check> skipped;         ///< files whose kernel is not in this build
};

/// Reads <cases>. Throws UsageError, cases::CaseError: a line that names the broken file. Folders or files
/// that are not there hold nothing.
GatePlan plan_gate(const std::string& cases, const std::string& arch, const std::string& device);

/// The seed of a commit: FNV-1a of its name.
std::uint64_t seed_of_commit(std::string_view commit);

/// Runs the plan. @param fresh_cases per cell; 0 = as the manifest says
GateReport run_gate(const GatePlan& plan, CampaignOptions options, std::uint64_t fresh_cases, Pool& pool,
                    RunFolder& folder, Progress& progress);

/// The report when there is no device to run it on.
GateReport gate_without_device(const GatePlan& plan, const CampaignOptions& options, const std::string& why);

}  // namespace attest::fuzz
