// SPDX-License-Identifier: MIT
#include "oracle/sparse/cache_write_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "oracle/sparse/numbers.h"
#include "reference/cache_write.h"
#include "reference/indexer.h"

namespace attest::oracle {
namespace {

using cases::CacheLayout;
using cases::CacheWrite;
using cases::CacheWriteInputs;
using cases::ScaleConvention;
using reference::Format;

std::uint32_t u32_at(const std::byte* from) {
  std::uint32_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}
float f32_at(const std::byte* from) {
  return static_cast<float>(reference::decode(Format::f32, u32_at(from)));
}

/// The bytes of all extents, by their place in the pool.
class Image {
 public:
  Image(const cases::SparseBytes& pool, std::span<const std::byte> bytes) : pool_(pool), bytes_(bytes) {}

  /// Where in the concatenated extents byte `offset` of the pool lies.
  [[nodiscard]] std::size_t index(std::uint64_t offset) const {
    std::size_t before = 0;
    for (const auto& extent : pool_.extents) {
      if (offset >= extent.offset && offset - extent.offset < extent.bytes.size())
        return before + static_cast<std::size_t>(offset - extent.offset);
      before += extent.bytes.size();
    }
    throw std::out_of_range("no extent of the pool holds the slot");
  }
  /// The reverse.
  [[nodiscard]] std::uint64_t offset(std::size_t index) const {
    for (const auto& extent : pool_.extents) {
      if (index < extent.bytes.size()) return extent.offset + index;
      index -= extent.bytes.size();
    }
    return pool_.size;
  }
  [[nodiscard]] const std::byte* at(std::uint64_t offset) const { return bytes_.data() + index(offset); }

 private:
  const cases::SparseBytes& pool_;
  std::span<const std::byte> bytes_;
};

enum class Part : std::uint8_t { values, scale, rope };

/// One wrong byte or scale of a token.
struct Wrong {
  std::size_t token = 0;
  Part part = Part::values;
  int column = 0;
  double expected = 0, got = 0;
  std::uint32_t got_code = 0;
  float value = 0, scaled = 0;  ///< of an fp8 value: x, and x / scale
};

class TokenJudge {
 public:
  TokenJudge(const CacheWrite& p, const CacheWriteInputs& in, const Image& got, const Image& before)
      : p_(p), in_(in), got_(got), before_(before) {
    fp8_ = p.fp8_format == cases::Format::fp8_e4m3fnuz ? Format::fp8_e4m3fnuz : Format::fp8_e4m3fn;
    rule_.ceiling = static_cast<float>(p.ceiling);
    rule_.power_of_two = p.scale_format == cases::ScaleFormat::ue8m0;
    if (p.layout == CacheLayout::indexer) rule_.amax_floor = 1e-4F;
    if (p.layout == CacheLayout::ds_mla) rule_.scale_floor = rule_.power_of_two ? 1e-4F : FLT_MIN;
    latent_ = p.layout == CacheLayout::indexer ? reference::indexer_width : reference::latent_columns;
  }

  /// Appends what is wrong with a token that has a slot, and marks its bytes as accounted for.
  void judge(std::size_t token, std::vector<Wrong>& wrong, std::vector<bool>& owned) {
    token_ = token;
    wrong_ = &wrong;
    owned_ = &owned;
    load();
    const std::int64_t slot = in_.slot_mapping[token];
    const auto page = static_cast<std::uint64_t>(slot / p_.page_size);
    const int offset = static_cast<int>(slot % p_.page_size);
    const std::uint64_t base = page * in_.page_stride_bytes;
    const std::uint64_t row = base + static_cast<std::uint64_t>(offset) *
                                         static_cast<std::uint64_t>(cases::cache_token_bytes(p_.layout));
    switch (p_.layout) {
      case CacheLayout::bf16:
        copy(row, in_.latent.data() + token * std::size_t{2 * 512}, 2 * 512, Part::values);
        copy(row + 2 * 512, rope(), 2 * 64, Part::rope);
        break;
      case CacheLayout::fp8:
        quantised(row, values_, p_.kv_scale, 0);
        break;
      case CacheLayout::ds_mla:
        for (int g = 0; g < reference::latent_columns / reference::ds_group; ++g)
          group(row + static_cast<std::uint64_t>(g * reference::ds_group),
                row + static_cast<std::uint64_t>(reference::ds_scale_at + 4 * g), g);
        copy(row + reference::ds_rope_at, rope(), 2 * 64, Part::rope);
        break;
      case CacheLayout::indexer:
        group(base + reference::indexer_values_at(offset),
              base + reference::indexer_scale_at(p_.page_size, offset), 0);
        break;
    }
  }

