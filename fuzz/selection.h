// SPDX-License-Identifier: MIT
//
// From the words of the command line to kernels, cases and workers. Every refusal is one line that says what
// would have been accepted.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "device/kernel.h"
#include "fuzz/record.h"
#include "fuzz/verbs.h"
#include "fuzz/worker.h"

namespace attest::fuzz {

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws UsageError when there is no such kernel, naming the closest ones, or when it is for another arch.
const device::Kernel& select_kernel(const std::string& name, const Common& common);

/// The faultless kernels of `op`. Throws UsageError when there is none.
std::vector<std::string> kernels_of_op(const std::string& op, const Common& common);

/// The kernels of a calling convention: "aiter" is every one of AITER's. Throws UsageError when there is
/// none.
std::vector<std::string> kernels_of_contract(const std::string& contract, const Common& common);

/// A case file, a failure file, or SEED:NUMBER (case NUMBER of the campaign with that seed on `kernel`, which
/// has been selected). Throws UsageError, CaseError.
Reproduction select_case(const std::string& word, const std::string& kernel);

/// Workers for `common.device`; jobs 0 = one per core. Throws PoolError, UsageError.
PoolOptions pool_options(const Common& common, int jobs, std::uint64_t deadline_seconds);

}  // namespace attest::fuzz
