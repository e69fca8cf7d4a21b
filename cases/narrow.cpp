// SPDX-License-Identifier: MIT
#include "cases/narrow.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "reference/simd.h"

namespace attest::cases {
namespace {

constexpr std::uint32_t sign_bit = 0x80000000U;

[[gnu::always_inline]] inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = ((bits & ~sign_bit) + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  return static_cast<std::uint16_t>(std::min(rounded, 0x7f7fU) | ((bits & sign_bit) >> 16));
}

/// Bias 8 against 127, 3 fraction bits against 23; subnormals are multiples of 2^-10, which is the ulp of
/// 2^13.
[[gnu::always_inline]] inline std::uint8_t to_fp8_e4m3fnuz(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const float magnitude = std::min(std::bit_cast<float>(bits & ~sign_bit), 240.0F);
  const auto m = std::bit_cast<std::uint32_t>(magnitude);
  const std::uint32_t normal = ((m + 0x7ffffU + ((m >> 20) & 1U)) >> 20) - ((127U - 8U) << 3);
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(magnitude + 0x1p13F) - std::bit_cast<std::uint32_t>(0x1p13F);
  const std::uint32_t code = magnitude < 0x1p-7F ? subnormal : normal;
  const std::uint32_t sign = code == 0 ? 0 : (bits & sign_bit) >> 24;
  return static_cast<std::uint8_t>(code | sign);
}

}  // namespace

void narrow(Format format, const float* values, int count, std::byte* out) {
  switch (format) {
    case Format::bf16:
      return reference::run_for(reference::widest_simd(), [=]() __attribute__((always_inline)) {
        for (std::ptrdiff_t i = 0; i < count; ++i) {
          const std::uint16_t code = to_bf16(values[i]);
          std::memcpy(out + 2 * i, &code, 2);
        }
      });
    case Format::fp8_e4m3fnuz:
      return reference::run_for(reference::widest_simd(), [=]() __attribute__((always_inline)) {
        for (int i = 0; i < count; ++i) out[i] = static_cast<std::byte>(to_fp8_e4m3fnuz(values[i]));
      });
    default:
      throw std::invalid_argument(std::string("narrow: no rows of ") + name(format));
  }
}

}  // namespace attest::cases
