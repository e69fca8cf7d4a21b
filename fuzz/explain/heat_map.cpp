// SPDX-License-Identifier: MIT
#include "fuzz/explain/heat_map.h"

#include <fmt/format.h>

#include <cmath>

namespace attest::fuzz {
namespace {

char symbol(double used) {
  if (used == oracle::Mismatch::not_checked) return ' ';
  if (std::isnan(used)) return 'N';
  if (std::isinf(used)) return '!';
  if (used <= 1) return '.';
  if (used <= 10) return '-';
  return used <= 1000 ? '+' : '#';
}

}  // namespace

std::vector<std::string> heat_map(const oracle::Mismatch& map) {
  if (map.empty()) return {};
  std::vector<std::string> lines;
  lines.push_back(fmt::format("request  position  {} {}{}", map.axis, map.columns.front(),
                              map.columns.size() > 1 ? " to " + map.columns.back() : ""));
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    std::string row;
    for (std::size_t c = 0; c < map.columns.size(); ++c) row += symbol(map.at(r, c));
    lines.push_back(fmt::format("{:>7}  {:>8}  {}", map.rows[r].request, map.rows[r].position, row));
  }
  lines.emplace_back(
      ". within the bound, - up to 10 times it, + up to 1000 times, # more, ! wrong where no bound "
      "applies, N not a number");
  if (map.row_block > 1 || map.column_block > 1)
    lines.push_back(
        fmt::format("each character is the worst of {} rows by {} columns", map.row_block, map.column_block));
  return lines;
}

}  // namespace attest::fuzz
