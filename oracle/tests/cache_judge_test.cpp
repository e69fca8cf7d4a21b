// SPDX-License-Identifier: MIT
//
// The judges of cache_write and indexer_logits against a plain writer and a plain f32 kernel: right ones
// pass, each kind of wrong one fails by its name.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "oracle/judge.h"
#include "oracle/precision.h"
#include "oracle/sparse/indexer_judge.h"
#include "reference/cache_write.h"
#include "reference/formats.h"

namespace attest::oracle {
namespace {

using cases::CacheLayout;
using cases::CacheWrite;
using cases::Fill;
using reference::Format;

cases::Case case_of(cases::Problem problem, Fill fill = Fill::normal) {
  cases::Case c;
  c.seed = 11;
  c.problem = std::move(problem);
  c.data.fill = fill;
  return c;
}

std::string said(const cases::Case& c, const cases::Inputs& in, const char* name,
                 std::span<const std::byte> bytes) {
  cases::Outputs outputs;
  outputs.tensors.push_back({name, {bytes.begin(), bytes.end()}});
  const Verdict v = judge(c, in, outputs, profile("bf16"));
  return v.kind == VerdictKind::pass ? "pass" : v.diagnosis;
}

float bf16_at(const std::byte* from, std::size_t i) {
  std::uint16_t code = 0;
  std::memcpy(&code, from + 2 * i, 2);
  return static_cast<float>(reference::decode(Format::bf16, code));
}

/// What may go wrong in the plain writer.
struct Slip {
  bool write_skipped = false, rope_over_scales = false, other_format = false, negative_zero = false,
       unit_scale = false, ceiling_448 = false, interleaved = false, next_slot = false;
  reference::Quotient quotient = reference::Quotient::division;
};

/// Pools of these tests have one extent.
class Writer {
 public:
  Writer(const CacheWrite& p, const cases::CacheWriteInputs& in, const Slip& slip)
      : p_(p), in_(in), slip_(slip), pool_(in.pool.extents.back().bytes) {
    REQUIRE(in.pool.extents.size() == 1);
  }

  std::vector<std::byte> run() {
    for (std::size_t t = 0; t < in_.slot_mapping.size(); ++t) {
      std::int64_t slot = in_.slot_mapping[t];
      if (slot < 0 && !slip_.write_skipped) continue;
      slot = std::max<std::int64_t>(slot, 0) ^ (slip_.next_slot ? 1 : 0);
      write(t, slot);
    }
    return pool_;
  }

 private:
  void put(std::uint64_t at, const void* from, std::size_t count) {
    std::memcpy(pool_.data() + (at - in_.pool.extents.back().offset), from, count);
  }

  void values(std::uint64_t at, const std::byte* from, int count, float scale) {
    for (int i = 0; i < count; ++i) {
      const float x = bf16_at(from, static_cast<std::size_t>(i));
      std::uint8_t code = reference::quantise(
          slip_.other_format ? Format::fp8_e4m3fn : Format::fp8_e4m3fnuz,
          slip_.other_format ? std::clamp(x, -200 * scale, 200 * scale) : x, scale, slip_.quotient);
      if (slip_.negative_zero && code == 0 && std::signbit(x)) code = 0x80;
      put(at + static_cast<std::uint64_t>(i), &code, 1);
    }
  }

  float group(const std::byte* from) {
    std::vector<float> x;
    for (std::size_t i = 0; i < 128; ++i) x.push_back(bf16_at(from, i));
    reference::GroupScale rule{.ceiling = slip_.ceiling_448 ? 448.0F : static_cast<float>(p_.ceiling),
                               .power_of_two = p_.scale_format == cases::ScaleFormat::ue8m0};
    if (p_.layout == CacheLayout::indexer) rule.amax_floor = 1e-4F;
    if (p_.layout == CacheLayout::ds_mla) rule.scale_floor = rule.power_of_two ? 1e-4F : FLT_MIN;
    return reference::group_scale(x, rule);
  }

