// SPDX-License-Identifier: MIT
//
// The live line of a long run: rewritten in place on a terminal, one plain line a minute elsewhere, on
// stderr.
#pragma once

#include <chrono>
#include <string>

namespace attest::fuzz {

class Progress {
 public:
  /// @param quiet says nothing at all
  explicit Progress(bool quiet = false);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The current state of affairs; shown when it is time to.
  void update(const std::string& line);
  /// A line that stays.
  void say(const std::string& line);

 private:
  bool quiet_, terminal_;
  bool line_open_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace attest::fuzz
