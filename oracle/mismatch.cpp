// SPDX-License-Identifier: MIT
#include "oracle/mismatch.h"

#include <algorithm>
#include <cmath>

namespace attest::oracle {
namespace {

bool worse(double a, double b) {
  if (std::isnan(b)) return false;
  return std::isnan(a) || a > b;
}

/// How many of `count` have to share a place so that at most `most` places are needed.
std::size_t block_of(std::size_t count, int most) {
  const auto limit = static_cast<std::size_t>(most);
  return std::max<std::size_t>(1, (count + limit - 1) / limit);
}

}  // namespace

void MismatchGrid::note(int request, int position, int column, double used) {
  std::vector<double>& row = rows_[{request, position}];
  const auto at = static_cast<std::size_t>(column);
  if (row.size() <= at) row.resize(at + 1, Mismatch::not_checked);
  if (worse(used, row[at])) row[at] = used;
  columns_ = std::max(columns_, row.size());
}

Mismatch MismatchGrid::map(const std::vector<std::string>& column_names) const {
  Mismatch map;
  map.axis = axis_;
  const std::size_t row_block = block_of(rows_.size(), Mismatch::most_rows);
  const std::size_t column_block = block_of(columns_, Mismatch::most_columns);
  map.row_block = static_cast<int>(row_block);
  map.column_block = static_cast<int>(column_block);
  for (std::size_t c = 0; c < columns_; c += column_block)
    map.columns.push_back(c < column_names.size() ? column_names[c] : std::to_string(c));
  std::size_t number = 0;
  for (const auto& [place, row] : rows_) {
    if (number % row_block == 0) {
      map.rows.push_back({place.first, place.second});
      map.used.resize(map.rows.size() * map.columns.size(), Mismatch::not_checked);
    }
    double* out = map.used.data() + number / row_block * map.columns.size();
    for (std::size_t c = 0; c < row.size(); ++c)
      if (worse(row[c], out[c / column_block])) out[c / column_block] = row[c];
    ++number;
  }
  return map;
}

}  // namespace attest::oracle
