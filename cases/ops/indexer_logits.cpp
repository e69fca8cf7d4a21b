// SPDX-License-Identifier: MIT
#include "cases/ops/indexer_logits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cases/case.h"
#include "cases/json_object.h"
#include "cases/paging.h"
#include "cases/requests.h"

namespace attest::cases {

void read(const JsonObject& root, IndexerLogits& p) {
  const JsonObject shape(root.required("shape"), "shape",
                         {"form", "heads", "page_size", "scale_format", "requests"});
  shape.read("form", p.form);
  shape.read("heads", p.heads);
  shape.read("page_size", p.page_size);
  shape.read("scale_format", p.scale_format);
  read_requests(shape, p.requests);
  (void)root.section("formats", {});
  (void)root.section("scales", {});
}

void write(JsonWriter& writer, const IndexerLogits& p) {
  writer.section("shape") = {{"form", name(p.form)},
                             {"heads", p.heads},
                             {"page_size", p.page_size},
                             {"scale_format", name(p.scale_format)},
                             {"requests", requests_json(p.requests)}};
}

void validate(const Case& c, const IndexerLogits& p) {
  require_range("shape.heads", p.heads, 1, 128);
  require_range("shape.page_size", p.page_size, 1, 1024);
  validate_requests(p.requests, 4096, 131072);
  const bool decode = p.form == TopKForm::decode;
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  std::int64_t longest = 1;
  for (const Request& r : p.requests) {
    rows += r.q_len;
    keys += r.kv_len;
    longest = std::max<std::int64_t>(longest, r.kv_len);
    if (decode && (r.q_len != p.requests.front().q_len || r.q_len > 8))
      throw CaseError(
          fmt::format("shape.requests: q_len {}; in decode form all are the same, 1..8", r.q_len));
  }
  constexpr std::int64_t most = 4 << 20;
  const std::int64_t logits = rows * (decode ? longest : std::max<std::int64_t>(keys, 1));
  if (logits > most) throw CaseError(fmt::format("shape: {} logits, more than {}", logits, most));
  if (rows * p.heads > most / 8)
    throw CaseError(fmt::format("shape: {} query heads, more than {}", rows * p.heads, most / 8));

  constexpr std::array fills = {Fill::normal, Fill::outlier_channels, Fill::saturating, Fill::exact};
  if (std::find(fills.begin(), fills.end(), c.data.fill) == fills.end())
    throw CaseError(fmt::format("data.fill: {} is not for indexer_logits", name(c.data.fill)));
  const MemoryRecipe& m = c.memory;
  if (!decode && (m.placement > Placement::shuffled || m.page_padding_bytes != 0 || m.prefix_sharing))
    throw CaseError(
        "memory: the prefill form reads no pages; leave placement, page_padding_bytes and prefix_sharing");
  if (m.prefix_sharing) throw CaseError("memory.prefix_sharing: indexer_logits has none");
  const CacheFootprint f = cache_footprint(cache_shape(p), m);
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  if (f.used_bytes > gib / 4)
    throw CaseError(fmt::format("shape.requests: the cache takes {} MiB, more than 256", f.used_bytes >> 20));
  if (f.pool_bytes > 16 * gib)
    throw CaseError(fmt::format("memory.placement: {} with pages of {} bytes addresses {} GiB, more than 16",
                                name(m.placement), f.page_stride_bytes, f.pool_bytes >> 30));
}

CacheShape cache_shape(const IndexerLogits& p) {
  return {p.requests, p.page_size,
          static_cast<std::uint64_t>(p.page_size) *
              static_cast<std::uint64_t>(cache_token_bytes(CacheLayout::indexer))};
}

}  // namespace attest::cases
