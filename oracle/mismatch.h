// SPDX-License-Identifier: MIT
//
// Where in the output a failing case is wrong: the used budget of every place of the op's own grid.
//
//   op                              row                          column
//   mla_decode, verify_attention,
//   mla_sparse, mla_prefill,
//   dense_switch                    (request, query position)    head
//   merge_states                    token                        head
//   indexer_logits                  (request, row)               column of the logits
//   topk                            row                          the list as a whole
//   index_remap                     (request, row)               entry
//   cache_write                     token                        value, r<n> of the rope part, s<n> of the
//   scales block_table_expand              (request, step)              entry of the list that is wrong
//   work_plan                       (request, query row)         the row as a whole
//   spec_verify                     request                      the row as a whole
//
// Of attention also the keys that failing rows weigh wrongly, where the result tells (oracle/key_weights.h):
// (request, query position) by key, the worst of the heads.
//
// A pattern that takes a paragraph to describe is seen at once in such a map: every row but the first of each
// request, one head in sixteen, everything behind entry 64.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace attest::oracle {

struct Mismatch {
  static constexpr int most_rows = 64, most_columns = 128;
  static constexpr double not_checked = -1;

  struct Row {
    int request = 0, position = 0;
  };
  std::string axis;                  ///< what a column is: "head", "entry", ...
  std::vector<Row> rows;             ///< the first of its block
  std::vector<std::string> columns;  ///< the first of its block
  int row_block = 1, column_block = 1;
  /// [rows, columns] the largest of the block, above 1 fails; NaN where the result is none, infinity where
  /// no bound applies (another class, an exact rule), not_checked where nothing was claimed.
  std::vector<double> used;
  std::string says;              ///< one line about it, or empty
  std::vector<Mismatch> others;  ///< of the same result by other axes

  [[nodiscard]] bool empty() const { return used.empty(); }
  [[nodiscard]] double at(std::size_t row, std::size_t column) const {
    return used[row * columns.size() + column];
  }
};

/// Collects a map place by place, in any order.
class MismatchGrid {
 public:
  explicit MismatchGrid(std::string axis) : axis_(std::move(axis)) {}

  /// Places that nobody notes are not checked; of two notes of a place the worse one counts.
  void note(int request, int position, int column, double used);
  /// @param column_names by column; empty: their numbers
  [[nodiscard]] Mismatch map(const std::vector<std::string>& column_names = {}) const;

 private:
  std::string axis_;
  std::map<std::pair<int, int>, std::vector<double>> rows_;
  std::size_t columns_ = 0;
};

}  // namespace attest::oracle
