// SPDX-License-Identifier: MIT
//
// What a case asks for, in words, for people who do not read its JSON.
#pragma once

#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"

namespace attest::fuzz {

/// One line each: the op and its shape, the requests (the first eight), formats and data, memory.
std::vector<std::string> asks(const cases::Case& c, const cases::Inputs& inputs);

}  // namespace attest::fuzz