  /// As far as they were judged: bytes that do not hold what they held before.
  [[nodiscard]] bool touched() const { return touched_; }
  [[nodiscard]] Format fp8() const { return fp8_; }

 private:
  [[nodiscard]] const std::byte* rope() const { return in_.rope.data() + token_ * std::size_t{2 * 64}; }

  void load() {
    touched_ = false;
    std::vector<double> decoded(static_cast<std::size_t>(latent_));
    const auto bytes = static_cast<std::size_t>(2 * latent_);
    reference::decode(Format::bf16, std::span(in_.latent).subspan(token_ * bytes, bytes), decoded);
    values_.assign(decoded.begin(), decoded.end());
    if (p_.layout != CacheLayout::fp8) return;
    decoded.resize(64);
    reference::decode(Format::bf16, {rope(), 2 * 64}, decoded);
    values_.insert(values_.end(), decoded.begin(), decoded.end());
  }

  void own(std::uint64_t offset, std::size_t count) {
    const std::size_t first = got_.index(offset);
    std::fill_n(owned_->begin() + static_cast<std::ptrdiff_t>(first), count, true);
    touched_ = touched_ || std::memcmp(got_.at(offset), before_.at(offset), count) != 0;
  }

  void copy(std::uint64_t offset, const std::byte* from, int count, Part part) {
    own(offset, static_cast<std::size_t>(count));
    const std::byte* got = got_.at(offset);
    for (int i = 0; i < count; ++i)
      if (got[i] != from[i])
        wrong_->push_back(
            {token_, part, i / 2, std::to_integer<int>(from[i]) * 1.0, std::to_integer<int>(got[i]) * 1.0});
  }

  void quantised(std::uint64_t offset, std::span<const float> values, float scale, int first_column) {
    own(offset, values.size());
    const std::byte* got = got_.at(offset);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto code = std::to_integer<std::uint8_t>(got[i]);
      const bool multiply = p_.convention == ScaleConvention::reciprocal;
      const auto how = multiply ? reference::Quotient::reciprocal : reference::Quotient::division;
      const std::uint8_t expected = reference::quantise(fp8_, values[i], scale, how);
      if (code == expected || (p_.convention == ScaleConvention::either && near(code, values[i], scale)))
        continue;
      wrong_->push_back({token_, Part::values, first_column + static_cast<int>(i),
                         reference::decode(fp8_, expected), reference::decode(fp8_, code), code, values[i],
                         values[i] / scale});
    }
  }

  /// fp8 of some quotient within three roundings of the exact one.
  [[nodiscard]] bool near(std::uint8_t code, float x, float scale) const {
    const double exact = double{x} / double{scale};
    const double error = 3 * 0x1p-24 * std::abs(exact);
    const auto at = [&](double q) {
      return reference::decode(fp8_, reference::encode(fp8_, q, reference::Overflow::saturate));
    };
    const double value = reference::decode(fp8_, code);
    return at(exact - error) <= value && value <= at(exact + error);
  }

  void group(std::uint64_t values_at, std::uint64_t scale_at, int g) {
    const auto values = std::span<const float>(values_).subspan(static_cast<std::size_t>(g) * 128, 128);
    const float expected = reference::group_scale(values, rule_);
    own(scale_at, 4);
    const float got = f32_at(got_.at(scale_at));
    if (!scale_right(got, expected, values)) {
      wrong_->push_back({token_, Part::scale, g, double{expected}, double{got}});
      quantised(values_at, values, expected, g * 128);
      return;
    }
    quantised(values_at, values, p_.convention == ScaleConvention::either ? got : expected, g * 128);
  }

