// SPDX-License-Identifier: MIT
#include "fuzz/verdict_lines.h"

#include <fmt/format.h>

#include <string>

#include "fuzz/evaluate.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {

int exit_of(const oracle::Verdict& verdict) {
  if (verdict.kind == oracle::VerdictKind::harness_error) return exit_harness;
  if (is_finding(verdict.kind)) return exit_verdict;
  return verdict.kind == oracle::VerdictKind::pass ? exit_ok : exit_nothing_tested;
}

void print_verdict(const oracle::Verdict& v) {
  if (!v.diagnosis.empty()) fmt::print("  diagnosis   {}\n", v.diagnosis);
  if (!v.detail.empty()) fmt::print("  detail      {}\n", v.detail);
  if (v.elements_checked > 0)
    fmt::print("  checked     {} elements, {} failed in {} rows; used budget {:.3g} ({})\n",
               v.elements_checked, v.elements_failed, v.rows_failed, v.used_budget, v.lane);
  if (!v.worst.empty()) {
    fmt::print("  {:>7} {:>8} {:>5} {:>6} {:>14} {:>14} {:>10}  {}\n", "request", "position", "head",
               "column", "expected", "got", "bound", "term");
    for (const auto& w : v.worst)
      fmt::print("  {:>7} {:>8} {:>5} {:>6} {:>14.7g} {:>14.7g} {:>10.3g}  {}\n", w.request, w.position,
                 w.head, w.column < 0 ? "lse" : std::to_string(w.column), w.expected, w.got, w.bound, w.term);
  }
}

}  // namespace attest::fuzz
