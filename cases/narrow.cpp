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

/// The codes of halves 0, 1, 2, ..
template <typename Code, std::size_t entries>
std::unique_ptr<const std::array<Code, entries>> codes_of_halves(Format format) {
  std::array<std::uint16_t, entries> halves;
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  std::array<float, entries> values;
  normals(halves.data(), static_cast<int>(entries), values.data());
  auto codes = std::make_unique<std::array<Code, entries>>();
  narrow(format, values.data(), static_cast<int>(entries), reinterpret_cast<std::byte*>(codes->data()));
  return codes;
}

/// Four halves at a time in one register; vectors that gather from a table are no faster.
template <typename Code, typename Codes, std::size_t entries>
void look_up(const std::array<Code, entries>& table, const std::uint16_t* halves, int count, std::byte* out) {
  constexpr std::uint64_t index = entries - 1;
  constexpr int bits = 8 * sizeof(Code);
  // bf16: both signs of a magnitude differ in the same bit here and there, so the table has one of them.
  constexpr std::uint64_t sign = sizeof(Code) == 2 ? 0x8000800080008000U : 0;
  for (std::ptrdiff_t i = 0; i < count; i += 4) {
    std::uint64_t four;
    std::memcpy(&four, halves + i, sizeof four);
    std::uint64_t codes = four & sign;
    for (int n = 0; n < 4; ++n) codes |= std::uint64_t{table[(four >> (16 * n)) & index]} << (bits * n);
    const auto low = static_cast<Codes>(codes);
    std::memcpy(out + i * static_cast<std::ptrdiff_t>(sizeof(Code)), &low, sizeof low);
  }
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
      static const auto table = codes_of_halves<std::uint16_t, 32768>(Format::bf16);
      return look_up<std::uint16_t, std::uint64_t>(*table, halves, count, out);
    }
    case Format::fp8_e4m3fnuz: {
      static const auto table = codes_of_halves<std::uint8_t, 65536>(Format::fp8_e4m3fnuz);
      return look_up<std::uint8_t, std::uint32_t>(*table, halves, count, out);
    }
    default:
      throw std::invalid_argument(std::string("narrow_normals: no rows of ") + name(format));
  }
}

}  // namespace attest::cases
