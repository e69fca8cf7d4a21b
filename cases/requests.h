// SPDX-License-Identifier: MIT
//
// The requests of a case as every op's file form spells them: "requests": [{"q_len": 3, "kv_len": 37}, ...].
// Internal to cases/.
#pragma once

#include <vector>

#include "cases/json_object.h"
#include "cases/vocabulary.h"

namespace attest::cases {

/// Appends the entries of the required array "requests" of a shape.
void read_requests(const JsonObject& shape, std::vector<Request>& requests);
Json requests_json(const std::vector<Request>& requests);

/// Throws CaseError: 1..512 requests, each length in 0..its limit, at least one query in all.
void validate_requests(const std::vector<Request>& requests, int most_q_len, int most_kv_len);

}  // namespace attest::cases
