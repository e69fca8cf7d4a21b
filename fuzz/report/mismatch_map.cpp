// SPDX-License-Identifier: MIT
#include "fuzz/report/mismatch_map.h"

#include <cmath>
#include <limits>

namespace attest::fuzz::report {
namespace {

double cell(const Json& json) {
  if (json.is_null()) return MismatchMap::not_checked;
  if (json.is_number()) return json.get<double>();
  return json.get<std::string>() == "inf" ? std::numeric_limits<double>::infinity()
                                          : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::optional<MismatchMap> read_mismatch(const Json& json) {
  try {
    MismatchMap map;
    for (const Json& row : json.at("rows"))
      map.rows.push_back({row.at("request").get<int>(), row.at("position").get<int>()});
    for (const Json& column : json.at("columns")) map.columns.push_back(column.get<std::string>());
    map.axis = json.value("axis", "column");
    map.row_block = json.value("row_block", 1);
    map.column_block = json.value("column_block", 1);
    for (const Json& row : json.at("used")) {
      std::vector<double> cells;
      for (const Json& value : row) cells.push_back(cell(value));
      if (cells.size() != map.columns.size()) return std::nullopt;
      map.used.push_back(std::move(cells));
    }
    if (map.used.size() != map.rows.size() || map.rows.empty() || map.columns.empty()) return std::nullopt;
    map.says = json.value("says", "");
    for (const Json& other : json.value("others", Json::array()))
      if (auto read = read_mismatch(other)) map.others.push_back(*std::move(read));
    return map;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace attest::fuzz::report
