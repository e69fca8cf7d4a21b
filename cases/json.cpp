// SPDX-License-Identifier: MIT
//
// Cases as JSON text. Reading is strict, because a field that is silently ignored turns a reproduction into
// another problem: a name spelled wrong, given twice or unknown is an error that says which and what would be
// right. (nlohmann::json keeps the last of two equal keys, so duplicates are caught in its parser callback;
// it writes NaN as null, so scales are written as bits.)
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cases/case.h"

namespace attest::cases {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& field, const std::string& rule) {
  throw CaseError(field + ": " + rule);
}

std::string child(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

/// A value as one short line for a message. Objects and arrays by kind only: dump is recursive, and a file
/// may nest deeper than the stack.
std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

/// A key as it stands in JSON, without its quotes: a message stays one line whatever the file holds.
std::string escaped(const std::string& key) {
  const std::string quoted = Json(key).dump(-1, ' ', true);
  return quoted.substr(1, quoted.size() - 2);
}

/// Parsing with duplicate keys refused by their path.
Json parse_text(std::string_view text) {
  struct Level {
    std::set<std::string> keys;
    std::string last_key;
  };
  std::vector<Level> levels;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) levels.emplace_back();
    if (event == Json::parse_event_t::object_end) levels.pop_back();
    if (event == Json::parse_event_t::key) {
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
    return Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    const std::size_t at = error.byte == 0 ? 0 : std::min(error.byte - 1, text.size());
    const std::string_view before = text.substr(0, at);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    throw CaseError(fmt::format("line {}, column {}: not valid JSON", line, at - line_start + 1));
  } catch (const Json::exception&) {
    throw CaseError("not valid JSON: a number is too large");
  }
}

/// One object of the document. Fields are taken by name; `finish` refuses those nobody took.
class Object {
 public:
  Object(const Json& json, std::string path, std::initializer_list<std::string_view> known)
      : json_(json), path_(std::move(path)) {
    if (!json.is_object()) refuse(path_.empty() ? "case" : path_, "must be an object, not " + shown(json));
    for (const auto& item : json.items()) {
      if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
        refuse(child(path_, escaped(item.key())),
               fmt::format("unknown field; known are {}", fmt::join(known, ", ")));
      }
    }
  }

  [[nodiscard]] std::string path(std::string_view key) const { return child(path_, key); }

  [[nodiscard]] const Json* find(std::string_view key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  [[nodiscard]] const Json& required(std::string_view key) const {
    const Json* value = find(key);
    if (value == nullptr) refuse(path(key), "missing");
    return *value;
  }

  void read(std::string_view key, bool& out) const {
    if (const Json* value = find(key)) {
      if (!value->is_boolean()) refuse(path(key), "must be true or false, not " + shown(*value));
      out = value->get<bool>();
    }
  }

  void read(std::string_view key, int& out) const {
    if (const Json* value = find(key)) out = integer(*value, path(key));
  }

  void read_required(std::string_view key, int& out) const { out = integer(required(key), path(key)); }

  /// A named enumerator; the names are those of `name(Enum)` for 0..last.
  template <typename Enum>
  void read(std::string_view key, Enum& out, Enum last) const {
    const Json* value = find(key);
    if (value == nullptr) return;
    std::vector<std::string> names;
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      names.emplace_back(name(static_cast<Enum>(i)));
      if (value->is_string() && value->get_ref<const std::string&>() == names.back()) {
        out = static_cast<Enum>(i);
        return;
      }
    }
    refuse(path(key), fmt::format("{} is none of {}", shown(*value), fmt::join(names, ", ")));
  }

  /// f32 as its bits, and for people its value beside it.
  void read_scale(std::string_view key, float& out) const {
    if (const Json* value = find(key)) {
      std::uint64_t bits = 0;
      if (!hex(*value, 8, 8, bits)) {
        refuse(path(key),
               "must be the bits of an f32, \"0x\" and 8 hexadecimal digits, not " + shown(*value));
      }
      out = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    }
    const std::string value_key = std::string(key) + "_value";
    if (const Json* value = find(value_key)) {
      if (!value->is_number()) refuse(path(value_key), "must be a number, not " + shown(*value));
      const double said = value->get<double>();
      if (!(std::abs(said - out) <= 1e-6 * std::abs(out))) {
        refuse(path(value_key), fmt::format("{} contradicts the bits of {}, which are {}", said, key, out));
      }
    }
  }

  /// "0x" and `least` to `most` hexadecimal digits.
  static bool hex(const Json& value, std::size_t least, std::size_t most, std::uint64_t& out) {
    if (!value.is_string()) return false;
    const std::string_view text = value.get_ref<const std::string&>();
    if (!text.starts_with("0x") || text.size() < 2 + least || text.size() > 2 + most) return false;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), out, 16);
    return error == std::errc() && end == text.data() + text.size();
  }

 private:
  static int integer(const Json& value, const std::string& field) {
    if (!value.is_number_integer()) refuse(field, "must be an integer, not " + shown(value));
    constexpr std::int64_t limit = 1'000'000'000;
    const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{limit};
    if (huge || value.get<std::int64_t>() > limit || value.get<std::int64_t>() < -limit) {
      refuse(field, shown(value) + " is far out of range");
    }
    return static_cast<int>(value.get<std::int64_t>());
  }

  const Json& json_;
  std::string path_;
};