  void write(std::size_t token, std::int64_t slot) {
    const auto page = static_cast<std::uint64_t>(slot / p_.page_size) * in_.page_stride_bytes;
    const auto offset = static_cast<std::uint64_t>(slot % p_.page_size);
    const std::byte* latent = in_.latent.data() + token * (p_.layout == CacheLayout::indexer ? 256U : 1024U);
    const std::byte* rope = in_.rope.empty() ? nullptr : in_.rope.data() + token * 128;
    switch (p_.layout) {
      case CacheLayout::bf16:
        put(page + offset * 1152, latent, 1024);
        put(page + offset * 1152 + 1024, rope, 128);
        break;
      case CacheLayout::fp8:
        values(page + offset * 576, latent, 512, slip_.unit_scale ? 1.0F : p_.kv_scale);
        values(page + offset * 576 + 512, rope, 64, slip_.unit_scale ? 1.0F : p_.kv_scale);
        break;
      case CacheLayout::ds_mla:
        for (std::uint64_t g = 0; g < 4; ++g) {
          const float scale = group(latent + g * 256);
          values(page + offset * 656 + g * 128, latent + g * 256, 128, scale);
          put(page + offset * 656 + 512 + 4 * g, &scale, 4);
        }
        put(page + offset * 656 + (slip_.rope_over_scales ? 512U : 528U), rope, 128);
        break;
      case CacheLayout::indexer: {
        const float scale = group(latent);
        const std::uint64_t at = page + offset * (slip_.interleaved ? 132U : 128U);
        values(at, latent, 128, scale);
        const std::uint64_t scales = static_cast<std::uint64_t>(p_.page_size) * 128 + 4 * offset;
        put(slip_.interleaved ? at + 128 : page + scales, &scale, 4);
        break;
      }
    }
  }

