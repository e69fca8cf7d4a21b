// SPDX-License-Identifier: MIT
#include "fuzz/report/case_view.h"

#include <bit>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

namespace attest::fuzz::report {
namespace {

constexpr std::size_t most_members = 12;  ///< of a list

/// "0x3d93cd3a" is how cases write a float32.
std::optional<float> float_bits(const std::string& text) {
  std::uint32_t bits = 0;
  if (text.size() != 10 || !text.starts_with("0x")) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::bit_cast<float>(bits);
}

std::string scalar(const std::string& group, const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_null()) return "none";
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (group == "scales")
      if (const auto number = float_bits(text)) return fmt::format("{:.6g}", *number);
    return text;
  }
  return value.dump();
}

Html pair_of(const std::string& name, const std::string& value) {
  return html(R"(<span class="field"><b>{}</b> {}</span> )", name, value);
}

Html list(const Json& values) {
  Html all;
  std::size_t shown = 0;
  for (const Json& value : values) {
    if (shown == most_members) break;
    ++shown;
    if (!value.is_object()) {
      all += html("{} ", scalar("", value));
      continue;
    }
    Html fields;
    for (const auto& [name, member] : value.items())
      fields += html("{}<b>{}</b> {}", fields.text.empty() ? "" : ", ", name, scalar("", member));
    all += html(R"(<span class="field">({})</span> )", fields);
  }
  if (values.size() > shown) all += html("and {} more", values.size() - shown);
  if (values.empty()) all += html("none");
  return all;
}

void row(Html& table, const std::string& name, const Html& fields) {
  table += html("<tr><th>{}</th><td>{}</td></tr>", name, fields);
}

}  // namespace

Html case_view(const Json& case_json) {
  if (!case_json.is_object()) return html("<p>The run folder does not hold the case.</p>");
  Html table, loose;
  std::vector<std::string> order = {"shape"};
  for (const auto& [name, value] : case_json.items())
    if (name != "shape") order.push_back(name);
  for (const std::string& name : order) {
    const auto it = case_json.find(name);
    if (it == case_json.end() || name == "schema") continue;
    if (!it->is_object()) {
      loose += it->is_array() ? html(R"(<span class="field"><b>{}</b> {}</span> )", name, list(*it))
                              : pair_of(name, scalar("", *it));
      continue;
    }
    Html fields;
    std::vector<std::pair<std::string, const Json*>> lists;
    for (const auto& [field, value] : it->items()) {
      if (value.is_structured())
        lists.emplace_back(field, &value);
      else
        fields += pair_of(field, scalar(name, value));
    }
    if (!fields.text.empty()) row(table, name, fields);
    for (const auto& [field, value] : lists)
      row(table, value->is_array() && value->size() > 1 ? fmt::format("{} {}", value->size(), field) : field,
          value->is_array() ? list(*value) : list(Json::array({*value})));
  }
  if (!loose.text.empty()) row(table, "case", loose);
  return html(R"(<table class="case"><tbody>{}</tbody></table>)", table);
}

}  // namespace attest::fuzz::report
