// SPDX-License-Identifier: MIT
//
// What part of a kernel's shape space a campaign reached: its cells, for attention one per formats, heads and
// longest q_len, and what became of each. A cell in which every case was refused is refused, not passed.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cases/case.h"
#include "fuzz/evaluate.h"
#include "fuzz/record.h"

namespace attest::fuzz {

/// Of one kernel.
class Cells {
 public:
  struct Counts {
    std::uint64_t run = 0;      ///< cells with a case that was put to the test
    std::uint64_t refused = 0;  ///< cells with none, because the kernel does not do them
    std::uint64_t failing = 0;  ///< of those run: with a finding
  };

  void add(const cases::Case& c, const Evaluation& evaluation);
  [[nodiscard]] Counts counts() const;
  /// Cases refused, by the kernel's words.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& refusals() const { return refusals_; }
  /// Spent on the cases, over all workers.
  [[nodiscard]] double seconds() const { return seconds_; }
  /// {"run", "refused", "failing", "refusals"}; no times, so that equal verdicts give equal bytes.
  [[nodiscard]] Json json() const;

 private:
  struct Cell {
    std::uint64_t tested = 0, refused = 0, failed = 0;
  };
  std::map<std::string, Cell> cells_;
  std::map<std::string, std::uint64_t> refusals_;
  double seconds_ = 0;
};

}  // namespace attest::fuzz
