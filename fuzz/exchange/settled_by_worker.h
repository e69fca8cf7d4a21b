// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <utility>

#include "oracle/verdict.h"

namespace attest::fuzz::exchange {

/// Thrown by the run of a kernel in another program when its answer is a verdict already: it does not do the
/// case, it failed, or what it gave cannot be judged.
struct SettledByWorker : std::runtime_error {
  explicit SettledByWorker(oracle::Verdict v) : std::runtime_error(v.diagnosis), verdict(std::move(v)) {}
  oracle::Verdict verdict;
};

}  // namespace attest::fuzz::exchange
