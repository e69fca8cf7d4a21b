// SPDX-License-Identifier: MIT
#include "reference/cache_write.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace attest::reference {

float power_of_two_above(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t exponent = (bits >> 23) + ((bits & 0x7fffffU) != 0 ? 1 : 0);
  return std::bit_cast<float>(exponent << 23);
}

float group_scale(std::span<const float> values, const GroupScale& rule) {
  float amax = 0;
  for (const float x : values) amax = std::max(amax, std::abs(x));
  const float scale = std::max(std::max(amax, rule.amax_floor) / rule.ceiling, rule.scale_floor);
  return rule.power_of_two ? power_of_two_above(scale) : scale;
}

std::uint8_t quantise(Format fp8, float x, float scale, Quotient quotient) {
  const float inverse = 1.0F / scale;
  const float scaled = quotient == Quotient::division ? x / scale : x * inverse;
  return static_cast<std::uint8_t>(encode(fp8, double{scaled}, Overflow::saturate));
}

}  // namespace attest::reference
