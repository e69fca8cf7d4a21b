// SPDX-License-Identifier: MIT
//
// The page of one run: what happened, at a glance; then what is wrong, worst first; then what the run was
// worth (accuracy, coverage, speed, fidelity) and in what environment it was made.
#pragma once

#include <string>

#include "fuzz/report/run_numbers.h"

namespace attest::fuzz::report {

std::string page(const RunNumbers& run);

}  // namespace attest::fuzz::report
