// SPDX-License-Identifier: MIT
//
// The one case on one kernel that a verb looks at closely.
#pragma once

#include <cstdint>
#include <string>

#include "cases/case.h"
#include "device/kernel.h"
#include "fuzz/evaluate.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {

struct Subject {
  std::string word;  ///< as it was named
  const device::Kernel* kernel = nullptr;
  cases::Case c;
  std::string detectors, schedule;
  std::string signature, output_digest;  ///< as the file recorded them; empty: it did not
};

/// Throws UsageError, CaseError, DeviceUnavailable as the words of replay do.
Subject select_subject(const SubjectOptions& options, const Common& common);

/// In a worker process: whatever the kernel does, this process lives.
Evaluation evaluate_isolated(const Subject& subject, const Common& common, std::uint64_t deadline_seconds);

}  // namespace attest::fuzz
