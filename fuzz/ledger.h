// SPDX-License-Identifier: MIT
//
// Known failures: cases/known.json. A gate that is red for what everybody knows is switched off; one that is
// told to look away never looks again. So an entry says exactly what is known, who tracks it, and until when
// it may stand:
//
//   {"schema": 1, "entries": [{
//     "id": "aiter-page-size",                       unique, for reports
//     "op": "mla_decode",                            which cases: this op,
//     "kernel": "aiter/mla_*@paged",                 kernels, by glob (* and ?),
//     "arch": "gfx942", "device": "*",               by glob; device may be left out
//     "where": {"shape.page_size": {"min": 2}},      fields of the case and conditions
//                                                    (fuzz/case_fields.h); may be left out
//     "signature": "mla_decode/aiter/*fail/result/*",     which failures, by glob
//     "issue": "https://github.com/ROCm/aiter/issues/2996",
//     "expires": "2027-03-31",                       the last day it counts
//     "mode": "tolerated",                           run, and the failure is no news; or "quarantined": never
//                                                    launched, for what takes the device down with it
//     "probe": "findings/aiter/page-size-ignored.json"   a failure file, relative to the ledger: the evidence
//   }]}
//
// `probe` is required of a tolerated entry. The gate runs it each time: the day it passes, the entry is stale
// and the gate fails (an unexpected pass), so that a repaired kernel is held to its repair. A quarantined
// entry is not run, and only its expiry makes somebody look again.
//
// What is wrong with an entry fails the gate too: it has expired, or it has no issue link.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/record.h"

namespace attest::fuzz {

struct KnownFailure {
  std::string id, op, kernel, arch, device = "*", signature, issue, expires, probe;
  std::map<std::string, Json> where;
  bool quarantined = false;
};

class Ledger {
 public:
  /// No entries.
  Ledger() = default;
  /// Throws UsageError with one line that names file, entry and field: not JSON, an unknown or missing field,
  /// an id given twice, a date that is none, a `where` on a field that no case of the op has.
  static Ledger read(const std::string& path);

  [[nodiscard]] const std::vector<KnownFailure>& entries() const { return entries_; }

  /// The tolerated entry that this failure falls under; nullptr when it is news.
  [[nodiscard]] const KnownFailure* tolerates(const std::string& kernel, const std::string& arch,
                                              const std::string& device, const cases::Case& c,
                                              const std::string& signature) const;
  /// The quarantined entry that forbids to launch this case.
  [[nodiscard]] const KnownFailure* quarantines(const std::string& kernel, const std::string& arch,
                                                const std::string& device, const cases::Case& c) const;

 private:
  std::vector<KnownFailure> entries_;
};

/// What is wrong with an entry itself: "expired on 2026-10-01", "has no issue link"; nullopt when nothing is.
/// @param today YYYY-MM-DD
std::optional<std::string> fault_of(const KnownFailure& entry, const std::string& today);

/// UTC, or of $SOURCE_DATE_EPOCH (reproducible-builds.org) when that is set.
std::string today();

/// Whether a file of the ledger's kind speaks of this kernel here.
bool concerns(const KnownFailure& entry, const std::string& kernel, const std::string& arch,
              const std::string& device);

}  // namespace attest::fuzz
