// SPDX-License-Identifier: MIT
#include "cases/ops/mla_decode.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "cases/case.h"
#include "cases/fills.h"
#include "cases/json_object.h"
#include "cases/ops/mla_numbers.h"
#include "cases/paging.h"
#include "cases/requests.h"

namespace attest::cases {

std::span<const char* const> names(KvLayout) {
  static constexpr const char* all[] = {"rows", "ds", "ds_page"};
  return all;
}

namespace {

bool is_power_of_two(float value) {
  int exponent = 0;
  return std::frexp(value, &exponent) == 0.5F;
}

void validate_formats(const char* op, const MlaDecode& p) {
  const auto bf16_or_fnuz = [op](const char* field, Format format) {
    if (format != Format::bf16 && format != Format::fp8_e4m3fnuz) {
      throw CaseError(fmt::format("{}: {} takes bf16 or fp8_e4m3fnuz, not {}", field, op, name(format)));
    }
  };
  bf16_or_fnuz("formats.q", p.q_format);
  bf16_or_fnuz("formats.kv", p.kv_format);
  if (p.out_format != Format::bf16) {
    throw CaseError(fmt::format("formats.out: {} writes bf16, not {}", op, name(p.out_format)));
  }
  if (p.q_format != Format::bf16 && p.kv_format == Format::bf16) {
    throw CaseError(
        fmt::format("formats.q: {} needs formats.kv to be {} too", name(p.q_format), name(p.q_format)));
  }
}

void validate_layout(const MlaDecode& p) {
  if (p.kv_layout == KvLayout::rows) return;
  if (p.kv_layout == KvLayout::ds) {
    throw CaseError("formats.kv_layout: mla_decode takes rows or ds_page, not ds");
  }
  if (p.kv_format != Format::fp8_e4m3fnuz) {
    throw CaseError(
        fmt::format("formats.kv: kv_layout ds_page takes fp8_e4m3fnuz, not {}", name(p.kv_format)));
  }
  if (p.q_format != Format::bf16) {
    throw CaseError(fmt::format("formats.q: kv_layout ds_page takes bf16, not {}", name(p.q_format)));
  }
  if (p.kv_scale != 1.0F) {
    throw CaseError(fmt::format(
        "scales.kv_scale: {} with formats.kv_layout ds_page, which has its scales in the cache; use 1",
        p.kv_scale));
  }
}

void validate_scales(const MlaDecode& p, Fill fill) {
  require_range("scales.sm_scale", p.sm_scale, 0x1p-10F, 8.0F);
  require_range("scales.q_scale", p.q_scale, 0x1p-7F, 128.0F);
  require_range("scales.kv_scale", p.kv_scale, 0x1p-7F, 128.0F);
  if (p.q_format == Format::bf16 && p.q_scale != 1.0F) {
    throw CaseError(
        fmt::format("scales.q_scale: {} with formats.q bf16, which has no scale; use 1", p.q_scale));
  }
  if (p.kv_format == Format::bf16 && p.kv_scale != 1.0F) {
    throw CaseError(
        fmt::format("scales.kv_scale: {} with formats.kv bf16, which has no scale; use 1", p.kv_scale));
  }
  if ((fill == Fill::exact || fill == Fill::constant_scores) && !is_power_of_two(p.kv_scale)) {
    throw CaseError(
        fmt::format("scales.kv_scale: data.fill {} needs a power of two, not {}", name(fill), p.kv_scale));
  }
  if (!scores_reachable(p, fill)) {
    throw CaseError(fmt::format(
        "scales: with sm_scale * q_scale * kv_scale = {} an fp8 q cannot reach the scores of data.fill {}",
        score_scale(p), name(fill)));
  }
}

}  // namespace

void validate_mla_numbers(const char* op, const MlaDecode& p, Fill fill) {
  if (fill > Fill::exact) throw CaseError(fmt::format("data.fill: {} is not for attention", name(fill)));
  validate_formats(op, p);
  validate_scales(p, fill);
}

void read(const JsonObject& root, MlaDecode& p) {
  const JsonObject shape(root.required("shape"), "shape",
                         {"heads", "page_size", "num_splits", "causal", "return_lse", "requests"});
  shape.read("heads", p.heads);
  shape.read("page_size", p.page_size);
  shape.read("num_splits", p.num_splits);
  shape.read("causal", p.causal);
  shape.read("return_lse", p.return_lse);
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

void write(JsonWriter& writer, const MlaDecode& p) {
  writer.section("shape") = {{"heads", p.heads},           {"page_size", p.page_size},
                             {"num_splits", p.num_splits}, {"causal", p.causal},
                             {"return_lse", p.return_lse}, {"requests", requests_json(p.requests)}};
  writer.section("formats") = {
      {"q", name(p.q_format)}, {"kv", name(p.kv_format)}, {"out", name(p.out_format)}};
  // Younger than the other fields: files without it keep their text, and with it their id.
  if (p.kv_layout != KvLayout::rows) writer.section("formats")["kv_layout"] = name(p.kv_layout);
  writer.scale("scales", "sm_scale", p.sm_scale);
  writer.scale("scales", "q_scale", p.q_scale);
  writer.scale("scales", "kv_scale", p.kv_scale);
}

void validate(const Case& c, const MlaDecode& p) {
  require_range("shape.heads", p.heads, 1, 128);
  require_range("shape.page_size", p.page_size, 1, 1024);
  require_range("shape.num_splits", p.num_splits, 1, 32);
  validate_requests(p.requests, 16, 131072);
  validate_layout(p);
  validate_mla_numbers(MlaDecode::op, p, c.data.fill);
  validate_footprint(cache_shape(p), c.memory);
}

}  // namespace attest::cases
