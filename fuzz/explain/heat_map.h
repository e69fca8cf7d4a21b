// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "oracle/mismatch.h"

namespace attest::fuzz {

/// A mismatch map as text, one character a place, and a line that says what the characters mean. At most
/// 64 rows of 128 characters, as the map itself.
///
///   request  position  head 0 to 15
///         0         0  ................
///         0         1  ..NN......#+....
std::vector<std::string> heat_map(const oracle::Mismatch& map);

}  // namespace attest::fuzz
