// SPDX-License-Identifier: MIT
#include "fuzz/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace attest::fuzz {

using Clock = std::chrono::steady_clock;

Progress::Progress(bool quiet)
    : quiet_(quiet),
      terminal_(::isatty(2) == 1),
      next_(Clock::now() + (terminal_ ? std::chrono::seconds(0) : std::chrono::seconds(60))) {}

Progress::~Progress() {
  if (line_open_) std::fputs("\r\033[K", stderr);
}

void Progress::update(const std::string& line) {
  if (quiet_ || Clock::now() < next_) return;
  if (terminal_) {
    fmt::print(stderr, "\r\033[K{}", line);
    std::fflush(stderr);
    line_open_ = true;
    next_ = Clock::now() + std::chrono::milliseconds(200);
  } else {
    fmt::print(stderr, "{}\n", line);
    next_ = Clock::now() + std::chrono::seconds(60);
  }
}

void Progress::say(const std::string& line) {
  if (quiet_) return;
  fmt::print(stderr, "{}{}\n", line_open_ ? "\r\033[K" : "", line);
  line_open_ = false;
}

}  // namespace attest::fuzz
