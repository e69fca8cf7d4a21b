// SPDX-License-Identifier: MIT
#include "cases/json_object.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <set>

namespace attest::cases {
namespace {

std::string child(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

/// A key as it stands in JSON, without its quotes: a message stays one line whatever the file holds.
std::string escaped(const std::string& key) {
  const std::string quoted = nlohmann::json(key).dump(-1, ' ', true);
  return quoted.substr(1, quoted.size() - 2);
}

bool hex(const nlohmann::json& value, std::size_t least, std::size_t most, std::uint64_t& out) {
  if (!value.is_string()) return false;
  const std::string_view text = value.get_ref<const std::string&>();
  if (!text.starts_with("0x") || text.size() < 2 + least || text.size() > 2 + most) return false;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), out, 16);
  return error == std::errc() && end == text.data() + text.size();
}

int integer(const nlohmann::json& value, const std::string& field) {
  if (!value.is_number_integer()) refuse(field, "must be an integer, not " + shown(value));
  constexpr std::int64_t limit = 1'000'000'000;
  const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{limit};
  if (huge || value.get<std::int64_t>() > limit || value.get<std::int64_t>() < -limit) {
    refuse(field, shown(value) + " is far out of range");
  }
  return static_cast<int>(value.get<std::int64_t>());
}

template <typename Value>
void check_range(const std::string& field, Value value, Value low, Value high) {
  if (!(value >= low && value <= high)) {
    throw CaseError(fmt::format("{}: {} is outside {}..{}", field, value, low, high));
  }
}

}  // namespace

void refuse(const std::string& field, const std::string& rule) {
  throw CaseError(field + ": " + rule);
}

// Objects and arrays by kind only: dump is recursive, and a file
/// may nest deeper than the stack.
std::string shown(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

// (nlohmann::json keeps the last of two equal keys, so duplicates are caught in its parser callback.)
nlohmann::json parse_text(std::string_view text) {
  struct Level {
    std::set<std::string> keys;
    std::string last_key;
  };
  std::vector<Level> levels;
  const auto watch = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (event == nlohmann::json::parse_event_t::object_start) levels.emplace_back();
    if (event == nlohmann::json::parse_event_t::object_end) levels.pop_back();
    if (event == nlohmann::json::parse_event_t::key) {
      Level& level = levels.back();
      level.last_key = parsed.get_ref<const std::string&>();
      if (!level.keys.insert(level.last_key).second) {
        std::string path;
        for (const Level& l : levels) path = child(path, escaped(l.last_key));
        refuse(path, "given twice");
      }
    }
    return true;
  };
  try {
    return nlohmann::json::parse(text, watch);
  } catch (const nlohmann::json::parse_error& error) {
    const std::size_t at = error.byte == 0 ? 0 : std::min(error.byte - 1, text.size());
    const std::string_view before = text.substr(0, at);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    throw CaseError(fmt::format("line {}, column {}: not valid JSON", line, at - line_start + 1));
  } catch (const nlohmann::json::exception&) {
    throw CaseError("not valid JSON: a number is too large");
  }
}

JsonObject::JsonObject(const nlohmann::json& json, std::string path,
                       std::initializer_list<std::string_view> known)
    : json_(json), path_(std::move(path)) {
  if (!json.is_object()) refuse(path_.empty() ? "case" : path_, "must be an object, not " + shown(json));
  for (const auto& item : json.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      refuse(child(path_, escaped(item.key())),
             fmt::format("unknown field; known are {}", fmt::join(known, ", ")));
    }
  }
}

std::string JsonObject::path(std::string_view key) const {
  return child(path_, key);
}

const nlohmann::json* JsonObject::find(std::string_view key) const {
  const auto found = json_.find(key);
  return found == json_.end() ? nullptr : &*found;
}

const nlohmann::json& JsonObject::required(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) refuse(path(key), "missing");
  return *value;
}

JsonObject JsonObject::section(std::string_view key, std::initializer_list<std::string_view> known) const {
  static const nlohmann::json empty = nlohmann::json::object();
  const nlohmann::json* value = find(key);
  return {value == nullptr ? empty : *value, path(key), known};
}

void JsonObject::each(std::string_view key, std::initializer_list<std::string_view> known,
                      const std::function<void(const JsonObject&)>& take) const {
  const nlohmann::json& array = required(key);
  if (!array.is_array()) refuse(path(key), "must be an array, not " + shown(array));
  for (std::size_t i = 0; i < array.size(); ++i)
    take(JsonObject(array[i], fmt::format("{}[{}]", path(key), i), known));
}

void JsonObject::read(std::string_view key, bool& out) const {
  if (const nlohmann::json* value = find(key)) {
    if (!value->is_boolean()) refuse(path(key), "must be true or false, not " + shown(*value));
    out = value->get<bool>();
  }
}

void JsonObject::read(std::string_view key, int& out) const {
  if (const nlohmann::json* value = find(key)) out = integer(*value, path(key));
}

void JsonObject::read(std::string_view key, std::vector<int>& out) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_array()) refuse(path(key), "must be an array, not " + shown(*value));
  out.clear();
  for (std::size_t i = 0; i < value->size(); ++i)
    out.push_back(integer((*value)[i], fmt::format("{}[{}]", path(key), i)));
}

void JsonObject::read_required(std::string_view key, int& out) const {
  out = integer(required(key), path(key));
}

std::size_t JsonObject::enumerator(std::string_view key, std::span<const char* const> names,
                                   std::size_t otherwise) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return otherwise;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (value->is_string() && value->get_ref<const std::string&>() == names[i]) return i;
  refuse(path(key), fmt::format("{} is none of {}", shown(*value), fmt::join(names, ", ")));
}

void JsonObject::read_scale(std::string_view key, float& out) const {
  if (const nlohmann::json* value = find(key)) {
    std::uint64_t bits = 0;
    if (!hex(*value, 8, 8, bits)) {
      refuse(path(key), "must be the bits of an f32, \"0x\" and 8 hexadecimal digits, not " + shown(*value));
    }
    out = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  }
  const std::string value_key = std::string(key) + "_value";
  if (const nlohmann::json* value = find(value_key)) {
    if (!value->is_number()) refuse(path(value_key), "must be a number, not " + shown(*value));
    const double said = value->get<double>();
    if (!(std::abs(said - out) <= 1e-6 * std::abs(out))) {
      refuse(path(value_key), fmt::format("{} contradicts the bits of {}, which are {}", said, key, out));
    }
  }
}

void JsonObject::read_required_seed(std::string_view key, std::uint64_t& out) const {
  if (!hex(required(key), 1, 16, out)) {
    refuse(path(key), "must be \"0x\" and 1 to 16 hexadecimal digits, not " + shown(required(key)));
  }
}

void JsonWriter::scale(std::string_view section, std::string_view key, float value) {
  Json& into = document_[section];
  into[key] = fmt::format("0x{:08x}", std::bit_cast<std::uint32_t>(value));
  // Shortest decimal that gives the f32 back: what people write.
  if (for_people_) into[std::string(key) + "_value"] = Json::parse(fmt::format("{}", value));
}

void require_range(const std::string& field, int value, int low, int high) {
  check_range(field, value, low, high);
}

void require_range(const std::string& field, float value, float low, float high) {
  check_range(field, value, low, high);
}

void require_multiple(const std::string& field, int value, int of) {
  if (value % of != 0) throw CaseError(fmt::format("{}: {} is not a multiple of {}", field, value, of));
}

}  // namespace attest::cases
