// SPDX-License-Identifier: MIT
//
// Which branches of a kernel its cases executed. The simulator tells, for every function of a kernel that a
// case launched, which ways its conditional branches went (device/simulator/hip_api/simulator.h,
// attest_sim_branches): one digit per branch, bit 0 for going on and bit 1 for being taken. A GPU tells
// nothing.
//
// A branch is the wave's: what single lanes do under EXEC is no branch. So "all executed" does not mean that
// all was tried, but a side that was never executed is code that was never tested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "fuzz/record.h"

namespace attest::fuzz {

/// By the function's symbol: "0312".
using BranchWays = std::map<std::string, std::string>;

/// What the cases of one kernel executed together.
class BranchCoverage {
 public:
  /// Returns the number of sides that no case before had executed.
  std::size_t add(const BranchWays& ways);

  /// Sides of conditional branches, two each, over the functions that were launched.
  [[nodiscard]] std::size_t executed() const { return executed_; }
  [[nodiscard]] std::size_t total() const;
  /// {"executed", "total", "functions": {"mla_decode_bf16_bf16": {"executed", "total", "ways": "0312"}}}
  [[nodiscard]] Json json() const;

 private:
  BranchWays ways_;
  std::size_t executed_ = 0;
};

}  // namespace attest::fuzz
