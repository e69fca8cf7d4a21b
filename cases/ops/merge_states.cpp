// SPDX-License-Identifier: MIT
#include "cases/ops/merge_states.h"

#include <fmt/format.h>

#include <array>

#include "cases/case.h"
#include "cases/json_object.h"

namespace attest::cases {

std::span<const char* const> names(LseBase) {
  static constexpr std::array all = {"e", "2"};
  return all;
}
std::span<const char* const> names(LseLayout) {
  static constexpr std::array all = {"heads_first", "tokens_first"};
  return all;
}
std::span<const char* const> names(Empties) {
  static constexpr std::array all = {"none", "some", "leading", "rows"};
  return all;
}
std::span<const char* const> names(EmptyLse) {
  static constexpr std::array all = {"minus_inf", "plus_inf", "either"};
  return all;
}

void read(const JsonObject& root, MergeStates& p) {
  const JsonObject shape(root.required("shape"), "shape",
                         {"tokens", "heads", "head_dim", "states", "lse_base", "lse_layout", "in_place",
                          "return_lse", "empty", "empty_lse"});
  shape.read("tokens", p.tokens);
  shape.read("heads", p.heads);
  shape.read("head_dim", p.head_dim);
  shape.each("states", {"head_padding", "token_padding"}, [&](const JsonObject& entry) {
    StateLayout& layout = p.states.emplace_back();
    entry.read("head_padding", layout.head_padding);
    entry.read("token_padding", layout.token_padding);
  });
  shape.read("lse_base", p.lse_base);
  shape.read("lse_layout", p.lse_layout);
  shape.read("in_place", p.in_place);
  shape.read("return_lse", p.return_lse);
  shape.read("empty", p.empty);
  shape.read("empty_lse", p.empty_lse);
  const JsonObject formats = root.section("formats", {"state", "out"});
  formats.read("state", p.state_format);
  formats.read("out", p.out_format);
}

void write(JsonWriter& writer, const MergeStates& p) {
  Json states = Json::array();
  for (const StateLayout& s : p.states)
    states.push_back({{"head_padding", s.head_padding}, {"token_padding", s.token_padding}});
  writer.section("shape") = {{"tokens", p.tokens},           {"heads", p.heads},
                             {"head_dim", p.head_dim},       {"states", std::move(states)},
                             {"lse_base", name(p.lse_base)}, {"lse_layout", name(p.lse_layout)},
                             {"in_place", p.in_place},       {"return_lse", p.return_lse},
                             {"empty", name(p.empty)},       {"empty_lse", name(p.empty_lse)}};
  writer.section("formats") = {{"state", name(p.state_format)}, {"out", name(p.out_format)}};
}

void validate(const Case& c, const MergeStates& p) {
  require_range("shape.tokens", p.tokens, 1, 4096);
  require_range("shape.heads", p.heads, 1, 128);
  require_range("shape.head_dim", p.head_dim, 8, 512);
  require_multiple("shape.head_dim", p.head_dim, 8);
  if (p.states.empty() || p.states.size() > 32)
    throw CaseError(fmt::format("shape.states: {} entries, outside 1..32", p.states.size()));
  for (std::size_t s = 0; s < p.states.size(); ++s) {
    const auto check = [s](const char* field, int padding) {
      const std::string path = fmt::format("shape.states[{}].{}", s, field);
      require_range(path, padding, 0, 256);
      require_multiple(path, padding, 8);
    };
    check("head_padding", p.states[s].head_padding);
    check("token_padding", p.states[s].token_padding);
    if (p.elements(p.states[s]) > 1 << 24)
      throw CaseError(fmt::format("shape.states[{}]: {} elements, more than 2^24; fewer tokens or heads", s,
                                  p.elements(p.states[s])));
  }
  const auto bf16_or_f32 = [](const char* field, Format format) {
    if (format != Format::bf16 && format != Format::f32)
      throw CaseError(fmt::format("{}: merge_states takes bf16 or f32, not {}", field, name(format)));
  };
  bf16_or_f32("formats.state", p.state_format);
  bf16_or_f32("formats.out", p.out_format);
  if (p.in_place && p.state_format != p.out_format)
    throw CaseError(fmt::format("shape.in_place: formats.out {} cannot replace formats.state {}",
                                name(p.out_format), name(p.state_format)));
  switch (c.data.fill) {
    case Fill::normal:
    case Fill::constant_scores:
    case Fill::wide_scores:
    case Fill::cancelling:
      break;
    default:
      throw CaseError(fmt::format(
          "data.fill: merge_states takes normal, constant_scores, wide_scores or cancelling, not {}",
          name(c.data.fill)));
  }
}

}  // namespace attest::cases
