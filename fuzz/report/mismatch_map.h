// SPDX-License-Identifier: MIT
//
// Where a failing result is wrong: the used budget (largest error / bound) of each query row and head, as a
// failure file holds it under "mismatch":
//
//   {"original": MAP, "minimised": MAP}, where MAP is
//   {"rows": [{"request": 0, "position": 2}, ...], "columns": ["0", "1", "lse"], "axis": "head",
//    "used": [[0.2, 17.5, null], ...],                  [rows][columns]; "nan", "inf"; null: not checked
//    "row_block": 4, "column_block": 2,                 absent: 1; else the worst of so many
//    "says": "...", "others": [MAP, ...]}               absent: none
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fuzz/record.h"

namespace attest::fuzz::report {

struct MismatchMap {
  static constexpr double not_checked = -1;

  struct Row {
    int request = 0, position = 0;
  };
  std::vector<Row> rows;
  std::vector<std::string> columns;
  std::string axis;                       ///< what a column is: "head"
  std::vector<std::vector<double>> used;  ///< [rows][columns]; NaN and inf as they are
  int row_block = 1, column_block = 1;
  std::string says;                 ///< one line, or empty
  std::vector<MismatchMap> others;  ///< of the same result, by other axes
};

/// nullopt when `json` is no such map, or one without cells.
std::optional<MismatchMap> read_mismatch(const Json& json);

}  // namespace attest::fuzz::report
