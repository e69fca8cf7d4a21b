// SPDX-License-Identifier: MIT
#include "reference/cache_write.h"

#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <vector>

#include "reference/indexer.h"

namespace attest::reference {

TEST_CASE("The rows are as long as their readers expect") {
  CHECK(ds_rope_at == 528);
  CHECK(ds_row_bytes == 656);
  CHECK(indexer_token_bytes == 132);
}

TEST_CASE("A group's largest value becomes the ceiling") {
  const std::vector<float> values = {1, -7, 3};
  CHECK(group_scale(values, {.ceiling = 224}) == 7.0F / 224);
  const float scale = group_scale(values, {.ceiling = 224});
  CHECK(decode(Format::fp8_e4m3fnuz, quantise(Format::fp8_e4m3fnuz, -7, scale, Quotient::division)) == -224);
  CHECK(group_scale(values, {.ceiling = 448, .power_of_two = true}) == 0x1p-6F);  // 7 / 448 = 2^-6 exactly
  CHECK(group_scale(std::vector<float>{7.5F}, {.ceiling = 448, .power_of_two = true}) == 0x1p-5F);
}

TEST_CASE("A group of zeros has the scale of the floor") {
  const std::vector<float> zeros(128);
  CHECK(group_scale(zeros, {.ceiling = 224, .scale_floor = FLT_MIN}) == FLT_MIN);
  CHECK(group_scale(zeros, {.ceiling = 448, .scale_floor = 1e-4F, .power_of_two = true}) == 0x1p-13F);
  CHECK(group_scale(zeros, {.ceiling = 224, .amax_floor = 1e-4F}) == 1e-4F / 224);
}

TEST_CASE("Powers of two above, for every exponent") {
  for (int e = -126; e < 127; ++e) {
    const float p = std::ldexp(1.0F, e);
    CHECK(power_of_two_above(p) == p);
    CHECK(power_of_two_above(std::nextafter(p, 2 * p)) == 2 * p);
    CHECK(power_of_two_above(1.5F * p) == 2 * p);
  }
}

TEST_CASE("Quantising rounds to nearest even, saturates, and has no negative zero in FNUZ") {
  const auto fnuz = [](float x, float scale) {
    return quantise(Format::fp8_e4m3fnuz, x, scale, Quotient::division);
  };
  CHECK(fnuz(1000, 1) == 0x7f);
  CHECK(fnuz(-1000, 1) == 0xff);
  CHECK(fnuz(-0x1p-12F, 1) == 0);
  CHECK(fnuz(-0.0F, 1) == 0);
  CHECK(quantise(Format::fp8_e4m3fn, -0x1p-12F, 1, Quotient::division) == 0x80);
  // 17/16 lies between 1 and 9/8: to the even one; 19/16 the other way.
  CHECK(decode(Format::fp8_e4m3fnuz, fnuz(17, 16)) == 1.0);
  CHECK(decode(Format::fp8_e4m3fnuz, fnuz(19, 16)) == 1.25);
}

// With 7, whose reciprocal is rounded by nearly half a step, quotients halfway between two codes differ.
TEST_CASE("The two ways to the quotient differ, by one step at most") {
  int different = 0;
  for (int i = 1; i < 4000; ++i) {
    const float x = static_cast<float>(i) / 16;
    const int a = quantise(Format::fp8_e4m3fnuz, x, 7.0F, Quotient::division);
    const int b = quantise(Format::fp8_e4m3fnuz, x, 7.0F, Quotient::reciprocal);
    CHECK(std::abs(a - b) <= 1);
    different += a != b ? 1 : 0;
    CHECK(quantise(Format::fp8_e4m3fnuz, x, 4.0F, Quotient::division) ==
          quantise(Format::fp8_e4m3fnuz, x, 4.0F, Quotient::reciprocal));
  }
  CHECK(different > 0);
}

}  // namespace attest::reference
