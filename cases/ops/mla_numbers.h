// SPDX-License-Identifier: MIT
#pragma once

#include "cases/ops/mla_decode.h"

namespace attest::cases {

/// The rules of formats and scales, and of what a fill asks of them, for every op whose queries and cache
/// rows are those of mla_decode. Throws CaseError; see validate in cases/case.h.
void validate_mla_numbers(const char* op, const MlaDecode& p, Fill fill);

}  // namespace attest::cases
