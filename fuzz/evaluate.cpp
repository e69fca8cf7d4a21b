// SPDX-License-Identifier: MIT
#include "fuzz/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "cases/inputs.h"
#include "device/simulator/detect/detectors.h"
#include "fuzz/exchange/settled_by_worker.h"
#include "fuzz/generate.h"
#include "fuzz/schedule_check.h"
#include "oracle/judge.h"
#include "oracle/precision.h"
#include "oracle/relation.h"

namespace attest::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string digest(const cases::Outputs& outputs) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const auto& tensor : outputs.tensors)
    for (const std::byte b : tensor.bytes) hash = (hash ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

oracle::VerdictKind kind_of(device::Status status) {
  switch (status) {
    case device::Status::crash:
      return oracle::VerdictKind::crash;
    case device::Status::timeout:
      return oracle::VerdictKind::timeout;
    case device::Status::hazard:
      return oracle::VerdictKind::hazard;
    case device::Status::ok:
    case device::Status::harness_error:
      break;
  }
  return oracle::VerdictKind::harness_error;
}

void note_failed_run(Evaluation& result, const device::Outcome& outcome) {
  result.verdict.kind = kind_of(outcome.status);
  result.verdict.stage = outcome.stage;
  result.verdict.diagnosis = outcome.diagnosis;
  result.verdict.detail = outcome.detail;
}

/// The reference agrees; do the relations?
void relate(Evaluation& result, device::Device& device, const device::Kernel& kernel, const cases::Case& c,
            const cases::Inputs& inputs, const device::Outcome& original) {
  auto start = Clock::now();
  const std::vector<oracle::Relation> relations =
      oracle::relations(c, inputs, oracle::profile(kernel.precision()));
  result.materialise_seconds += seconds_since(start);
  for (const oracle::Relation& relation : relations) {
    const device::Kernel* second = &kernel;
    if (const std::string op = cases::op_name(relation.c.problem); op != kernel.op())
      second = device::find_kernel(fmt::format("{}/{}", kernel.contract(), op));
    if (second == nullptr || second->refuses(relation.c)) continue;
    start = Clock::now();
    device::Outcome changed;
    try {
      changed = second->run(device, relation.c, relation.inputs);
    } catch (const exchange::SettledByWorker& settled) {
      if (settled.verdict.kind == oracle::VerdictKind::unsupported) continue;
      throw;
    }
    result.run_seconds += seconds_since(start);
    result.wave_instructions += changed.wave_instructions;
    if (changed.status != device::Status::ok) return note_failed_run(result, changed);
    start = Clock::now();
    oracle::Verdict verdict = relation.compare(original.outputs, changed.outputs);
    result.judge_seconds += seconds_since(start);
    if (verdict.kind == oracle::VerdictKind::pass) continue;
    verdict.stage = relation.name;
    result.verdict = std::move(verdict);
    return;
  }
}

bool compares_schedules(const std::string& detectors) {
  using device::sim::detect::Detector;
  const auto set = device::sim::detect::DetectorSet::parse(detectors);
  return set && set->has(Detector::schedule);
}

void evaluate_into(Evaluation& result, device::Device& device, const device::Kernel& kernel,
                   const cases::Case& c, const std::string& detectors, const std::string& schedule,
                   const cases::Inputs* given) {
  if (auto why = kernel.refuses(c)) {
    result.verdict.kind = oracle::VerdictKind::unsupported;
    result.verdict.detail = *why;
    return;
  }
  auto start = Clock::now();
  std::optional<cases::Inputs> made;
  if (given == nullptr) made = cases::materialise(c);
  const cases::Inputs& inputs = given == nullptr ? *made : *given;
  result.materialise_seconds = seconds_since(start);

  start = Clock::now();
  const device::Outcome outcome = kernel.run(device, c, inputs);
  result.run_seconds = seconds_since(start);
  result.wave_instructions = outcome.wave_instructions;
  if (outcome.status != device::Status::ok) return note_failed_run(result, outcome);
  result.output_digest = digest(outcome.outputs);

  start = Clock::now();
  oracle::JudgeCost cost;
  result.verdict = oracle::judge(c, inputs, outcome.outputs, oracle::profile(kernel.precision()), &cost);
  result.judge_seconds = seconds_since(start);
  result.reference_seconds = cost.reference_seconds;
  if (result.verdict.kind == oracle::VerdictKind::pass && given == nullptr)
    relate(result, device, kernel, c, inputs, outcome);
  if (result.verdict.kind != oracle::VerdictKind::pass || !compares_schedules(detectors)) return;
  result.observed = device.take_observations();
  const auto& seen = result.observed.hazards;
  if (std::any_of(seen.begin(), seen.end(), [](const auto& h) { return h.hard; })) return;  // says more
  start = Clock::now();
  if (auto verdict = schedule_dependence(device, kernel, c, inputs, schedule, outcome))
    result.verdict = *verdict;
  result.run_seconds += seconds_since(start);
}

/// What the judge thought of a result that is now a hazard.
std::string said_of_result(const oracle::Verdict& verdict) {
  switch (verdict.kind) {
    case oracle::VerdictKind::fail:
      return "the result is wrong: " + verdict.diagnosis;
    case oracle::VerdictKind::mistrusted:
      return "the result proves nothing: " + verdict.detail;
    default:
      return "the result is right all the same";
  }
}

/// What the detectors saw, and what it makes of the verdict.
void weigh(Evaluation& result) {
  using oracle::VerdictKind;
  oracle::Verdict& verdict = result.verdict;
  const auto& hazards = result.observed.hazards;
  const auto hard = std::find_if(hazards.begin(), hazards.end(), [](const auto& h) { return h.hard; });
  if (hard != hazards.end()) {
    switch (verdict.kind) {
      case VerdictKind::crash:
      case VerdictKind::timeout:
        verdict.detail += "; before that, " + hard->line;
        return;
      case VerdictKind::pass:
      case VerdictKind::mistrusted:
      case VerdictKind::fail:
        verdict.detail = fmt::format("{}; {}", hard->line, said_of_result(verdict));
        verdict.kind = VerdictKind::hazard;
        verdict.stage = hard->detector;
        verdict.diagnosis = hard->signature;
        return;
      default:
        return;
    }
  }
  const auto inexact =
      std::find_if(hazards.begin(), hazards.end(), [](const auto& h) { return h.detector == "fidelity"; });
  if (inexact != hazards.end() && verdict.kind == VerdictKind::pass) {
    verdict.kind = VerdictKind::mistrusted;
    verdict.stage = inexact->detector;
    verdict.diagnosis = "a result that is not bit-exact decides an address or a branch";
    verdict.detail = inexact->line;
  }
}

}  // namespace

