// SPDX-License-Identifier: MIT
//
// New tokens for cache_write: bf16 rows that make a quantiser's rules visible. Where a layout has group
// scales, a group of 128 columns is drawn by itself, so that scales differ between groups and tokens.
//
//   tiny         values that vanish in fp8 beside one that does not, of both signs (FNUZ has no -0,
//                https://github.com/sgl-project/sglang/pull/28455); every fourth group all zeros
//   saturating   layout fp8: up to four times the largest value; groups: up to 2^14, down to 2^-14
//   exact        midpoints between neighbours of fp8, whose rounding is a matter of ties to even
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "cases/byte_pool.h"
#include "cases/case.h"
#include "cases/narrow.h"
#include "cases/ops/cache_write.h"
#include "cases/paging.h"
#include "cases/random.h"

namespace attest::cases {
namespace {

constexpr int group = 128;
constexpr int latent_width = 512;
constexpr int rope_width = 64;

float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

/// Columns of one token, `group` at a time; the rope half group counts as one.
class TokenMaker {
 public:
  TokenMaker(const Case& c, const CacheWrite& p)
      : fill_(c.data.fill),
        seed_(c.seed),
        fp8_(p.layout == CacheLayout::fp8),
        unit_(p.kv_scale),
        ceiling_(fp8_ ? 240.0F : static_cast<float>(p.ceiling)) {}

  void columns(std::uint32_t token, std::uint32_t which, int count, float* out) const {
    const Counter draw(seed_, Draw::token, token, which);
    std::array<std::uint16_t, group> halves;
    draw.halves(0, group, halves.data());
    std::array<float, group> normal;
    normals(halves.data(), group, normal.data());
    const Counter of_group(seed_, Draw::token_choice, token, which);
    const int exponent = static_cast<int>(of_group.below(0, 29)) - 14;
    for (int i = 0; i < count; ++i)
      out[i] = value(halves[static_cast<std::size_t>(i)], normal[static_cast<std::size_t>(i)], i, exponent);
    const bool zeros = fill_ == Fill::tiny && of_group.below(1, 4) == 0;
    if (zeros) std::fill(out, out + count, 0.0F);
  }

 private:
  [[nodiscard]] float value(std::uint32_t half, float normal, int column, int exponent) const {
    switch (fill_) {
      case Fill::outlier_channels:
        return unit_ * normal * (column % 32 == 5 ? 30.0F : 1.0F);
      case Fill::tiny:
        return column == 7 ? unit_ : unit_ * normal * 0x1p-9F * (fp8_ ? 1.0F : 0x1p-7F);
      case Fill::saturating:
        return fp8_ ? unit_ * normal * 240.0F : normal * power_of_two(exponent);
      case Fill::exact: {
        // (odd / 16) * 2^e: halfway between two numbers of three fraction bits. The first of a group makes
        // its scale a power of two.
        const float sign = (half & 1U) != 0 ? -1.0F : 1.0F;
        const float midpoint = static_cast<float>(17 + 2 * (half >> 1 & 7U)) / 16 *
                               power_of_two(static_cast<int>(half >> 4 & 7U) - 2);
        if (fp8_) return sign * midpoint * unit_;
        return power_of_two(exponent) * (column == 0 ? ceiling_ : sign * midpoint);
      }
      default:
        return unit_ * normal * (fp8_ ? 1.0F : power_of_two(exponent / 4));
    }
  }

  Fill fill_;
  std::uint64_t seed_;
  bool fp8_;
  float unit_;
  float ceiling_;
};

}  // namespace

CacheWriteInputs materialise(const Case& c, const CacheWrite& p) {
  const PagePlan plan = plan_pages(cache_shape(p), c.memory, c.seed);
  CacheWriteInputs in;
  in.page_stride_bytes = plan.footprint.page_stride_bytes;
  in.pool =
      poisoned_pool(c, plan, c.memory.output, p.layout == CacheLayout::bf16 ? Format::bf16 : p.fp8_format);

  const Counter skip(c.seed, Draw::token_choice, 0xffffffffU, 0);
  for (std::size_t r = 0; r < p.requests.size(); ++r) {
    const Request& request = p.requests[r];
    const std::int32_t* pages = plan.pages.data() + plan.kv_indptr[r];
    for (int position = request.kv_len - request.q_len; position < request.kv_len; ++position) {
      const auto token = static_cast<std::uint32_t>(in.slot_mapping.size());
      const std::int64_t slot =
          std::int64_t{pages[position / p.page_size]} * p.page_size + position % p.page_size;
      in.slot_mapping.push_back(p.skip_tokens && skip.below(token, 5) == 0 ? -1 : slot);
    }
  }
  in.slot_mapping.resize(in.slot_mapping.size() + static_cast<std::size_t>(p.padding_tokens), -1);

  const bool indexer = p.layout == CacheLayout::indexer;
  const int latent = indexer ? group : latent_width;
  const std::size_t tokens = in.slot_mapping.size();
  in.latent.resize(tokens * static_cast<std::size_t>(2 * latent));
  if (!indexer) in.rope.resize(tokens * std::size_t{2 * rope_width});
  const TokenMaker make(c, p);
  std::array<float, group> values;
  for (std::size_t t = 0; t < tokens; ++t) {
    const auto token = static_cast<std::uint32_t>(t);
    std::byte* to = in.latent.data() + t * static_cast<std::size_t>(2 * latent);
    for (int g = 0; g < latent / group; ++g) {
      make.columns(token, static_cast<std::uint32_t>(g), group, values.data());
      narrow(Format::bf16, values.data(), group, to + std::ptrdiff_t{2} * g * group);
    }
    if (indexer) continue;
    make.columns(token, 4, rope_width, values.data());
    narrow(Format::bf16, values.data(), rope_width, in.rope.data() + t * std::size_t{2 * rope_width});
  }
  return in;
}

}  // namespace attest::cases
