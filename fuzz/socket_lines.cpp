// SPDX-License-Identifier: MIT
#include "fuzz/socket_lines.h"

#include <sys/socket.h>

#include <cerrno>

namespace attest::fuzz {
namespace {

/// True while the other side is there.
bool receive(int socket, std::string& inbox, int flags) {
  for (;;) {
    char buffer[65536];
    const ssize_t n = ::recv(socket, buffer, sizeof buffer, flags);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (n <= 0) return false;
    inbox.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
}

}  // namespace

bool send_line(int socket, std::string text) {
  text += '\n';
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t n = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

bool receive_available(int socket, std::string& inbox) {
  return receive(socket, inbox, MSG_DONTWAIT);
}

std::optional<std::string> take_line(std::string& inbox) {
  const auto end = inbox.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = inbox.substr(0, end);
  inbox.erase(0, end + 1);
  return line;
}

std::optional<std::string> receive_line(int socket, std::string& inbox) {
  for (;;) {
    if (auto line = take_line(inbox)) return line;
    if (!receive(socket, inbox, 0)) return std::nullopt;
  }
}

}  // namespace attest::fuzz
