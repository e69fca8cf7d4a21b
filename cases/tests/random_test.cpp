// SPDX-License-Identifier: MIT
#include "cases/random.h"

#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "cases/narrow.h"
#include "reference/formats.h"

namespace attest::cases {

TEST_CASE("Philox4x32-7 gives the published answers") {
  // kat_vectors of Random123: counter and key all zero, then all ones.
  const Counter zero(0, static_cast<Draw>(0), 0, 0);
  CHECK(zero.word(0) == 0x5f6fb709U);
  CHECK(zero.word(1) == 0x0d893f64U);
  CHECK(zero.word(2) == 0x4f121f81U);
  CHECK(zero.word(3) == 0x4f730a48U);
}

TEST_CASE("A column's draw does not depend on the range it is asked in") {
  const Counter draw(0x123456789abcdefU, Draw::kv, 3, 70000);
  std::array<std::uint16_t, 640> all;
  draw.halves(0, 640, all.data());
  std::array<std::uint16_t, 64> part;
  draw.halves(512, 64, part.data());
  CHECK(std::equal(part.begin(), part.end(), all.begin() + 512));
  for (std::uint32_t i = 0; i < 320; ++i) {
    REQUIRE(draw.word(i) == (std::uint32_t{all[2 * i]} | std::uint32_t{all[2 * i + 1]} << 16));
  }
}

TEST_CASE("The table holds the quantiles of N(0,1)") {
  for (unsigned h = 0; h < 65536; ++h) {
    const auto half = static_cast<std::uint16_t>(h);
    float x = 0;
    normals(&half, 1, &x);
    REQUIRE(std::signbit(x) == (h >= 32768));
    const double probability = std::erf(std::abs(double{x}) / std::sqrt(2.0));
    REQUIRE(std::abs(probability - ((h % 32768) + 0.5) / 32768) < 1e-7);
  }
}

TEST_CASE("narrow_normals equals narrow after normals, for every half") {
  std::vector<std::uint16_t> halves(65536);
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  std::vector<float> values(halves.size());
  normals(halves.data(), 65536, values.data());
  for (const Format format : {Format::bf16, Format::fp8_e4m3fnuz}) {
    const std::size_t element = format == Format::bf16 ? 2 : 1;
    std::vector<std::byte> one_by_one(halves.size() * element), together(halves.size() * element);
    narrow(format, values.data(), 65536, one_by_one.data());
    narrow_normals(format, halves.data(), 65536, together.data());
    CHECK(together == one_by_one);
  }
  CHECK_THROWS_AS(narrow_normals(Format::f32, nullptr, 0, nullptr), std::invalid_argument);
}

TEST_CASE("narrow equals the reference's encoder, saturating, on every rounding boundary") {
  for (const Format format : {Format::bf16, Format::fp8_e4m3fnuz}) {
    const auto reference_format =
        format == Format::bf16 ? reference::Format::bf16 : reference::Format::fp8_e4m3fnuz;
    for (std::uint32_t top = 0; top < 65536; ++top) {
      // Every sign, exponent and 7 fraction bits, and what lies just below, at and above the halfway points
      // of bf16; those of fp8 are among the 7 bits.
      std::vector<float> values;
      for (const std::uint32_t low : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
        const float value = std::bit_cast<float>(top << 16 | low);
        if (std::isfinite(value)) values.push_back(value);
      }
      std::array<std::byte, 12> bytes{};
      narrow(format, values.data(), static_cast<int>(values.size()), bytes.data());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto got = format == Format::bf16 ? static_cast<std::uint32_t>(bytes[2 * i]) |
                                                      static_cast<std::uint32_t>(bytes[2 * i + 1]) << 8
                                                : static_cast<std::uint32_t>(bytes[i]);
        const std::uint32_t expected =
            reference::encode(reference_format, double{values[i]}, reference::Overflow::saturate);
        if (got != expected) {
          CAPTURE(name(format), values[i]);
          REQUIRE(got == expected);
        }
      }
    }
  }
  CHECK_THROWS_AS(narrow(Format::f32, nullptr, 0, nullptr), std::invalid_argument);
}

}  // namespace attest::cases
