// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace attest::fuzz::exchange {

/// " --worker '<command>'" as a shell takes it, for lines that reproduce; empty when there is none.
std::string worker_option(const std::string& command);

}  // namespace attest::fuzz::exchange
