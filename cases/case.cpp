// SPDX-License-Identifier: MIT
#include "cases/case.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "cases/fills.h"
#include "cases/paging.h"

namespace attest::cases {
namespace {

template <typename Value>
void require_range(const std::string& field, Value value, Value low, Value high) {
  if (!(value >= low && value <= high)) {
    throw CaseError(fmt::format("{}: {} is outside {}..{}", field, value, low, high));
  }
}

void require_multiple(const std::string& field, int value, int of) {
  if (value % of != 0) throw CaseError(fmt::format("{}: {} is not a multiple of {}", field, value, of));
}

bool is_power_of_two(float value) {
  int exponent = 0;
  return std::frexp(value, &exponent) == 0.5F;
}

void validate_formats(const MlaDecode& p) {
  const auto bf16_or_fnuz = [](const char* field, Format format) {
    if (format != Format::bf16 && format != Format::fp8_e4m3fnuz) {
      throw CaseError(fmt::format("{}: mla_decode takes bf16 or fp8_e4m3fnuz, not {}", field, name(format)));
    }
  };
  bf16_or_fnuz("formats.q", p.q_format);
  bf16_or_fnuz("formats.kv", p.kv_format);
  if (p.out_format != Format::bf16) {
    throw CaseError(fmt::format("formats.out: mla_decode writes bf16, not {}", name(p.out_format)));
  }
  if (p.q_format != Format::bf16 && p.kv_format == Format::bf16) {
    throw CaseError(
        fmt::format("formats.q: {} needs formats.kv to be {} too", name(p.q_format), name(p.q_format)));
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

void validate_memory(const MlaDecode& p, const MemoryRecipe& memory) {
  require_range("memory.page_padding_bytes", memory.page_padding_bytes, 0, 65536);
  require_multiple("memory.page_padding_bytes", memory.page_padding_bytes, 16);
  require_range("memory.guard_bytes", memory.guard_bytes, 256, 65536);
  require_multiple("memory.guard_bytes", memory.guard_bytes, 256);

  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  const CacheFootprint footprint = cache_footprint(p, memory);
  if (footprint.used_bytes > 4 * gib) {
    throw CaseError(
        fmt::format("shape.requests: the cache takes {} MiB, more than 4096; fewer or shorter requests",
                    footprint.used_bytes >> 20));
  }
  if (footprint.pool_bytes > 16 * gib) {
    throw CaseError(fmt::format(
        "memory.placement: {} with pages of {} bytes addresses {} GiB, more than 16; smaller pages",
        name(memory.placement), footprint.page_stride_bytes, footprint.pool_bytes >> 30));
  }
}

}  // namespace

const char* op_name(const Problem& problem) {
  struct Names {
    const char* operator()(const MlaDecode&) const { return "mla_decode"; }
  };
  return std::visit(Names{}, problem);
}

const char* name(Format format) {
  constexpr std::array names = {"bf16",         "f16",      "f32",          "fp8_e4m3fn",
                                "fp8_e4m3fnuz", "fp8_e5m2", "fp8_e5m2fnuz", "e8m0"};
  return names.at(static_cast<std::size_t>(format));
}

const char* name(Fill fill) {
  constexpr std::array names = {
      "normal",      "mean_shifted",    "outlier_channels", "needle", "position_coded", "constant_scores",
      "wide_scores", "negative_offset", "deep_offset",      "tiny",   "cancelling",     "saturating",
      "exact"};
  return names.at(static_cast<std::size_t>(fill));
}

const char* name(Poison poison) {
  constexpr std::array names = {"nan", "inf", "large", "stale", "zero"};
  return names.at(static_cast<std::size_t>(poison));
}

const char* name(Placement placement) {
  constexpr std::array names = {"ordered", "shuffled", "reversed", "high", "beyond_2gib", "beyond_4gib"};
  return names.at(static_cast<std::size_t>(placement));
}

void validate(const Case& c) {
  const MlaDecode& p = std::get<MlaDecode>(c.problem);
  require_range("shape.heads", p.heads, 1, 128);
  require_range("shape.page_size", p.page_size, 1, 1024);
  require_range("shape.num_splits", p.num_splits, 1, 32);
  if (p.requests.empty() || p.requests.size() > 512) {
    throw CaseError(fmt::format("shape.requests: {} entries, outside 1..512", p.requests.size()));
  }
  bool any_query = false;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    require_range(fmt::format("shape.requests[{}].q_len", i), p.requests[i].q_len, 0, 16);
    require_range(fmt::format("shape.requests[{}].kv_len", i), p.requests[i].kv_len, 0, 131072);
    any_query = any_query || p.requests[i].q_len > 0;
  }
  if (!any_query) throw CaseError("shape.requests: every q_len is 0; at least one request needs a query");
  validate_formats(p);
  validate_scales(p, c.data.fill);
  validate_memory(p, c.memory);
}

}  // namespace attest::cases
