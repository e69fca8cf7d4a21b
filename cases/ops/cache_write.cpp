// SPDX-License-Identifier: MIT
#include "cases/ops/cache_write.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cases/case.h"
#include "cases/json_object.h"
#include "cases/paging.h"
#include "cases/requests.h"

namespace attest::cases {

std::span<const char* const> names(CacheLayout) {
  static constexpr std::array all = {"bf16", "fp8", "ds_mla", "indexer"};
  return all;
}
std::span<const char* const> names(ScaleConvention) {
  static constexpr std::array all = {"divide", "reciprocal", "either"};
  return all;
}
std::span<const char* const> names(ScaleFormat) {
  static constexpr std::array all = {"f32", "ue8m0"};
  return all;
}

int cache_token_bytes(CacheLayout layout) {
  switch (layout) {
    case CacheLayout::bf16:
      return 1152;
    case CacheLayout::fp8:
      return 576;
    case CacheLayout::ds_mla:
      return 656;
    case CacheLayout::indexer:
      return 132;
  }
  return 0;
}

void read(const JsonObject& root, CacheWrite& p) {
  const JsonObject shape(root.required("shape"), "shape",
                         {"layout", "page_size", "convention", "scale_format", "ceiling", "padding_tokens",
                          "skip_tokens", "requests"});
  shape.read("layout", p.layout);
  shape.read("page_size", p.page_size);
  shape.read("convention", p.convention);
  shape.read("scale_format", p.scale_format);
  shape.read("ceiling", p.ceiling);
  shape.read("padding_tokens", p.padding_tokens);
  shape.read("skip_tokens", p.skip_tokens);
  read_requests(shape, p.requests);
  root.section("formats", {"fp8"}).read("fp8", p.fp8_format);
  root.section("scales", {"kv_scale", "kv_scale_value"}).read_scale("kv_scale", p.kv_scale);
}

void write(JsonWriter& writer, const CacheWrite& p) {
  writer.section("shape") = {{"layout", name(p.layout)},
                             {"page_size", p.page_size},
                             {"convention", name(p.convention)},
                             {"scale_format", name(p.scale_format)},
                             {"ceiling", p.ceiling},
                             {"padding_tokens", p.padding_tokens},
                             {"skip_tokens", p.skip_tokens},
                             {"requests", requests_json(p.requests)}};
  writer.section("formats") = {{"fp8", name(p.fp8_format)}};
  writer.scale("scales", "kv_scale", p.kv_scale);
}

void validate(const Case& c, const CacheWrite& p) {
  require_range("shape.page_size", p.page_size, 1, 1024);
  require_range("shape.padding_tokens", p.padding_tokens, 0, 64);
  require_range("scales.kv_scale", p.kv_scale, 0x1p-7F, 128.0F);
  validate_requests(p.requests, 256, 131072);
  for (std::size_t i = 0; i < p.requests.size(); ++i)
    if (p.requests[i].q_len > p.requests[i].kv_len)
      throw CaseError(fmt::format("shape.requests[{}]: {} new tokens, but only {} in all", i,
                                  p.requests[i].q_len, p.requests[i].kv_len));

  const bool grouped = p.layout == CacheLayout::ds_mla || p.layout == CacheLayout::indexer;
  if (p.fp8_format != Format::fp8_e4m3fnuz && p.fp8_format != Format::fp8_e4m3fn)
    throw CaseError(
        fmt::format("formats.fp8: cache_write takes fp8_e4m3fnuz or fp8_e4m3fn, not {}", name(p.fp8_format)));
  if (p.ceiling != 224 && p.ceiling != 240 && (p.ceiling != 448 || p.fp8_format != Format::fp8_e4m3fn))
    throw CaseError(fmt::format("shape.ceiling: {} is none of 224, 240, and 448 for fp8_e4m3fn", p.ceiling));
  const CacheWrite plain;
  if (!grouped && (p.scale_format != plain.scale_format || p.ceiling != plain.ceiling))
    throw CaseError(
        fmt::format("shape: layout {} has no group scales; leave scale_format and ceiling", name(p.layout)));
  if (p.layout == CacheLayout::bf16 && (p.convention != plain.convention || p.fp8_format != plain.fp8_format))
    throw CaseError("shape.layout: bf16 is a copy; leave convention and formats.fp8");
  if (p.layout != CacheLayout::fp8 && p.kv_scale != 1.0F)
    throw CaseError(fmt::format("scales.kv_scale: layout {} has none; use 1", name(p.layout)));

  constexpr std::array fills = {Fill::normal, Fill::outlier_channels, Fill::tiny, Fill::saturating,
                                Fill::exact};
  if (std::find(fills.begin(), fills.end(), c.data.fill) == fills.end())
    throw CaseError(fmt::format("data.fill: {} is not for cache_write", name(c.data.fill)));
  if (c.memory.prefix_sharing)
    throw CaseError("memory.prefix_sharing: two requests would write the same slots");
  const CacheFootprint f = cache_footprint(cache_shape(p), c.memory);
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  if (f.used_bytes > gib / 4)
    throw CaseError(fmt::format("shape.requests: the cache takes {} MiB, more than 256", f.used_bytes >> 20));
  if (f.pool_bytes > 16 * gib)
    throw CaseError(fmt::format("memory.placement: {} with pages of {} bytes addresses {} GiB, more than 16",
                                name(c.memory.placement), f.page_stride_bytes, f.pool_bytes >> 30));
}

CacheShape cache_shape(const CacheWrite& p) {
  return {p.requests, p.page_size,
          static_cast<std::uint64_t>(p.page_size) * static_cast<std::uint64_t>(cache_token_bytes(p.layout))};
}

}  // namespace attest::cases
