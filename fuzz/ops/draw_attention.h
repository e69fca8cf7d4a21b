// SPDX-License-Identifier: MIT
//
// What the generators of absorbed attention over a paged cache draw alike: heads, pages, formats, scales and
// fills. Where the values come from is in mla_decode_generate.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/case.h"
#include "fuzz/ops/draw.h"

namespace attest::fuzz {

inline std::int64_t head_tiles(int heads) {
  return (heads + 15) / 16;
}

/// In the units of `work`. One unit is some 25 microseconds of simulator and reference together, so the
/// median case takes a few milliseconds and the largest a tenth of a second.
inline std::int64_t draw_budget() {
  return any_of<int>({80, 150, 150, 200, 250, 250, 400, 500, 800, 1000, 2000, 4600});
}

inline int draw_heads() {
  if (chance(3, 8)) return 16;
  if (chance(1, 6)) return 128;
  return any_of<int>({1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128});
}

inline int draw_page_size(bool any_size) {
  if (!any_size) return any_of<int>({1, 1, 16, 64});
  return any_of<int>({1, 2, 3, 16, 32, 48, 64, 128, 256, 480, 528, 784, 1024});
}

template <typename P>
void draw_formats(P& p, cases::Fill fill) {
  using cases::Format, cases::Fill;
  const bool other_scales = coin();
  switch (between(0, 3)) {
    case 0:
    case 1:
      break;
    case 2:
      p.kv_format = Format::fp8_e4m3fnuz;
      break;
    default:
      p.q_format = p.kv_format = Format::fp8_e4m3fnuz;
      break;
  }
  // 192^-0.5 (DeepSeek), the same with a YaRN factor, 576^-0.5 (the wrong default of several kernels),
  // 256^-0.5.
  if (other_scales) p.sm_scale = any_of<float>({0.07216878F, 0.11472F, 0.041666668F, 0.0625F});
  const std::vector<float> powers_of_two = {0.0625F, 0.5F, 2.0F, 4.0F, 64.0F};
  const std::vector<float> any_scale = {0.0625F, 0.06F, 0.37F, 0.5F, 3.1F, 7.3F, 64.0F};
  const bool power = fill == Fill::exact || fill == Fill::constant_scores;
  if (other_scales && p.kv_format != Format::bf16) p.kv_scale = any_of(power ? powers_of_two : any_scale);
  if (other_scales && p.q_format != Format::bf16) p.q_scale = any_of(any_scale);
}

inline cases::Fill draw_fill() {
  using cases::Fill;
  if (coin()) return Fill::normal;
  return static_cast<Fill>(between(0, static_cast<int>(Fill::exact)));
}

}  // namespace attest::fuzz