const Json& empty_object() {
  static const Json empty = Json::object();
  return empty;
}

MlaDecode read_mla_decode(const Object& root) {
  MlaDecode p;
  const Object shape(root.required("shape"), "shape",
                     {"heads", "page_size", "num_splits", "causal", "return_lse", "requests"});
  shape.read("heads", p.heads);
  shape.read("page_size", p.page_size);
  shape.read("num_splits", p.num_splits);
  shape.read("causal", p.causal);
  shape.read("return_lse", p.return_lse);
  const Json& requests = shape.required("requests");
  if (!requests.is_array()) refuse("shape.requests", "must be an array, not " + shown(requests));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Object entry(requests[i], fmt::format("shape.requests[{}]", i), {"q_len", "kv_len"});
    Request& request = p.requests.emplace_back();
    entry.read_required("q_len", request.q_len);
    entry.read_required("kv_len", request.kv_len);
  }

  const Json* found = root.find("formats");
  const Object formats(found != nullptr ? *found : empty_object(), "formats", {"q", "kv", "out"});
  formats.read("q", p.q_format, Format::e8m0);
  formats.read("kv", p.kv_format, Format::e8m0);
  formats.read("out", p.out_format, Format::e8m0);

  found = root.find("scales");
  const Object scales(
      found != nullptr ? *found : empty_object(), "scales",
      {"sm_scale", "sm_scale_value", "q_scale", "q_scale_value", "kv_scale", "kv_scale_value"});
  scales.read_scale("sm_scale", p.sm_scale);
  scales.read_scale("q_scale", p.q_scale);
  scales.read_scale("kv_scale", p.kv_scale);
  return p;
}

MemoryRecipe read_memory(const Object& root) {
  MemoryRecipe m;
  const Json* found = root.find("memory");
  const Object memory(
      found != nullptr ? *found : empty_object(), "memory",
      {"placement", "unused", "output", "scratch", "page_padding_bytes", "guard_bytes", "prefix_sharing"});
  memory.read("placement", m.placement, Placement::beyond_4gib);
  memory.read("unused", m.unused, Poison::zero);
  memory.read("output", m.output, Poison::zero);
  memory.read("scratch", m.scratch, Poison::zero);
  memory.read("page_padding_bytes", m.page_padding_bytes);
  memory.read("guard_bytes", m.guard_bytes);
  memory.read("prefix_sharing", m.prefix_sharing);
  return m;
}

std::string scale_bits(float scale) {
  return fmt::format("0x{:08x}", std::bit_cast<std::uint32_t>(scale));
}

}  // namespace

Case parse_case(std::string_view json) {
  const Json document = parse_text(json);
  const Object root(document, "", {"schema", "op", "seed", "shape", "formats", "scales", "data", "memory"});

  const Json& schema = root.required("schema");
  if (!schema.is_number_integer() || schema != schema_version) {
    refuse("schema",
           fmt::format("{} is not supported; this program reads schema {}", shown(schema), schema_version));
  }
  const Json& op = root.required("op");
  if (op != "mla_decode") refuse("op", fmt::format("{} is none of mla_decode", shown(op)));

  Case c;
  if (!Object::hex(root.required("seed"), 1, 16, c.seed)) {
    refuse("seed", "must be \"0x\" and 1 to 16 hexadecimal digits, not " + shown(root.required("seed")));
  }
  c.problem = read_mla_decode(root);
  const Json* data_json = root.find("data");
  const Object data(data_json != nullptr ? *data_json : empty_object(), "data", {"fill"});
  data.read("fill", c.data.fill, Fill::exact);
  c.memory = read_memory(root);
  validate(c);
  return c;
}

