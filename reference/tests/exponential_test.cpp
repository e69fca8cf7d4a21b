// SPDX-License-Identifier: MIT
#include "reference/exponential.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using namespace attest::reference;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

double exp_of(double x) {
  std::vector<double> one{x};
  exp_shifted(one, 0);
  return one[0];
}

/// Error in units of the last place of the double nearest to `exact`.
long double ulps(double got, long double exact) {
  const double nearest = static_cast<double>(exact);
  const long double ulp = static_cast<long double>(std::nextafter(nearest, infinity)) - nearest;
  return std::abs(got - exact) / ulp;
}

/// 0, every eighth of the way to -708 in irregular steps: about 200 000 arguments.
std::vector<double> arguments() {
  std::vector<double> x;
  for (double t = 0; t > -708; t -= 0.0035400001) x.push_back(t);
  for (double t = 1; t > 1e-20; t *= 0.99) x.push_back(-t);
  return x;
}

}  // namespace

TEST_CASE("exp is within 1.2 ulp of expl down to -708") {
  long double worst = 0;
  for (const double x : arguments())
    worst = std::max(worst, ulps(exp_of(x), std::exp(static_cast<long double>(x))));
  CAPTURE(static_cast<double>(worst));
  CHECK(worst < 1.2L);
  CHECK(worst > 0.5L);  // else the measurement is broken
}

TEST_CASE("exp at the edges") {
  CHECK(exp_of(0) == 1);
  CHECK(exp_of(-0.0) == 1);
  CHECK(exp_of(-0x1p-1074) == 1);
  CHECK(exp_of(-708) == Approx(std::exp(-708.0)).epsilon(1e-15));
  for (const double x : {std::nextafter(-708, -infinity), -745.0, -1e5, -1e300, -infinity})
    CHECK(exp_of(x) == 0);
  CHECK(std::isnan(exp_of(not_a_number)));
}

TEST_CASE("the shift is subtracted first") {
  std::vector<double> values{1e5, 1e5 - 1, -infinity, 1e5 - 1000};
  exp_shifted(values, 1e5);
  CHECK(values == std::vector<double>{1, exp_of(-1), 0, 0});
  for (const double shift : {infinity, -infinity, not_a_number}) {
    std::vector<double> bad{shift};
    exp_shifted(bad, shift);
    CHECK(std::isnan(bad[0]));
  }
}

TEST_CASE("exp has the same bits for every instruction set, length and place") {
  const std::vector<double> x = arguments();
  std::vector<double> expected;
  for (const double t : x) expected.push_back(exp_of(t));
  for (const Simd simd : supported_simd()) {
    std::vector<double> values = x;
    exp_shifted(values, 0, simd);
    CHECK(values == expected);
    for (std::size_t count = 0; count < 20; ++count) {
      std::vector<double> few(x.begin() + 1000, x.begin() + 1020);
      exp_shifted(std::span(few).first(count), 0, simd);
      for (std::size_t i = 0; i < 20; ++i) CHECK(few[i] == (i < count ? expected[1000 + i] : x[1000 + i]));
    }
  }
}

TEST_CASE("ln is within 2 ulp of logl") {
  long double worst = 0;
  for (double x = 1; x < 200000; x *= 1.00003)
    if (x != 1) worst = std::max(worst, ulps(natural_log(x), std::log(static_cast<long double>(x))));
  for (double x = 0.001; x < 1; x *= 1.0003)
    worst = std::max(worst, ulps(natural_log(x), std::log(static_cast<long double>(x))));
  CAPTURE(static_cast<double>(worst));
  CHECK(worst < 2.0L);
  CHECK(natural_log(1) == 0);
  CHECK(natural_log(infinity) == infinity);
  CHECK(std::isnan(natural_log(not_a_number)));
  CHECK(natural_log(0x1p-1022) == Approx(-1022 * std::log(2.0)).epsilon(1e-15));
}

TEST_CASE("the bits of exp and ln are pinned") {
  // One machine's bits; another machine, compiler or C library must give the same ones.
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](double x) { hash = (hash ^ std::bit_cast<std::uint64_t>(x)) * 0x100000001b3; };
  for (const double x : arguments()) {
    add(exp_of(x));
    add(natural_log(1 - x));
  }
  CHECK(hash == 0xf1983544bcd70aa7);
}
