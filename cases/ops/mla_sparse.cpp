// SPDX-License-Identifier: MIT
#include "cases/ops/mla_sparse.h"

#include <fmt/format.h>

#include <string>

#include "cases/case.h"
#include "cases/json_object.h"
#include "cases/ops/mla_numbers.h"
#include "cases/paging.h"
#include "cases/requests.h"

namespace attest::cases {

std::span<const char* const> names(ListChoice) {
  static constexpr const char* all[] = {"newest", "shuffled", "random", "repeated"};
  return all;
}
std::span<const char* const> names(ListLength) {
  static constexpr const char* all[] = {"full", "ragged"};
  return all;
}
std::span<const char* const> names(ListHoles) {
  static constexpr const char* all[] = {"none", "end", "middle", "front", "scattered", "tile", "row"};
  return all;
}
std::span<const char* const> names(HoleValue) {
  static constexpr const char* all[] = {"minus_one", "any"};
  return all;
}

void read(const JsonObject& root, MlaSparse& p) {
  const JsonObject shape(root.required("shape"), "shape",
                         {"heads", "page_size", "topk", "num_splits", "return_lse", "list", "list_length",
                          "holes", "hole_value", "requests"});
  shape.read("heads", p.heads);
  shape.read("page_size", p.page_size);
  shape.read("topk", p.topk);
  shape.read("num_splits", p.num_splits);
  shape.read("return_lse", p.return_lse);
  shape.read("list", p.choice);
  shape.read("list_length", p.length);
  shape.read("holes", p.holes);
  shape.read("hole_value", p.hole_value);
  read_requests(shape, p.requests);
  const JsonObject formats = root.section("formats", {"q", "kv", "kv_layout", "out"});
  formats.read("q", p.q_format);
  formats.read("kv", p.kv_format);
  formats.read("kv_layout", p.kv_layout);
  formats.read("out", p.out_format);
  const JsonObject scales = root.section(
      "scales", {"sm_scale", "sm_scale_value", "q_scale", "q_scale_value", "kv_scale", "kv_scale_value"});
  scales.read_scale("sm_scale", p.sm_scale);
  scales.read_scale("q_scale", p.q_scale);
  scales.read_scale("kv_scale", p.kv_scale);
}

void write(JsonWriter& writer, const MlaSparse& p) {
  writer.section("shape") = {{"heads", p.heads},
                             {"page_size", p.page_size},
                             {"topk", p.topk},
                             {"num_splits", p.num_splits},
                             {"return_lse", p.return_lse},
                             {"list", name(p.choice)},
                             {"list_length", name(p.length)},
                             {"holes", name(p.holes)},
                             {"hole_value", name(p.hole_value)},
                             {"requests", requests_json(p.requests)}};
  writer.section("formats") = {{"q", name(p.q_format)},
                               {"kv", name(p.kv_format)},
                               {"kv_layout", name(p.kv_layout)},
                               {"out", name(p.out_format)}};
  writer.scale("scales", "sm_scale", p.sm_scale);
  writer.scale("scales", "q_scale", p.q_scale);
  writer.scale("scales", "kv_scale", p.kv_scale);
}

CacheShape cache_shape(const MlaSparse& p) {
  const std::uint64_t row_bytes = p.kv_layout == KvLayout::ds ? 656 : cache_row_bytes(as_decode(p));
  return {p.requests, p.page_size, static_cast<std::uint64_t>(p.page_size) * row_bytes};
}

MlaDecode as_decode(const MlaSparse& p) {
  MlaDecode d;
  d.heads = p.heads;
  d.page_size = p.page_size;
  d.num_splits = p.num_splits;
  d.return_lse = p.return_lse;
  d.requests = p.requests;
  d.q_format = p.q_format;
  d.kv_format = p.kv_format;
  d.out_format = p.out_format;
  d.sm_scale = p.sm_scale;
  d.q_scale = p.q_scale;
  d.kv_scale = p.kv_scale;
  return d;
}

void validate(const Case& c, const MlaSparse& p) {
  require_range("shape.heads", p.heads, 1, 128);
  require_range("shape.page_size", p.page_size, 1, 1024);
  require_range("shape.topk", p.topk, 1, 2048);
  require_range("shape.num_splits", p.num_splits, 1, 32);
  validate_requests(p.requests, 1024, 131072);
  if (p.kv_layout == KvLayout::ds_page) {
    throw CaseError("formats.kv_layout: mla_sparse takes rows or ds, not ds_page");
  }
  if (p.kv_layout == KvLayout::ds) {
    if (p.kv_format != Format::fp8_e4m3fnuz) {
      throw CaseError(fmt::format("formats.kv: kv_layout ds takes fp8_e4m3fnuz, not {}", name(p.kv_format)));
    }
    if (p.q_format != Format::bf16) {
      throw CaseError(fmt::format("formats.q: kv_layout ds takes bf16, not {}", name(p.q_format)));
    }
    if (p.kv_scale != 1.0F) {
      throw CaseError(fmt::format(
          "scales.kv_scale: {} with formats.kv_layout ds, which has its scales in the cache; use 1",
          p.kv_scale));
    }
  }
  validate_mla_numbers(MlaSparse::op, as_decode(p), c.data.fill);
  validate_footprint(cache_shape(p), c.memory);
}

}  // namespace attest::cases