Evaluation evaluate(device::Device& device, const device::Kernel& kernel, const cases::Case& c,
                    const std::string& detectors, const std::string& schedule, const cases::Inputs* given) {
  Evaluation result;
  device.choose_detectors(detectors);
  device.choose_schedule(schedule);
  try {
    evaluate_into(result, device, kernel, c, detectors, schedule, given);
  } catch (const device::DeviceError&) {
    throw;
  } catch (const exchange::SettledByWorker& settled) {
    result.verdict = settled.verdict;
  } catch (const std::exception& error) {
    result.verdict = {};
    result.verdict.kind = oracle::VerdictKind::harness_error;
    result.verdict.stage = "harness";
    result.verdict.diagnosis = "exception";
    result.verdict.detail = error.what();
  }
  if (device::Observations seen = device.take_observations(); result.observed.empty())
    result.observed = std::move(seen);
  weigh(result);
  return result;
}

cases::Case case_for(const std::string& kernel, std::uint64_t seed, std::uint64_t number) {
  const device::Kernel* k = device::find_kernel(kernel);
  if (k == nullptr) return generate("mla_decode", seed, number);
  cases::Case c = generate(k->op(), seed, number);
  const auto domain = k->domain();
  return domain ? cases::fit(std::move(c), *domain) : c;
}

bool is_finding(oracle::VerdictKind kind) {
  switch (kind) {
    case oracle::VerdictKind::pass:
    case oracle::VerdictKind::unsupported:
    case oracle::VerdictKind::mistrusted:
      return false;
    case oracle::VerdictKind::fail:
    case oracle::VerdictKind::crash:
    case oracle::VerdictKind::timeout:
    case oracle::VerdictKind::hazard:
    case oracle::VerdictKind::flaky:
    case oracle::VerdictKind::harness_error:
      break;
  }
  return true;
}

std::string signature_of(const std::string& kernel, const cases::Case& c, const oracle::Verdict& verdict) {
  if (!is_finding(verdict.kind)) return {};
  return oracle::signature(cases::op_name(c.problem), kernel, verdict);
}

}  // namespace attest::fuzz
