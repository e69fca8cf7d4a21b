// SPDX-License-Identifier: MIT
//
// The part of fuzz/generate.h that knows op mla_decode.
#pragma once

#include <rapidcheck.h>

#include <vector>

#include "cases/case.h"

namespace attest::fuzz {

rc::Gen<cases::Case> mla_decode_case();

std::vector<cases::Case> shrink_mla_decode(const cases::Case& c);
std::int64_t mla_decode_complexity(const cases::MlaDecode& p);
std::int64_t mla_decode_work(const cases::MlaDecode& p);

}  // namespace attest::fuzz
