// SPDX-License-Identifier: MIT
#include "fuzz/explain/asks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fuzz/explain/paged_keys.h"
#include "fuzz/record.h"

namespace attest::fuzz {
namespace {

constexpr std::size_t most_requests = 8;

std::string words(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_array() && value.size() > 8) return fmt::format("{} of them", value.size());
  return value.dump();
}

/// "heads 16, page_size 1, causal yes"
std::string fields(const Json& object, const std::vector<std::string>& but = {}) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : object.items())
    if (std::find(but.begin(), but.end(), key) == but.end())
      parts.push_back(fmt::format("{} {}", key, words(value)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::vector<std::string> asks(const cases::Case& c, const cases::Inputs& inputs) {
  const Json json = to_json(c);
  const Json& shape = json.at("shape");
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}: {}", cases::op_name(c.problem), fields(shape, {"requests", "steps"})));
  for (const char* list : {"requests", "steps"}) {
    if (!shape.contains(list)) continue;
    const Json& all = shape.at(list);
    for (std::size_t r = 0; r < std::min(all.size(), most_requests); ++r) {
      const std::string pages = pages_in_words(c, inputs, static_cast<int>(r));
      lines.push_back(fmt::format("{} {}: {}{}{}", list[0] == 'r' ? "request" : "step", r, fields(all[r]),
                                  pages.empty() ? "" : "; ", pages));
    }
    if (all.size() > most_requests)
      lines.push_back(fmt::format("and {} more {}", all.size() - most_requests, list));
  }
  for (const char* part : {"formats", "data", "memory"})
    if (json.contains(part) && !json.at(part).empty())
      lines.push_back(fmt::format("{}: {}", part, fields(json.at(part))));
  return lines;
}

}  // namespace attest::fuzz
