// SPDX-License-Identifier: MIT
//
// A case's JSON as a table that a person reads at a glance: one line per group of fields, requests as a list,
// floats as numbers and not as bits. What a field means says cases/case.h.
#pragma once

#include "fuzz/record.h"
#include "fuzz/report/html.h"

namespace attest::fuzz::report {

Html case_view(const Json& case_json);

}  // namespace attest::fuzz::report
