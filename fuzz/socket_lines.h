// SPDX-License-Identifier: MIT
//
// Lines over a socket: what the pool and its workers speak.
#pragma once

#include <optional>
#include <string>

namespace attest::fuzz {

/// False when the other side is gone.
bool send_line(int socket, std::string text);

/// Appends what has arrived to `inbox`, without waiting. False when the other side is gone.
bool receive_available(int socket, std::string& inbox);

/// The first whole line of `inbox`, taken out of it.
std::optional<std::string> take_line(std::string& inbox);

/// Waits for a line; nullopt when the other side is gone.
std::optional<std::string> receive_line(int socket, std::string& inbox);

}  // namespace attest::fuzz
