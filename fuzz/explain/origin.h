// SPDX-License-Identifier: MIT
//
// How a stored value came about, for people: the simulator's answer (hip_api/simulator.h,
// attest_sim_followed) in lines, with what was read in the case's own terms.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"
#include "fuzz/record.h"

namespace attest::fuzz {

/// At most about `most` lines. @param answer with "found" true
std::vector<std::string> origin_lines(const cases::Case& c, const cases::Inputs& inputs, const Json& answer,
                                      std::size_t most);

/// What was read, in contract terms: {"kv_pool": {"value": ["page 3, slot 0 of 16: ...", ...]}}, every line.
Json reads_in_contract_terms(const cases::Case& c, const cases::Inputs& inputs, const Json& answer);

}  // namespace attest::fuzz
