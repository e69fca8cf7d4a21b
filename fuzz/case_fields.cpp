// SPDX-License-Identifier: MIT
#include "fuzz/case_fields.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "fuzz/strict_json.h"

namespace attest::fuzz {
namespace {

using Fields = std::map<std::string, Json>;

void widen(Fields& fields, const std::string& path, const Json& number) {
  const auto low = fields.try_emplace(path + ".min", number).first;
  const auto high = fields.try_emplace(path + ".max", number).first;
  if (number < low->second) low->second = number;
  if (high->second < number) high->second = number;
}

void flatten(Fields& fields, const std::string& path, const Json& value) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items())
      flatten(fields, path.empty() ? key : path + "." + key, member);
  } else if (value.is_array()) {
    fields[path + ".count"] = value.size();
    for (const Json& member : value) {
      if (member.is_number()) widen(fields, path, member);
      if (!member.is_object()) continue;
      for (const auto& [key, field] : member.items())
        if (field.is_number()) widen(fields, path + "." + key, field);
    }
  } else {
    fields[path] = value;
  }
}

bool meets(const Json& condition, const Json& value) {
  if (condition.is_array())
    return std::any_of(condition.begin(), condition.end(),
                       [&](const Json& one) { return meets(one, value); });
  if (condition.is_object() && condition.contains("not")) return condition.at("not") != value;
  if (condition.is_object())
    return value.is_number() && (!condition.contains("min") || condition.at("min") <= value) &&
           (!condition.contains("max") || value <= condition.at("max"));
  return condition == value;
}

std::string class_of(std::int64_t n) {
  if (n < 0) return "negative";
  const auto u = static_cast<std::uint64_t>(n);
  if (u <= 4 || std::has_single_bit(u)) return std::to_string(n);
  return fmt::format("{}..{}", std::bit_floor(u) + 1, std::bit_ceil(u) - 1);
}

std::string class_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_integer()) return class_of(value.get<std::int64_t>());
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text.starts_with("0x")) return text == "0x3f800000" ? "1" : "other";
    return text;
  }
  return value.is_null() ? "none" : "other";
}

}  // namespace

Fields fields_of(const Json& case_json) {
  Fields fields;
  for (const auto& [key, value] : case_json.items())
    if (key != "schema" && key != "op" && key != "seed") flatten(fields, key, value);
  return fields;
}

bool meets_all(const Fields& where, const Fields& fields) {
  return std::all_of(where.begin(), where.end(), [&](const auto& condition) {
    const auto field = fields.find(condition.first);
    return field != fields.end() && meets(condition.second, field->second);
  });
}

void check_condition(const Json& condition, const std::string& where) {
  if (condition.is_object()) check_members(condition, where, {}, {"min", "max", "not"});
}

bool matches(const std::string& glob, const std::string& text) {
  return ::fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

std::vector<std::string> strata_of(const Json& case_json) {
  const Fields fields = fields_of(case_json);
  std::vector<std::string> strata;
  strata.reserve(fields.size());
  for (const auto& [path, value] : fields) {
    if (path.ends_with(".min")) {
      const std::string base = path.substr(0, path.size() - 4);
      if (const auto max = fields.find(base + ".max"); max != fields.end()) {
        strata.push_back(fmt::format("{}.all={}", base, value == max->second ? "equal" : "different"));
        continue;
      }
    }
    strata.push_back(path + "=" + class_of(value));
  }
  return strata;
}

}  // namespace attest::fuzz
