// SPDX-License-Identifier: MIT
//
// attest completion bash: a completion script made from the declared verbs and options themselves, so that it
// cannot fall behind them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace attest::fuzz {

std::string bash_completion(const CLI::App& app);

}  // namespace attest::fuzz