  [[nodiscard]] bool scale_right(float got, float expected, std::span<const float> values) const {
    if (got == expected) return true;
    if (p_.convention != ScaleConvention::either) return false;
    constexpr double error = 3 * 0x1p-24;
    if (!rule_.power_of_two) return std::abs(double{got} - double{expected}) <= error * double{expected};
    // Either side of a power of two that the unrounded scale is that close to.
    reference::GroupScale plain = rule_;
    plain.power_of_two = false;
    const double unrounded = reference::group_scale(values, plain);
    const bool close = std::abs(unrounded / std::exp2(std::round(std::log2(unrounded))) - 1) <= error;
    return close && (got == 2 * expected || 2 * got == expected);
  }

  const CacheWrite& p_;
  const CacheWriteInputs& in_;
  const Image& got_;
  const Image& before_;
  Format fp8_;
  reference::GroupScale rule_;
  int latent_ = 0;
  std::size_t token_ = 0;
  std::vector<float> values_;
  std::vector<Wrong>* wrong_ = nullptr;
  std::vector<bool>* owned_ = nullptr;
  bool touched_ = false;
};

std::string diagnose(const CacheWrite& p, const std::vector<Wrong>& wrong, std::int64_t untouched,
                     std::size_t stray, bool skipped_tokens, Format fp8) {
  if (stray > 0 && untouched > 0) return "tokens written to another place";
  if (wrong.empty())
    return skipped_tokens ? "token without a slot written" : "bytes outside of the slots changed";
  if (untouched > 0) return "tokens not written";
  const auto all = [&](auto is) { return std::all_of(wrong.begin(), wrong.end(), is); };
  const auto any = [&](Part part) {
    return std::any_of(wrong.begin(), wrong.end(), [&](const Wrong& w) { return w.part == part; });
  };
  if (all([](const Wrong& w) { return w.part == Part::rope; })) return "rope part wrong";
  if (p.layout == CacheLayout::ds_mla && any(Part::rope) && any(Part::scale))
    return "rope part over the scales";
  if (any(Part::rope)) return "row wrong";
  if (all([](const Wrong& w) { return w.part == Part::values && w.expected == 0 && w.got_code == 0x80; }))
    return "negative zero written";
  const Format other = fp8 == Format::fp8_e4m3fnuz ? Format::fp8_e4m3fn : Format::fp8_e4m3fnuz;
  if (all([&](const Wrong& w) {
        return w.part == Part::values &&
               reference::decode(other, w.got_code) ==
                   reference::decode(other,
                                     reference::encode(other, std::clamp(double{w.scaled}, -240.0, 240.0),
                                                       reference::Overflow::saturate));
      }))
    return "the other fp8 format written";
  if (p.layout == CacheLayout::fp8 && all([&](const Wrong& w) {
        return w.got ==
               reference::decode(fp8, reference::encode(fp8, double{w.value}, reference::Overflow::saturate));
      }))
    return "kv scale missing";
  if (any(Part::scale) && stray > 0) return "scales written to another place";
  if (any(Part::scale)) {
    double factor = 0;
    const bool same = all([&](const Wrong& w) {
      if (w.part != Part::scale) return true;
      if (factor == 0) factor = w.got / w.expected;
      return std::abs(w.got / w.expected - factor) <= 1e-6 * std::abs(factor);
    });
    return same ? "group scales off by one factor" : "group scales wrong";
  }
  return stray > 0 ? "values and bytes outside of the slots wrong" : "values wrong";
}

/// A token's columns: the latent part, the rope part, the scales.
struct Columns {
  int latent, rope, scales;

