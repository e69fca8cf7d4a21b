// SPDX-License-Identifier: MIT
#include "fuzz/support.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "fuzz/strict_json.h"
#include "fuzz/usage_error.h"

namespace attest::fuzz {
namespace {

std::uint64_t count_member(const Json& json, const std::string& where, const char* name,
                           std::uint64_t otherwise) {
  if (!json.contains(name)) return otherwise;
  if (!json.at(name).is_number_unsigned() || json.at(name) == 0)
    throw UsageError(fmt::format("{}: '{}' must be a count above 0", where, name));
  return json.at(name).get<std::uint64_t>();
}

}  // namespace

Support Support::read(const std::string& path) {
  const Json json = read_json_object(path);
  check_members(json, path, {"schema", "cells"}, {"fresh_cases"});
  if (!json.at("cells").is_array()) throw UsageError(fmt::format("{}: cells: must be a list", path));
  Support support;
  support.fresh_cases = count_member(json, path, "fresh_cases", support.fresh_cases);
  std::set<std::string> seen;
  for (const Json& entry : json.at("cells")) {
    const std::string where = fmt::format("{}: cell {}", path, support.cells.size());
    check_members(entry, where, {"kernel", "op", "arch", "device"}, {"least_tested"});
    Cell cell;
    cell.kernel = string_member(entry, where, "kernel");
    cell.op = string_member(entry, where, "op");
    cell.arch = string_member(entry, where, "arch");
    cell.device = string_member(entry, where, "device");
    cell.least_tested = count_member(entry, where, "least_tested", 1);
    if (cell.device != "sim" && cell.device != "hip")
      throw UsageError(fmt::format("{}: device: must be sim or hip, not '{}'", where, cell.device));
    if (!seen.insert(fmt::format("{} {} {}", cell.kernel, cell.arch, cell.device)).second)
      throw UsageError(
          fmt::format("{}: {} on {} {} is promised twice", where, cell.kernel, cell.arch, cell.device));
    support.cells.push_back(std::move(cell));
  }
  return support;
}

std::vector<Cell> Support::of(const std::string& arch, const std::string& device) const {
  std::vector<Cell> here;
  std::copy_if(cells.begin(), cells.end(), std::back_inserter(here),
               [&](const Cell& cell) { return cell.arch == arch && cell.device == device; });
  return here;
}

}  // namespace attest::fuzz
