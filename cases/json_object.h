// SPDX-License-Identifier: MIT
//
// What the ops' readers and writers of case files are made of. Internal to cases/.
//
// Reading is strict, because a field that is silently ignored turns a reproduction into another problem: a
// name spelled wrong, given twice or unknown is an error that says which and what would be right.
//
//   const JsonObject shape(root.required("shape"), "shape", {"heads", "requests"});   // these and no others
//   shape.read("heads", p.heads);                                       // absent: keeps its default
//   shape.each("requests", {"q_len"}, [&](const JsonObject& r) { ... });
//   root.section("scales", {"k_scale", "k_scale_value"}).read_scale("k_scale", p.k_scale);
//
//   Json& shape = writer.section("shape");                              // sections keep their order
//   shape["heads"] = p.heads;
//   writer.scale("scales", "k_scale", p.k_scale);                       // its bits, and its value for people
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cases/vocabulary.h"

namespace attest::cases {

using Json = nlohmann::ordered_json;

/// Throws CaseError "<field>: <rule>".
[[noreturn]] void refuse(const std::string& field, const std::string& rule);

/// Parses with duplicate keys refused by their path. Throws CaseError.
nlohmann::json parse_text(std::string_view text);

/// A value as one short line for a message.
std::string shown(const nlohmann::json& value);

/// One object of the document: its fields are checked against `known` at construction.
class JsonObject {
 public:
  JsonObject(const nlohmann::json& json, std::string path, std::initializer_list<std::string_view> known);

  [[nodiscard]] std::string path(std::string_view key) const;
  /// nullptr when there is none.
  [[nodiscard]] const nlohmann::json* find(std::string_view key) const;
  [[nodiscard]] const nlohmann::json& required(std::string_view key) const;
  /// The object of that name; absent: an empty one.
  [[nodiscard]] JsonObject section(std::string_view key, std::initializer_list<std::string_view> known) const;
  /// The objects of the required array of that name, in order.
  void each(std::string_view key, std::initializer_list<std::string_view> known,
            const std::function<void(const JsonObject&)>& take) const;

  void read(std::string_view key, bool& out) const;
  void read(std::string_view key, int& out) const;
  void read(std::string_view key, std::vector<int>& out) const;
  void read_required(std::string_view key, int& out) const;
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void read(std::string_view key, Enum& out) const {
    out = static_cast<Enum>(enumerator(key, names(out), static_cast<std::size_t>(out)));
  }
  /// f32 as its bits ("0x3f800000"), and for people its value beside it ("<key>_value").
  void read_scale(std::string_view key, float& out) const;
  /// "0x" and 1 to 16 hexadecimal digits.
  void read_required_seed(std::string_view key, std::uint64_t& out) const;

 private:
  [[nodiscard]] std::size_t enumerator(std::string_view key, std::span<const char* const> names,
                                       std::size_t otherwise) const;

  const nlohmann::json& json_;
  std::string path_;
};

class JsonWriter {
 public:
  /// @param for_people adds the values of scales beside their bits
  JsonWriter(Json& document, bool for_people) : document_(document), for_people_(for_people) {}

  Json& section(std::string_view name) { return document_[name]; }
  void scale(std::string_view section, std::string_view key, float value);

 private:
  Json& document_;
  bool for_people_;
};

/// Throws CaseError "<field>: <value> is outside <low>..<high>".
void require_range(const std::string& field, int value, int low, int high);
void require_range(const std::string& field, float value, float low, float high);
void require_multiple(const std::string& field, int value, int of);

}  // namespace attest::cases
