// SPDX-License-Identifier: MIT
#include "cases/ops/topk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cases/case.h"
#include "cases/json_object.h"
#include "cases/requests.h"

namespace attest::cases {

std::span<const char* const> names(TopKForm) {
  static constexpr std::array all = {"prefill", "decode"};
  return all;
}
std::span<const char* const> names(TopKOrder) {
  static constexpr std::array all = {"any", "ascending"};
  return all;
}
std::span<const char* const> names(NanOrder) {
  static constexpr std::array all = {"unspecified", "ordered"};
  return all;
}
std::span<const char* const> names(Coordinates) {
  static constexpr std::array all = {"local", "absolute"};
  return all;
}

void read(const JsonObject& root, TopK& p) {
  const JsonObject shape(root.required("shape"), "shape",
                         {"k", "form", "order", "nan", "coordinates", "row_padding", "requests"});
  shape.read("k", p.k);
  shape.read("form", p.form);
  shape.read("order", p.order);
  shape.read("nan", p.nan);
  shape.read("coordinates", p.coordinates);
  shape.read("row_padding", p.row_padding);
  read_requests(shape, p.requests);
  (void)root.section("formats", {});
  (void)root.section("scales", {});
}

void write(JsonWriter& writer, const TopK& p) {
  writer.section("shape") = {{"k", p.k},
                             {"form", name(p.form)},
                             {"order", name(p.order)},
                             {"nan", name(p.nan)},
                             {"coordinates", name(p.coordinates)},
                             {"row_padding", p.row_padding},
                             {"requests", requests_json(p.requests)}};
}

void validate(const Case& c, const TopK& p) {
  require_range("shape.k", p.k, 1, 2048);
  require_range("shape.row_padding", p.row_padding, 0, 4096);
  validate_requests(p.requests, 131072, 1 << 20);
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  std::int64_t longest = 0;
  for (const Request& r : p.requests) {
    rows += r.q_len;
    keys += r.kv_len;
    longest = std::max<std::int64_t>(longest, r.kv_len);
    if (p.form == TopKForm::decode && r.q_len != p.requests.front().q_len)
      throw CaseError(fmt::format("shape.requests: q_len {} and {}; in decode form all are next_n",
                                  p.requests.front().q_len, r.q_len));
  }
  const std::int64_t width = std::max<std::int64_t>(p.form == TopKForm::prefill ? keys : longest, 1);
  constexpr std::int64_t most = 16 << 20;
  if (rows * (width + p.row_padding) > most)
    throw CaseError(
        fmt::format("shape: {} rows of {} columns, more than {} logits", rows, width + p.row_padding, most));
  if (rows * p.k > most)
    throw CaseError(fmt::format("shape: {} rows of k = {}, more than {} results", rows, p.k, most));

  constexpr std::array fills = {Fill::normal,     Fill::mean_shifted, Fill::constant_scores,
                                Fill::few_values, Fill::zero_ties,    Fill::infinities,
                                Fill::nans,       Fill::ascending,    Fill::descending};
  if (std::find(fills.begin(), fills.end(), c.data.fill) == fills.end())
    throw CaseError(fmt::format("data.fill: {} makes no scores for topk", name(c.data.fill)));
  if (c.memory.placement > Placement::shuffled || c.memory.page_padding_bytes != 0 || c.memory.prefix_sharing)
    throw CaseError("memory: topk reads no pages; leave placement, page_padding_bytes and prefix_sharing");
}

}  // namespace attest::cases
