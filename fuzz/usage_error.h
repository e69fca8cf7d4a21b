// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>

namespace attest::fuzz {

/// Words of the command line or the environment that cannot be meant: what() is one line that says what would
/// have been accepted. Exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace attest::fuzz
