// SPDX-License-Identifier: MIT
//
// What is said of one case on one kernel, and with what evidence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/mismatch.h"

namespace attest::oracle {

/// No kind silently becomes another.
enum class VerdictKind : std::uint8_t {
  pass,
  fail,           ///< a wrong result
  crash,          ///< the kernel faulted: memory, illegal instruction, worker death
  timeout,        ///< instruction budget or deadline exceeded
  hazard,         ///< a detector of the simulator reported
  flaky,          ///< the same case gave different results
  unsupported,    ///< the kernel declares that it does not do this case
  mistrusted,     ///< passed, and proved nothing
  harness_error,  ///< attest itself failed
};
const char* name(VerdictKind kind);

/// One offending element, for reports.
struct Element {
  int request = 0, position = 0, head = 0, column = 0;  ///< column -1: the lse of the row
  double expected = 0, got = 0, bound = 0;
  std::string term;  ///< which term of the bound dominates there
};

struct Verdict {
  VerdictKind kind = VerdictKind::pass;
  /// "guard", "class", "exact", "element", "lse", "row", or a device stage. The first of these that failed.
  std::string stage;
  std::string diagnosis;   ///< short, stable, free of coordinates: "query rows identical"
  std::string detail;      ///< one line for people, with coordinates
  double used_budget = 0;  ///< largest excess / bound over all elements and lse values; above 1 fails
  std::string lane;        ///< the lane that decided: "exact", "element", "row"
  std::int64_t elements_checked = 0, elements_failed = 0, rows_failed = 0;
  std::vector<Element> worst;  ///< at most 10, worst first
  Mismatch mismatch;           ///< of a wrong result; empty where the op has no grid, and for what passes
};

/// The stable identity of a failure: "mla_decode/<kernel>/fail/result/query rows identical".
///
/// One defect shows in the elements of one case, in the lse of another and as NaN in a third, so the stages
/// that look at results ("class", "exact", "element", "lse", "row") count as one, "result"; others stand as
/// they are. The diagnosis tells defects apart.
std::string signature(const std::string& op, const std::string& kernel, const Verdict& verdict);

}  // namespace attest::oracle
