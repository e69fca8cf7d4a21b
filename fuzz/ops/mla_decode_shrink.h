// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "cases/case.h"

namespace attest::fuzz {

std::vector<cases::Case> shrink_mla_decode(const cases::Case& c);
std::int64_t mla_decode_complexity(const cases::Case& c);

}  // namespace attest::fuzz
