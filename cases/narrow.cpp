// SPDX-License-Identifier: MIT
#include "cases/narrow.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>

#include "cases/random.h"
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

constexpr std::size_t halves_in_all = 65536;

/// The codes of the first halves. They are read four bytes at a time, because vector
/// instructions gather nothing smaller; what lies behind the last one is never used.
template <std::size_t entries, std::size_t element>
std::unique_ptr<const std::array<std::byte, entries * element + 4>> codes_of_halves(Format format) {
  std::array<std::uint16_t, entries> halves;
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  std::array<float, entries> values;
  normals(halves.data(), static_cast<int>(entries), values.data());
  auto codes = std::make_unique<std::array<std::byte, entries * element + 4>>();
  narrow(format, values.data(), static_cast<int>(entries), codes->data());
  return codes;
}

[[gnu::always_inline]] inline std::uint32_t word_at(const std::byte* bytes, std::uint32_t offset) {
  std::uint32_t word;
  std::memcpy(&word, bytes + offset, sizeof word);
  return word;
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

void narrow_normals(Format format, const std::uint16_t* halves, int count, std::byte* out) {
  switch (format) {
    case Format::bf16: {
      // Both signs of a magnitude differ in the same bit here and there.
      static const auto table = codes_of_halves<halves_in_all / 2, 2>(Format::bf16);
      const std::byte* codes = table->data();
      return reference::run_for(reference::widest_simd(), [=]() __attribute__((always_inline)) {
        for (std::ptrdiff_t i = 0; i < count; ++i) {
          const std::uint32_t half = halves[i];
          const auto code =
              static_cast<std::uint16_t>((word_at(codes, 2 * (half & 0x7fffU)) & 0x7fffU) | (half & 0x8000U));
          std::memcpy(out + 2 * i, &code, 2);
        }
      });
    }
    case Format::fp8_e4m3fnuz: {
      static const auto table = codes_of_halves<halves_in_all, 1>(Format::fp8_e4m3fnuz);
      const std::byte* codes = table->data();
      return reference::run_for(reference::widest_simd(), [=]() __attribute__((always_inline)) {
        for (int i = 0; i < count; ++i) out[i] = static_cast<std::byte>(word_at(codes, halves[i]) & 0xffU);
      });
    }
    default:
      throw std::invalid_argument(std::string("narrow_normals: no rows of ") + name(format));
  }
}

}  // namespace attest::cases
