// SPDX-License-Identifier: MIT
//
// Simpler batches of requests, for the shrinkers of all ops.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/vocabulary.h"

namespace attest::fuzz {

/// Most aggressive first: fewer requests, all of them shorter, single ones shorter. Each has at least one
/// query and is smaller in `request_complexity`.
std::vector<std::vector<cases::Request>> simpler_requests(const std::vector<cases::Request>& requests,
                                                          int page_size);

/// One per request, plus their lengths.
std::int64_t request_complexity(const std::vector<cases::Request>& requests);

}  // namespace attest::fuzz
