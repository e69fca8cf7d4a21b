// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/verdict.h"

namespace attest::fuzz::exchange {

/// The case that `attest export` wrote to `path`. Throws UsageError when the file is no safetensors file, or
/// was not written by it.
cases::Case exported_case(const std::string& path);

/// What a program that declares no arithmetic is judged by: the widest of the bf16 kind.
inline constexpr const char* default_precision = "bf16-any";

/// Outputs in `path`, judged against the reference. Throws UsageError: the file cannot be used, lacks a
/// tensor, or holds one of another shape or element type; an unknown profile; an op that is not exchanged.
oracle::Verdict check_outputs(const cases::Case& c, const std::string& path, const std::string& precision);

}  // namespace attest::fuzz::exchange