  explicit Columns(CacheLayout layout)
      : latent(layout == CacheLayout::indexer ? reference::indexer_width : reference::latent_columns),
        rope(layout == CacheLayout::indexer ? 0 : reference::rope_columns),
        scales(layout == CacheLayout::indexer  ? 1
               : layout == CacheLayout::ds_mla ? latent / reference::ds_group
                                               : 0) {}
  [[nodiscard]] int of(const Wrong& w) const {
    return w.column + (w.part == Part::values ? 0 : w.part == Part::rope ? latent : latent + rope);
  }
};

Mismatch mismatch(const CacheWrite& p, const CacheWriteInputs& in, const std::vector<Wrong>& wrong) {
  const Columns columns(p.layout);
  const auto [latent, rope, scales] = columns;
  std::vector<std::string> names;
  for (int i = 0; i < latent; ++i) names.push_back(std::to_string(i));
  for (int i = 0; i < rope; ++i) names.push_back(fmt::format("r{}", i));
  for (int i = 0; i < scales; ++i) names.push_back(fmt::format("s{}", i));
  MismatchGrid grid("column");
  for (std::size_t token = 0; token < in.slot_mapping.size(); ++token)
    for (int column = 0; column < latent + rope + scales; ++column)
      grid.note(0, static_cast<int>(token), column, in.slot_mapping[token] < 0 ? Mismatch::not_checked : 0);
  for (const Wrong& w : wrong)
    grid.note(0, static_cast<int>(w.token), columns.of(w), std::numeric_limits<double>::infinity());
  return grid.map(names);
}

}  // namespace

Verdict judge_cache_write(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs) {
  const auto& p = std::get<CacheWrite>(c.problem);
  const auto& in = std::get<CacheWriteInputs>(inputs);
  Verdict verdict;
  verdict.lane = p.convention == ScaleConvention::either ? "element" : "exact";
  std::vector<std::byte> before;
  for (const auto& extent : in.pool.extents)
    before.insert(before.end(), extent.bytes.begin(), extent.bytes.end());
  std::vector<std::byte> after;
  if (!read_output(outputs, "pool", before.size(), after, verdict)) return verdict;

  const Image got(in.pool, after);
  const Image old(in.pool, before);
  TokenJudge judge(p, in, got, old);
  std::vector<Wrong> wrong;
  std::vector<bool> owned(after.size());
  std::int64_t written = 0;
  std::int64_t untouched = 0;
  bool skipped = false;
  for (std::size_t token = 0; token < in.slot_mapping.size(); ++token) {
    if (in.slot_mapping[token] < 0) {
      skipped = true;
      continue;
    }
    const std::size_t wrong_before = wrong.size();
    judge.judge(token, wrong, owned);
    ++written;
    if (wrong.size() == wrong_before) continue;
    ++verdict.rows_failed;
    untouched += judge.touched() ? 0 : 1;
  }
  std::size_t stray = 0;
  std::size_t first_stray = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (owned[i] || after[i] == before[i]) continue;
    if (stray++ == 0) first_stray = i;
  }
  verdict.elements_checked = static_cast<std::int64_t>(after.size());
  verdict.elements_failed = std::ssize(wrong) + static_cast<std::int64_t>(stray);

  if (wrong.empty() && stray == 0) {
    if (written > 0) return verdict;
    verdict.kind = VerdictKind::mistrusted;
    verdict.diagnosis = "nothing was proved";
    verdict.detail = "no token has a slot";
    return verdict;
  }
  verdict.kind = VerdictKind::fail;
  verdict.stage = "exact";
  verdict.used_budget = 2;
  verdict.diagnosis = diagnose(p, wrong, untouched, stray, skipped, judge.fp8());
  verdict.mismatch = mismatch(p, in, wrong);
  if (!wrong.empty()) {
    static constexpr std::array part_names = {"values", "scale", "rope"};
    const Wrong& w = wrong.front();
    verdict.detail =
        fmt::format("{} of {} tokens wrong; first token {}, slot {}, {} column {}: {:.9g}, expected {:.9g}",
                    verdict.rows_failed, written, w.token, in.slot_mapping[w.token],
                    part_names[static_cast<std::size_t>(w.part)], w.column, w.got, w.expected);
  }
  if (stray > 0)
    verdict.detail += fmt::format("{}{} bytes of no token changed, first at byte {} of the pool",
                                  wrong.empty() ? "" : "; ", stray, got.offset(first_stray));
  for (const Wrong& w : std::span(wrong).first(std::min<std::size_t>(wrong.size(), 10)))
    verdict.worst.push_back({.position = static_cast<int>(w.token),
                             .column = Columns(p.layout).of(w),
                             .expected = w.expected,
                             .got = w.got,
                             .bound = 0,
                             .term = verdict.lane});
  return verdict;
}

}  // namespace attest::oracle
