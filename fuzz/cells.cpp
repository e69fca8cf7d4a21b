// SPDX-License-Identifier: MIT
#include "fuzz/cells.h"

#include <fmt/format.h>

#include <algorithm>

namespace attest::fuzz {
namespace {

std::string cell_of(const cases::Case& c) {
  const auto* p = std::get_if<cases::MlaDecode>(&c.problem);
  if (p == nullptr) return cases::op_name(c.problem);
  int longest = 0;
  for (const cases::Request& r : p->requests) longest = std::max(longest, r.q_len);
  return fmt::format("{}/{} {} heads q_len {}", cases::name(p->q_format), cases::name(p->kv_format), p->heads,
                     longest);
}

}  // namespace

void Cells::add(const cases::Case& c, const Evaluation& evaluation) {
  seconds_ += evaluation.materialise_seconds + evaluation.run_seconds + evaluation.judge_seconds;
  Cell& cell = cells_[cell_of(c)];
  const oracle::VerdictKind kind = evaluation.verdict.kind;
  if (kind == oracle::VerdictKind::unsupported) {
    ++cell.refused;
    ++refusals_[evaluation.verdict.detail];
  } else if (kind != oracle::VerdictKind::mistrusted && kind != oracle::VerdictKind::harness_error) {
    ++cell.tested;
    if (is_finding(kind)) ++cell.failed;
  }
}

Cells::Counts Cells::counts() const {
  Counts counts;
  for (const auto& [name, cell] : cells_) {
    if (cell.tested > 0)
      ++counts.run;
    else if (cell.refused > 0)
      ++counts.refused;
    if (cell.failed > 0) ++counts.failing;
  }
  return counts;
}

Json Cells::json() const {
  const Counts of = counts();
  Json refusals = Json::object();
  for (const auto& [why, count] : refusals_) refusals[why] = count;
  return {
      {"run", of.run}, {"refused", of.refused}, {"failing", of.failing}, {"refusals", std::move(refusals)}};
}

}  // namespace attest::fuzz