std::string canonical_json(const Case& c) {
  const MlaDecode& p = std::get<MlaDecode>(c.problem);
  Json requests = Json::array();
  for (const Request& r : p.requests) requests.push_back({{"q_len", r.q_len}, {"kv_len", r.kv_len}});
  const Json document = {
      {"schema", schema_version},
      {"op", op_name(c.problem)},
      {"seed", fmt::format("0x{:x}", c.seed)},
      {"shape",
       {{"heads", p.heads},
        {"page_size", p.page_size},
        {"num_splits", p.num_splits},
        {"causal", p.causal},
        {"return_lse", p.return_lse},
        {"requests", std::move(requests)}}},
      {"formats", {{"q", name(p.q_format)}, {"kv", name(p.kv_format)}, {"out", name(p.out_format)}}},
      {"scales",
       {{"sm_scale", scale_bits(p.sm_scale)},
        {"q_scale", scale_bits(p.q_scale)},
        {"kv_scale", scale_bits(p.kv_scale)}}},
      {"data", {{"fill", name(c.data.fill)}}},
      {"memory",
       {{"placement", name(c.memory.placement)},
        {"unused", name(c.memory.unused)},
        {"output", name(c.memory.output)},
        {"scratch", name(c.memory.scratch)},
        {"page_padding_bytes", c.memory.page_padding_bytes},
        {"guard_bytes", c.memory.guard_bytes},
        {"prefix_sharing", c.memory.prefix_sharing}}},
  };
  return document.dump();
}

std::string pretty_json(const Case& c) {
  const MlaDecode& p = std::get<MlaDecode>(c.problem);
  std::string text;
  const auto line = [&text]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  };
  line("{{");
  line(R"(  "schema": {},)", schema_version);
  line(R"(  "op": "{}",)", op_name(c.problem));
  line(R"(  "seed": "0x{:x}",)", c.seed);
  line(R"(  "shape": {{)");
  line(R"(    "heads": {}, "page_size": {}, "num_splits": {}, "causal": {}, "return_lse": {},)", p.heads,
       p.page_size, p.num_splits, p.causal, p.return_lse);
  line(R"(    "requests": [)");
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    line(R"(      {{"q_len": {}, "kv_len": {}}}{})", p.requests[i].q_len, p.requests[i].kv_len,
         i + 1 < p.requests.size() ? "," : "");
  }
  line("    ]");
  line("  }},");
  line(R"(  "formats": {{"q": "{}", "kv": "{}", "out": "{}"}},)", name(p.q_format), name(p.kv_format),
       name(p.out_format));
  line(R"(  "scales": {{)");
  line(R"(    "sm_scale": "{}", "sm_scale_value": {},)", scale_bits(p.sm_scale), p.sm_scale);
  line(R"(    "q_scale": "{}", "q_scale_value": {},)", scale_bits(p.q_scale), p.q_scale);
  line(R"(    "kv_scale": "{}", "kv_scale_value": {})", scale_bits(p.kv_scale), p.kv_scale);
  line("  }},");
  line(R"(  "data": {{"fill": "{}"}},)", name(c.data.fill));
  line(R"(  "memory": {{)");
  line(R"(    "placement": "{}", "unused": "{}", "output": "{}", "scratch": "{}",)", name(c.memory.placement),
       name(c.memory.unused), name(c.memory.output), name(c.memory.scratch));
  line(R"(    "page_padding_bytes": {}, "guard_bytes": {}, "prefix_sharing": {})",
       c.memory.page_padding_bytes, c.memory.guard_bytes, c.memory.prefix_sharing);
  line("  }}");
  line("}}");
  return text;
}

std::string case_id(const Case& c) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char byte : canonical_json(c)) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace attest::cases
