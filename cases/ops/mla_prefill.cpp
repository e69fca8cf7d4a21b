// SPDX-License-Identifier: MIT
#include "cases/ops/mla_prefill.h"

#include <fmt/format.h>

#include <cmath>

#include "cases/case.h"
#include "cases/json_object.h"

namespace attest::cases {
namespace {

constexpr int most_chunks = 31;

void validate_fill(const Case& c, const MlaPrefill& p) {
  switch (c.data.fill) {
    case Fill::normal:
    case Fill::mean_shifted:
    case Fill::position_coded:
    case Fill::constant_scores:
    case Fill::wide_scores:
    case Fill::negative_offset:
      break;
    default:
      throw CaseError(
          fmt::format("data.fill: mla_prefill takes normal, mean_shifted, position_coded, "
                      "constant_scores, wide_scores or negative_offset, not {}",
                      name(c.data.fill)));
  }
  int exponent = 0;
  if (c.data.fill == Fill::constant_scores && std::frexp(p.kv_scale, &exponent) != 0.5F)
    throw CaseError(
        fmt::format("scales.kv_scale: data.fill constant_scores needs a power of two, not {}", p.kv_scale));
}

}  // namespace

void read(const JsonObject& root, MlaPrefill& p) {
  const JsonObject shape(root.required("shape"), "shape",
                         {"heads", "page_size", "chunk_len", "v_stride", "return_lse", "requests"});
  shape.read("heads", p.heads);
  shape.read("page_size", p.page_size);
  shape.read("chunk_len", p.chunk_len);
  shape.read("v_stride", p.v_stride);
  shape.read("return_lse", p.return_lse);
  shape.each("requests", {"q_len", "kv_len", "context_len"}, [&](const JsonObject& entry) {
    PrefillRequest& request = p.requests.emplace_back();
    entry.read_required("q_len", request.q_len);
    entry.read_required("kv_len", request.kv_len);
    entry.read_required("context_len", request.context_len);
  });
  const JsonObject formats = root.section("formats", {"qkv", "cache"});
  formats.read("qkv", p.qkv_format);
  formats.read("cache", p.cache_format);
  const JsonObject scales =
      root.section("scales", {"sm_scale", "sm_scale_value", "kv_scale", "kv_scale_value"});
  scales.read_scale("sm_scale", p.sm_scale);
  scales.read_scale("kv_scale", p.kv_scale);
}

void write(JsonWriter& writer, const MlaPrefill& p) {
  Json requests = Json::array();
  for (const PrefillRequest& r : p.requests)
    requests.push_back({{"q_len", r.q_len}, {"kv_len", r.kv_len}, {"context_len", r.context_len}});
  writer.section("shape") = {{"heads", p.heads},           {"page_size", p.page_size},
                             {"chunk_len", p.chunk_len},   {"v_stride", p.v_stride},
                             {"return_lse", p.return_lse}, {"requests", std::move(requests)}};
  writer.section("formats") = {{"qkv", name(p.qkv_format)}, {"cache", name(p.cache_format)}};
  writer.scale("scales", "sm_scale", p.sm_scale);
  writer.scale("scales", "kv_scale", p.kv_scale);
}

void validate(const Case& c, const MlaPrefill& p) {
  require_range("shape.heads", p.heads, 1, 128);
  require_range("shape.page_size", p.page_size, 1, 1024);
  require_range("shape.chunk_len", p.chunk_len, 1, 65536);
  require_range("shape.v_stride", p.v_stride, 128, 512);
  require_multiple("shape.v_stride", p.v_stride, 8);
  if (p.requests.empty() || p.requests.size() > 512)
    throw CaseError(fmt::format("shape.requests: {} entries, outside 1..512", p.requests.size()));
  bool any_query = false;
  std::int64_t pages = 0;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    const PrefillRequest& r = p.requests[i];
    require_range(fmt::format("shape.requests[{}].q_len", i), r.q_len, 0, 1024);
    require_range(fmt::format("shape.requests[{}].kv_len", i), r.kv_len, 0, 8192);
    require_range(fmt::format("shape.requests[{}].context_len", i), r.context_len, 0, 65536);
    any_query = any_query || r.q_len > 0;
    pages += (r.context_len + p.page_size - 1) / p.page_size;
  }
  if (!any_query) throw CaseError("shape.requests: every q_len is 0; at least one request needs a query");
  if (p.chunks() > most_chunks)
    throw CaseError(fmt::format("shape.chunk_len: {} makes {} chunks, more than {}", p.chunk_len, p.chunks(),
                                most_chunks));
  const auto bf16_or_fnuz = [](const char* field, Format format) {
    if (format != Format::bf16 && format != Format::fp8_e4m3fnuz)
      throw CaseError(fmt::format("{}: mla_prefill takes bf16 or fp8_e4m3fnuz, not {}", field, name(format)));
  };
  bf16_or_fnuz("formats.qkv", p.qkv_format);
  bf16_or_fnuz("formats.cache", p.cache_format);
  require_range("scales.sm_scale", p.sm_scale, 0x1p-10F, 8.0F);
  require_range("scales.kv_scale", p.kv_scale, 0.0625F, 16.0F);
  if (p.cache_format == Format::bf16 && p.kv_scale != 1.0F)
    throw CaseError(
        fmt::format("scales.kv_scale: {} with formats.cache bf16, which has no scale; use 1", p.kv_scale));
  validate_fill(c, p);
  if (c.memory.placement > Placement::reversed)
    throw CaseError(fmt::format("memory.placement: mla_prefill takes ordered, shuffled or reversed, not {}",
                                name(c.memory.placement)));
  const std::int64_t page_bytes =
      std::int64_t{p.page_size} * p.heads * prefill_row_columns * 2 + c.memory.page_padding_bytes;
  if ((pages + 3) * page_bytes > std::int64_t{1} << 30)
    throw CaseError(fmt::format("shape.requests: the cache takes {} MiB, more than 1024; shorter contexts",
                                ((pages + 3) * page_bytes) >> 20));
}

}  // namespace attest::cases
