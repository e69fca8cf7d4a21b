// SPDX-License-Identifier: MIT
#pragma once

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/verdict.h"

namespace attest::oracle {

/// See judge in oracle/judge.h: what it says of op cache_write, guard zones aside. Output "pool": the bytes
/// of the input pool's extents, one after the other.
///
/// Exact where the rule is: bf16 copies, rope parts, everything outside of the written slots, and with the
/// convention `divide` or `reciprocal` every byte. With `either` a value x may be quantised as x / s or as
/// x * (1 / s). Both are within three f32 roundings of the exact quotient, |q' - q| <= 3 * 2^-24 |q|, so a
/// byte is right exactly when it is fp8(q') for some q' of that interval: within half a step of the quantiser
/// of such a q'. fp8 ascends with its argument, so that is from fp8(q - e) to fp8(q + e). A group's scale may
/// then be off by as much itself, amax / ceiling or amax * (1 / ceiling), and its values are judged by the
/// scale that was written.
Verdict judge_cache_write(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs);

}  // namespace attest::oracle