  const CacheWrite& p_;
  const cases::CacheWriteInputs& in_;
  Slip slip_;
  std::vector<std::byte> pool_;
};

std::string written(const CacheWrite& p, const Slip& slip = {}, Fill fill = Fill::normal) {
  const cases::Case c = case_of(p, fill);
  const cases::Inputs in = cases::materialise(c);
  return said(c, in, "pool", Writer(p, std::get<cases::CacheWriteInputs>(in), slip).run());
}

CacheWrite tokens(CacheLayout layout) {
  return {.layout = layout,
          .page_size = 4,
          .padding_tokens = 2,
          .skip_tokens = true,
          .requests = {{3, 9}, {5, 5}, {1, 8}}};
}

/// f32, one operation after the other.
std::vector<float> plain_logits(const cases::IndexerLogits& p, const cases::IndexerLogitsInputs& in,
                                const std::function<float(float dot)>& relu,
                                const std::function<float(const std::vector<float>&, std::size_t)>& scale_of,
                                bool with_q_scale = true) {
  std::vector<float> logits;
  const auto value = [](std::byte code) {
    return static_cast<float>(reference::decode(Format::fp8_e4m3fnuz, std::to_integer<std::uint32_t>(code)));
  };
  for (std::size_t row = 0; row < in.row_begin.size(); ++row)
    for (int column = 0; column < in.width; ++column) {
      if (column < in.row_begin[row] || column >= in.row_end[row]) {
        logits.push_back(-std::numeric_limits<float>::infinity());
        continue;
      }
      float sum = 0;
      for (std::size_t h = 0; h < static_cast<std::size_t>(p.heads); ++h) {
        const std::size_t head = row * static_cast<std::size_t>(p.heads) + h;
        float dot = 0;
        for (std::size_t i = 0; i < 128; ++i)
          dot += value(in.q[head * 128 + i]) * value(in.keys[static_cast<std::size_t>(column) * 128 + i]);
        sum += in.weights[head] * (with_q_scale ? in.q_scale[head] : 1.0F) * relu(dot);
      }
      logits.push_back(sum * scale_of(in.k_scale, static_cast<std::size_t>(column)));
    }
  return logits;
}

}  // namespace

TEST_CASE("cache_write: right bytes pass in every layout, fill, rule and convention") {
  for (const auto layout : {CacheLayout::bf16, CacheLayout::fp8, CacheLayout::ds_mla, CacheLayout::indexer})
    for (const auto fill :
         {Fill::normal, Fill::outlier_channels, Fill::tiny, Fill::saturating, Fill::exact}) {
      CacheWrite p = tokens(layout);
      INFO(cases::name(layout) << ' ' << cases::name(fill));
      if (layout == CacheLayout::fp8) p.kv_scale = 3.0F;
      CHECK(written(p, {}, fill) == "pass");
      if (layout == CacheLayout::bf16) continue;
      p.convention = cases::ScaleConvention::reciprocal;
      CHECK(written(p, {.quotient = reference::Quotient::reciprocal}, fill) == "pass");
      p.convention = cases::ScaleConvention::either;
      CHECK(written(p, {.quotient = reference::Quotient::reciprocal}, fill) == "pass");
      CHECK(written(p, {.quotient = reference::Quotient::division}, fill) == "pass");
      if (layout == CacheLayout::fp8) continue;
      p.scale_format = cases::ScaleFormat::ue8m0;
      p.ceiling = 240;
      CHECK(written(p, {}, fill) == "pass");
    }
}

TEST_CASE(
    "cache_write: the other convention is a difference where one is promised, and none where either may be") {
  CacheWrite p = tokens(CacheLayout::fp8);
  p.kv_scale = 7.0F;
  p.requests = {{64, 64}};
  CHECK(written(p, {.quotient = reference::Quotient::division}, Fill::exact) == "pass");
  CHECK(written(p, {.quotient = reference::Quotient::reciprocal}, Fill::exact) == "values wrong");
  p.convention = cases::ScaleConvention::either;
  CHECK(written(p, {.quotient = reference::Quotient::reciprocal}, Fill::exact) == "pass");
}

TEST_CASE("cache_write: wrong bytes are called by their cause") {
  CHECK(written(tokens(CacheLayout::bf16), {.write_skipped = true}) != "pass");
  CHECK(written(tokens(CacheLayout::bf16), {.next_slot = true}) != "pass");
  CHECK(written(tokens(CacheLayout::ds_mla), {.rope_over_scales = true}) == "rope part over the scales");
  CHECK(written(tokens(CacheLayout::fp8), {.other_format = true}) == "the other fp8 format written");
  CHECK(written(tokens(CacheLayout::fp8), {.negative_zero = true}, Fill::tiny) == "negative zero written");
  CHECK(written(tokens(CacheLayout::ds_mla), {.negative_zero = true}, Fill::tiny) == "negative zero written");
  CacheWrite scaled = tokens(CacheLayout::fp8);
  scaled.kv_scale = 3.0F;
  CHECK(written(scaled, {.unit_scale = true}) == "kv scale missing");
  CHECK(written(tokens(CacheLayout::indexer), {.ceiling_448 = true}) == "group scales off by one factor");
  CHECK(written(tokens(CacheLayout::indexer), {.interleaved = true}) != "pass");
  CHECK(written(tokens(CacheLayout::ds_mla), {.negative_zero = true}) == "pass");  // nothing vanishes

  // One bit, in a token and outside of all of them.
  const CacheWrite p = tokens(CacheLayout::bf16);
  const cases::Case c = case_of(p);
  const cases::Inputs in = cases::materialise(c);
  const auto& inputs = std::get<cases::CacheWriteInputs>(in);
  const std::vector<std::byte> right = Writer(p, inputs, {}).run();
  std::size_t untouched = 0;
  while (right[untouched] != inputs.pool.extents.back().bytes[untouched]) ++untouched;
  std::vector<std::byte> wrong = right;
  wrong[untouched] ^= std::byte{1};
  CHECK(said(c, in, "pool", wrong) != "pass");
  wrong = right;
  std::size_t touched = 0;
  while (right[touched] == inputs.pool.extents.back().bytes[touched]) ++touched;
  wrong[touched] ^= std::byte{1};
  CHECK(said(c, in, "pool", wrong) != "pass");
  CHECK(said(c, in, "pool", inputs.pool.extents.back().bytes) == "tokens not written");
  CHECK(said(c, in, "pool", std::span(right).first(10)) == "outputs missing or of the wrong size");
}

TEST_CASE("indexer_logits: an f32 kernel passes, in every fill, and wrong ones are called by their cause") {
  const auto relu = [](float dot) { return std::max(dot, 0.0F); };
  const auto own = [](const std::vector<float>& scales, std::size_t s) { return scales[s]; };
  for (const auto fill : {Fill::normal, Fill::outlier_channels, Fill::saturating, Fill::exact})
    for (const auto format : {cases::ScaleFormat::f32, cases::ScaleFormat::ue8m0}) {
      const cases::IndexerLogits p{.form = cases::TopKForm::prefill,
                                   .heads = 5,
                                   .scale_format = format,
                                   .requests = {{2, 7}, {3, 11}}};
      const cases::Case c = case_of(p, fill);
      const cases::Inputs inputs = cases::materialise(c);
      const auto& in = std::get<cases::IndexerLogitsInputs>(inputs);
      INFO(cases::canonical_json(c));
      const auto verdict = [&](const std::vector<float>& logits) {
        return said(c, inputs, "logits", std::as_bytes(std::span(logits)));
      };
      const std::vector<float> right = plain_logits(p, in, relu, own);
      CHECK(verdict(right) == "pass");
      CHECK(verdict(plain_logits(p, in, [](float dot) { return dot; }, own)) == "relu missing");
      CHECK(verdict(plain_logits(p, in, relu, own, false)) == "query scale missing");
      std::vector<float> doubled = right;
      for (float& logit : doubled) logit *= 2;
      CHECK(verdict(doubled) == "fp8 read with the other bias: too large");
      std::vector<float> open = right;
      open[static_cast<std::size_t>(in.row_end[0])] = 0;
      CHECK(verdict(open) == "columns outside of the range not -inf");
      std::vector<float> blind = right;
      blind[0] = std::numeric_limits<float>::quiet_NaN();
      CHECK(verdict(blind) == "logits not finite");
      const std::vector<std::byte> poison =
          cases::poison_bytes(c, c.memory.output, cases::Format::f32, right.size(), "logits");
      CHECK(said(c, inputs, "logits", poison) == "rows not written");
    }
}

TEST_CASE("indexer_logits: the bound holds for f32 sums in any order, and is a small part of a logit") {
  const cases::IndexerLogits p{.form = cases::TopKForm::prefill, .heads = 64, .requests = {{2, 40}}};
  const cases::Case c = case_of(p);
  const cases::Inputs inputs = cases::materialise(c);
  const auto& in = std::get<cases::IndexerLogitsInputs>(inputs);
  const auto verdict = [&](const std::vector<float>& logits) {
    cases::Outputs outputs;
    const auto bytes = std::as_bytes(std::span(logits));
    outputs.tensors.push_back({"logits", {bytes.begin(), bytes.end()}});
    return judge(c, inputs, outputs, profile("bf16"));
  };
  const auto relu = [](float dot) { return std::max(dot, 0.0F); };
  const auto own = [](const std::vector<float>& scales, std::size_t s) { return scales[s]; };
  const std::vector<float> right = plain_logits(p, in, relu, own);
  const Verdict v = verdict(right);
  CHECK(v.kind == VerdictKind::pass);
  CHECK(v.used_budget > 1e-4);
  CHECK(v.used_budget < 0.5);
  // A thousandth of a typical logit is far outside.
  float largest = 0;
  for (std::size_t i = 0; i < 30; ++i) largest = std::max(largest, std::abs(right[i]));
  std::vector<float> off = right;
  off[3] += largest / 1000;
  CHECK(verdict(off).kind == VerdictKind::fail);
}

}  // namespace attest::oracle
