// SPDX-License-Identifier: MIT
#pragma once

#include "oracle/verdict.h"

namespace attest::fuzz {

/// On stdout: diagnosis, detail, what was checked, and the worst elements as a table. Indented lines below a
/// headline that the caller writes.
void print_verdict(const oracle::Verdict& verdict);

/// Of a verb that comes down to one verdict: 0 pass, 1 a finding, 3 nothing was proved, 4 attest failed.
int exit_of(const oracle::Verdict& verdict);

}  // namespace attest::fuzz
