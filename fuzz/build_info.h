// SPDX-License-Identifier: MIT
//
// What this build is made of; every run folder carries it. A report without it is not evidence.
#pragma once

#include "fuzz/record.h"

namespace attest::fuzz {

Json build_info();

}  // namespace attest::fuzz
