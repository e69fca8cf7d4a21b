// SPDX-License-Identifier: MIT
#include "fuzz/case_fields.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>

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
