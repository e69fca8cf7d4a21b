// SPDX-License-Identifier: MIT
//
// The support manifest, cases/support.json: what must run and pass. A kernel that is not built, a device that
// skips, an op that lost its tests: each looks green until somebody counts. A cell is a promise that is
// counted:
//
//   {"schema": 1, "fresh_cases": 200, "cells": [
//     {"kernel": "attest/mla_decode", "op": "mla_decode", "arch": "gfx942", "device": "sim"},
//     {..., "least_tested": 100}
//   ]}
//
// The gate of a device and arch runs the cells of that device and arch: the corpus of the op and
// `fresh_cases` fresh cases each. A cell is kept when at least `least_tested` (default 1) of its cases were
// really tested (neither unsupported nor mistrusted nor quarantined) and none failed with news.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attest::fuzz {

struct Cell {
  std::string kernel, op, arch, device;
  std::uint64_t least_tested = 1;
};

struct Support {
  std::uint64_t fresh_cases = 200;  ///< per cell
  std::vector<Cell> cells;

  /// Throws UsageError with one line that names file, cell and field.
  static Support read(const std::string& path);
  [[nodiscard]] std::vector<Cell> of(const std::string& arch, const std::string& device) const;
};

}  // namespace attest::fuzz
