// SPDX-License-Identifier: MIT
#include "fuzz/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "fuzz/usage_error.h"

namespace attest::fuzz {

Json read_json_object(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UsageError(fmt::format("{}: cannot be opened", path));
  std::ostringstream text;
  text << file.rdbuf();
  Json json;
  try {
    json = Json::parse(text.str());
  } catch (const Json::exception& error) {
    throw UsageError(fmt::format("{}: not valid JSON (byte {})", path,
                                 dynamic_cast<const Json::parse_error*>(&error) != nullptr
                                     ? static_cast<const Json::parse_error&>(error).byte
                                     : 0));
  }
  if (!json.is_object() || !json.contains("schema") || json.at("schema") != 1)
    throw UsageError(fmt::format("{}: schema: only 1 is known", path));
  return json;
}

void check_members(const Json& json, const std::string& where,
                   std::initializer_list<std::string_view> required,
                   std::initializer_list<std::string_view> optional) {
  if (!json.is_object()) throw UsageError(fmt::format("{}: must be an object", where));
  const auto in = [](std::initializer_list<std::string_view> list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const auto& [name, value] : json.items())
    if (!in(required, name) && !in(optional, name))
      throw UsageError(fmt::format("{}: unknown field '{}'", where, name));
  for (const std::string_view name : required)
    if (!json.contains(name)) throw UsageError(fmt::format("{}: '{}' is missing", where, name));
}

std::string string_member(const Json& json, const std::string& where, const char* name,
                          const std::string& otherwise) {
  if (!json.contains(name)) return otherwise;
  if (!json.at(name).is_string()) throw UsageError(fmt::format("{}: '{}' must be a string", where, name));
  return json.at(name).get<std::string>();
}

}  // namespace attest::fuzz
