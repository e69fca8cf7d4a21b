// SPDX-License-Identifier: MIT
//
// One case on one kernel on one device: materialise, run, judge. What every verb of attest comes down to.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cases/case.h"
#include "device/kernel.h"
#include "oracle/verdict.h"

namespace attest::fuzz {

struct Evaluation {
  oracle::Verdict verdict;
  std::string output_digest;  ///< 16 hex digits over all output bytes; empty when the kernel returned none
  std::uint64_t wave_instructions = 0;  ///< simulator only
  double materialise_seconds = 0, run_seconds = 0, judge_seconds = 0;
  double reference_seconds = 0;   ///< the part of judge_seconds that oracle::JudgeCost tells apart
  device::Observations observed;  ///< what the chosen detectors saw
  /// Simulator only: which ways the kernels' branches went, by symbol (fuzz/branches.h).
  std::map<std::string, std::string> branches;
};

/// Throws device::DeviceError when the kernel's code object cannot be used at all, or a detector is none; any
/// other failure of attest itself becomes a harness_error verdict. Everything but the seconds is a function
/// of (device kind, kernel, case, detectors, schedule).
///
/// @param detectors "all", "none" or a list (Device::choose_detectors). A hard hazard makes the verdict
/// `hazard`, whose detail says what the judge thought of the result; a run that faulted stays a crash or
/// timeout, with the hazard in its detail. A pass in which a not-exact result decided an address or a branch
/// becomes `mistrusted`.
/// @param given the bytes of a call that was captured (fuzz/exchange/capture.h), instead of the case's own;
/// what a case would be changed into to compare results is then left out.
/// @param schedule the order of events (Device::choose_schedule). With the detector `schedule`, a pass is run
/// again in other orders and its bytes are compared (fuzz/schedule_check.h).
Evaluation evaluate(device::Device& device, const device::Kernel& kernel, const cases::Case& c,
                    const std::string& detectors = "none", const std::string& schedule = "plain",
                    const cases::Inputs* given = nullptr);

/// "mla_decode/attest/mla_decode+qlen_mask/fail/result/query rows identical"; empty for a verdict that is
/// not a finding (see is_finding).
std::string signature_of(const std::string& kernel, const cases::Case& c, const oracle::Verdict& verdict);

/// Case `number` of a campaign with `seed` on `kernel`: generate(its op, seed, number), moved into the
/// kernel's domain. A kernel that only the workers know gets mla_decode.
cases::Case case_for(const std::string& kernel, std::uint64_t seed, std::uint64_t number);

/// fail, crash, timeout, hazard, flaky and harness_error are findings; pass, unsupported and mistrusted are
/// not.
bool is_finding(oracle::VerdictKind kind);

}  // namespace attest::fuzz
