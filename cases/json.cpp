// SPDX-License-Identifier: MIT
//
// Cases as JSON text: what all ops share. An op reads and writes its own sections (cases/ops).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cases/case.h"
#include "cases/json_object.h"

namespace attest::cases {
namespace {

MemoryRecipe read_memory(const JsonObject& root) {
  MemoryRecipe m;
  const JsonObject memory = root.section("memory", {"placement", "unused", "output", "scratch",
                                                    "page_padding_bytes", "guard_bytes", "prefix_sharing"});
  memory.read("placement", m.placement);
  memory.read("unused", m.unused);
  memory.read("output", m.output);
  memory.read("scratch", m.scratch);
  memory.read("page_padding_bytes", m.page_padding_bytes);
  memory.read("guard_bytes", m.guard_bytes);
  memory.read("prefix_sharing", m.prefix_sharing);
  return m;
}

/// The problem of that name, with its defaults.
template <std::size_t k = 0>
Problem problem_named(const nlohmann::json& op) {
  if constexpr (k == std::variant_size_v<Problem>) {
    refuse("op", fmt::format("{} is none of {}", shown(op), fmt::join(op_names(), ", ")));
  } else {
    using Candidate = std::variant_alternative_t<k, Problem>;
    if (op == Candidate::op) return Candidate{};
    return problem_named<k + 1>(op);
  }
}

Json document_of(const Case& c, bool for_people) {
  Json document = {
      {"schema", schema_version}, {"op", op_name(c.problem)}, {"seed", fmt::format("0x{:x}", c.seed)}};
  JsonWriter writer(document, for_people);
  std::visit([&](const auto& p) { write(writer, p); }, c.problem);
  document["data"] = {{"fill", name(c.data.fill)}};
  document["memory"] = {{"placement", name(c.memory.placement)},
                        {"unused", name(c.memory.unused)},
                        {"output", name(c.memory.output)},
                        {"scratch", name(c.memory.scratch)},
                        {"page_padding_bytes", c.memory.page_padding_bytes},
                        {"guard_bytes", c.memory.guard_bytes},
                        {"prefix_sharing", c.memory.prefix_sharing}};
  return document;
}

constexpr std::size_t line_width = 100;

std::string on_one_line(const Json& value) {
  if (!value.is_structured()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& item : value.items())
    parts.push_back(value.is_object()
                        ? fmt::format("{}: {}", Json(item.key()).dump(), on_one_line(item.value()))
                        : on_one_line(item.value()));
  return fmt::format("{}{}{}", value.is_object() ? "{" : "[", fmt::join(parts, ", "),
                     value.is_object() ? "}" : "]");
}

/// What fits on a line stays on one, the rest opens up; the outermost object always does.
void print(std::string& text, const Json& value, std::size_t depth, std::size_t used) {
  if (depth > 0) {
    std::string line = on_one_line(value);
    if (!value.is_structured() || used + line.size() <= line_width) {
      text += line;
      return;
    }
  }
  const bool object = value.is_object();
  const std::string indent(2 * (depth + 1), ' ');
  text += object ? '{' : '[';
  const char* separator = "\n";
  for (const auto& item : value.items()) {
    const std::string lead = object ? fmt::format("{}{}: ", indent, Json(item.key()).dump()) : indent;
    text += separator + lead;
    print(text, item.value(), depth + 1, lead.size());
    separator = ",\n";
  }
  text += "\n" + std::string(2 * depth, ' ');
  text += object ? '}' : ']';
}

}  // namespace

Case parse_case(std::string_view json) {
  const nlohmann::json document = parse_text(json);
  const JsonObject root(document, "",
                        {"schema", "op", "seed", "shape", "formats", "scales", "data", "memory"});

  const nlohmann::json& schema = root.required("schema");
  if (!schema.is_number_integer() || schema != schema_version) {
    refuse("schema",
           fmt::format("{} is not supported; this program reads schema {}", shown(schema), schema_version));
  }
  Case c;
  c.problem = problem_named(root.required("op"));
  root.read_required_seed("seed", c.seed);
  std::visit([&](auto& p) { read(root, p); }, c.problem);
  root.section("data", {"fill"}).read("fill", c.data.fill);
  c.memory = read_memory(root);
  validate(c);
  return c;
}

std::string canonical_json(const Case& c) {
  return nlohmann::json(document_of(c, false)).dump();
}

std::string pretty_json(const Case& c) {
  std::string text;
  print(text, document_of(c, true), 0, 0);
  return text + "\n";
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
