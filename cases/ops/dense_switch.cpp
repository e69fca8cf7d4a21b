// SPDX-License-Identifier: MIT
#include "cases/ops/dense_switch.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "cases/case.h"
#include "cases/json_object.h"
#include "cases/paging.h"
#include "cases/requests.h"

namespace attest::cases {

CacheShape cache_shape(const DenseSwitch& p) {
  const std::uint64_t row_bytes = p.kv_format == Format::bf16 ? 1152 : 576;
  return {p.requests, p.page_size, static_cast<std::uint64_t>(p.page_size) * row_bytes};
}

int decode_requests(const DenseSwitch& p) {
  int decodes = 0;
  while (decodes < static_cast<int>(p.requests.size()) &&
         p.requests[static_cast<std::size_t>(decodes)].q_len <= 1)
    ++decodes;
  return decodes;
}

bool runs_dense(const DenseSwitch& p) {
  int longest = 0;
  for (auto r = p.requests.begin() + decode_requests(p); r != p.requests.end(); ++r)
    longest = std::max(longest, r->kv_len);
  return longest <= p.topk;
}

int list_length(const DenseSwitch& p, int request, int position) {
  const Request& r = p.requests[static_cast<std::size_t>(request)];
  return std::min(r.kv_len - r.q_len + position + 1, p.topk);
}

void read(const JsonObject& root, DenseSwitch& p) {
  const JsonObject shape(root.required("shape"), "shape",
                         {"heads", "page_size", "topk", "requests", "previous_kv_lens"});
  shape.read("heads", p.heads);
  shape.read("page_size", p.page_size);
  shape.read("topk", p.topk);
  read_requests(shape, p.requests);
  shape.read("previous_kv_lens", p.previous_kv_lens);
  root.section("formats", {"kv"}).read("kv", p.kv_format);
  const JsonObject scales = root.section(
      "scales", {"sm_scale", "sm_scale_value", "q_scale", "q_scale_value", "kv_scale", "kv_scale_value"});
  scales.read_scale("sm_scale", p.sm_scale);
  scales.read_scale("q_scale", p.q_scale);
  scales.read_scale("kv_scale", p.kv_scale);
}

void write(JsonWriter& writer, const DenseSwitch& p) {
  writer.section("shape") = {{"heads", p.heads},
                             {"page_size", p.page_size},
                             {"topk", p.topk},
                             {"requests", requests_json(p.requests)},
                             {"previous_kv_lens", p.previous_kv_lens}};
  writer.section("formats") = {{"kv", name(p.kv_format)}};
  writer.scale("scales", "sm_scale", p.sm_scale);
  writer.scale("scales", "q_scale", p.q_scale);
  writer.scale("scales", "kv_scale", p.kv_scale);
}

void validate(const Case& c, const DenseSwitch& p) {
  require_range("shape.heads", p.heads, 1, 128);
  require_range("shape.page_size", p.page_size, 1, 1024);
  require_range("shape.topk", p.topk, 1, 2048);
  if (p.requests.empty() || p.requests.size() > 64) {
    throw CaseError(fmt::format("shape.requests: {} entries, outside 1..64", p.requests.size()));
  }
  const auto decodes = static_cast<std::size_t>(decode_requests(p));
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    const Request& r = p.requests[i];
    require_range(fmt::format("shape.requests[{}].kv_len", i), r.kv_len, 1, 4096);
    require_range(fmt::format("shape.requests[{}].q_len", i), r.q_len, 1, std::min(r.kv_len, 1024));
    if (i >= decodes && r.q_len == 1) {
      throw CaseError(
          fmt::format("shape.requests[{}].q_len: 1 after a prefill; decodes (q_len 1) come first", i));
    }
  }
  if (!p.previous_kv_lens.empty() && p.previous_kv_lens.size() != p.requests.size()) {
    throw CaseError(fmt::format("shape.previous_kv_lens: {} entries for {} requests; as many, or none",
                                p.previous_kv_lens.size(), p.requests.size()));
  }
  for (std::size_t i = 0; i < p.previous_kv_lens.size(); ++i)
    require_range(fmt::format("shape.previous_kv_lens[{}]", i), p.previous_kv_lens[i], p.requests[i].q_len,
                  4096);
  if (p.kv_format != Format::bf16 && p.kv_format != Format::fp8_e4m3fnuz) {
    throw CaseError(
        fmt::format("formats.kv: dense_switch takes bf16 or fp8_e4m3fnuz, not {}", name(p.kv_format)));
  }
  require_range("scales.sm_scale", p.sm_scale, 0x1p-10F, 8.0F);
  require_range("scales.q_scale", p.q_scale, 0x1p-7F, 128.0F);
  require_range("scales.kv_scale", p.kv_scale, 0x1p-7F, 128.0F);
  if (c.data.fill != Fill::normal && c.data.fill != Fill::mean_shifted && c.data.fill != Fill::wide_scores) {
    throw CaseError(fmt::format("data.fill: dense_switch takes normal, mean_shifted or wide_scores, not {}",
                                name(c.data.fill)));
  }
  if (c.memory.prefix_sharing) {
    throw CaseError("memory.prefix_sharing: dense_switch does not share prefixes; use false");
  }
  validate_footprint(cache_shape(p), c.memory);
}

}  // namespace attest::cases
