// SPDX-License-Identifier: MIT
//
// The number formats against three independent sources: llvm::APFloat for the 8-bit ones, Eigen for the
// 16-bit ones, the hardware for f32; e8m0 (unknown to LLVM 19) by its closed form. Decoding is checked on
// every code, encoding at every code, every midpoint between neighbours and the doubles next to each, where a
// rounding can go wrong.
#include "reference/formats.h"

#include <llvm/ADT/APFloat.h>
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <Eigen/Core>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using namespace attest::reference;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

std::uint64_t bits_of(double x) {
  return std::bit_cast<std::uint64_t>(x);
}
bool same(double a, double b) {
  return bits_of(a) == bits_of(b) || (a != a && b != b);
}

const std::vector<Format> fp8_formats{Format::fp8_e4m3fn, Format::fp8_e4m3fnuz, Format::fp8_e5m2,
                                      Format::fp8_e5m2fnuz};

const llvm::fltSemantics& semantics(Format format) {
  switch (format) {
    case Format::bf16:
      return llvm::APFloat::BFloat();
    case Format::f16:
      return llvm::APFloat::IEEEhalf();
    case Format::f32:
      return llvm::APFloat::IEEEsingle();
    case Format::fp8_e4m3fn:
      return llvm::APFloat::Float8E4M3FN();
    case Format::fp8_e4m3fnuz:
      return llvm::APFloat::Float8E4M3FNUZ();
    case Format::fp8_e5m2:
      return llvm::APFloat::Float8E5M2();
    case Format::fp8_e5m2fnuz:
      return llvm::APFloat::Float8E5M2FNUZ();
    default:
      throw std::logic_error("LLVM 19 has no such format");
  }
}

double llvm_decode(Format format, std::uint32_t bits) {
  llvm::APFloat value(semantics(format), llvm::APInt(8 * bytes_per_element(format), bits));
  bool lost = false;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lost);
  REQUIRE_FALSE(lost);
  return value.convertToDouble();
}

std::uint32_t llvm_encode(Format format, double x) {
  llvm::APFloat value(x);
  bool lost = false;
  value.convert(semantics(format), llvm::APFloat::rmNearestTiesToEven, &lost);
  return static_cast<std::uint32_t>(value.bitcastToAPInt().getZExtValue());
}

std::uint32_t sign_bit(Format format) {
  return std::uint32_t{1} << (8 * bytes_per_element(format) - 1);
}
std::uint32_t codes(Format format) {
  return 2 * sign_bit(format);
}

/// Every positive finite value, every midpoint (also the one past the largest, where overflow begins), the
/// doubles beside them, and all of it negated.
std::vector<double> critical_values(Format format) {
  std::vector<double> positive;
  for (std::uint32_t bits = 0; bits < sign_bit(format); ++bits)
    if (const double x = decode(format, bits); std::isfinite(x)) positive.push_back(x);
  const double last_step = positive.back() - positive[positive.size() - 2];
  positive.push_back(positive.back() + last_step);

  std::vector<double> critical{0.0, infinity, std::numeric_limits<double>::max(), 0x1p-1074, 0x1p-1022};
  for (std::size_t i = 0; i < positive.size(); ++i) {
    critical.push_back(positive[i]);
    if (i + 1 < positive.size()) critical.push_back((positive[i] + positive[i + 1]) / 2);
  }
  const std::size_t exact = critical.size();
  for (std::size_t i = 0; i < exact; ++i) {
    critical.push_back(std::nextafter(critical[i], 0.0));
    critical.push_back(std::nextafter(critical[i], infinity));
  }
  const std::size_t all = critical.size();
  for (std::size_t i = 0; i < all; ++i) critical.push_back(-critical[i]);
  return critical;
}

/// What saturation must give: the special result of an overflow replaced by the largest value.
std::uint32_t saturated(Format format, double x, std::uint32_t special) {
  if (x != x || std::isfinite(llvm_decode(format, special))) return special;
  return llvm_encode(format, std::copysign(max_finite(format), x));
}

void check_encode_against_llvm(Format format, double x) {
  INFO(name(format) << " of " << x << " = 0x" << std::hex << bits_of(x));
  const std::uint32_t expected = llvm_encode(format, x);
  if (x != x) {
    REQUIRE(std::isnan(decode(format, encode(format, x, Overflow::to_special))));
    REQUIRE(std::isnan(decode(format, encode(format, x, Overflow::saturate))));
    return;
  }
  if (std::isnan(llvm_decode(format, expected)))
    REQUIRE(std::isnan(decode(format, encode(format, x, Overflow::to_special))));
  else
    REQUIRE(encode(format, x, Overflow::to_special) == expected);
  REQUIRE(encode(format, x, Overflow::saturate) == saturated(format, x, expected));
}

double any_double() {
  return std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
}

/// Spread over the binades of the format and a few beyond, where encoding has work to do.
double near_format(Format format) {
  const int top = std::ilogb(max_finite(format)) + 3;
  const int bottom = std::ilogb(std::abs(decode(format, 1))) - 3;
  const double mantissa =
      1 + 0x1p-52 * static_cast<double>(*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 52));
  return std::ldexp(*rc::gen::element(-1.0, 1.0) * mantissa, *rc::gen::inRange(bottom, top));
}

}  // namespace

TEST_CASE("8-bit formats decode every code as APFloat does") {
  for (const Format format : fp8_formats)
    for (std::uint32_t bits = 0; bits < 256; ++bits) {
      INFO(name(format) << " code " << bits);
      REQUIRE(same(decode(format, bits), llvm_decode(format, bits)));
    }
}

TEST_CASE("the four 8-bit formats are told apart") {
  for (const Format a : fp8_formats)
    for (const Format b : fp8_formats) {
      int different = 0;
      for (std::uint32_t bits = 0; bits < 256; ++bits)
        different += !same(decode(a, bits), llvm_decode(b, bits));
      CHECK((a == b) == (different == 0));
    }
}

TEST_CASE("bf16 and f16 decode every code as Eigen does") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto narrow = static_cast<std::uint16_t>(bits);
    INFO("code " << bits);
    REQUIRE(same(decode(Format::bf16, bits),
                 static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(narrow))));
    REQUIRE(
        same(decode(Format::f16, bits), static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(narrow))));
  }
}

TEST_CASE("f32 decodes as the hardware does") {
  for (const std::uint32_t bits : {0u, 1u, 0x80000000u, 0x807fffffu, 0x00800000u, 0x3f800001u, 0x7f7fffffu,
                                   0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffffffffu})
    CHECK(same(decode(Format::f32, bits), std::bit_cast<float>(bits)));
}

TEST_CASE("decode ignores bits above the element") {
  CHECK(decode(Format::bf16, 0xabcd3f80) == 1);
  CHECK(decode(Format::f16, 0xabcd3c00) == 1);
  CHECK(decode(Format::fp8_e4m3fnuz, 0xabcdef40) == 1);
}

TEST_CASE("8-bit formats encode as APFloat does at every value, midpoint and neighbour") {
  for (const Format format : fp8_formats) {
    const std::vector<double> critical = critical_values(format);
    REQUIRE(critical.size() > 1400);
    for (const double x : critical) check_encode_against_llvm(format, x);
    check_encode_against_llvm(format, not_a_number);
    check_encode_against_llvm(format, -not_a_number);
  }
}

TEST_CASE("bf16 and f16 encode as APFloat does at every value, midpoint and neighbour") {
  for (const Format format : {Format::bf16, Format::f16})
    for (const double x : critical_values(format)) check_encode_against_llvm(format, x);
}

TEST_CASE("bf16 and f16 encode every f32-representable critical value as Eigen does") {
  for (const Format format : {Format::bf16, Format::f16})
    for (const double x : critical_values(format)) {
      const auto single = static_cast<float>(x);
      if (double{single} != x) continue;  // Eigen rounds from float: only what float holds is rounded once
      const std::uint32_t eigen =
          format == Format::bf16
              ? Eigen::numext::bit_cast<std::uint16_t>(static_cast<Eigen::bfloat16>(single))
              : Eigen::numext::bit_cast<std::uint16_t>(static_cast<Eigen::half>(single));
      INFO(name(format) << " of " << x);
      REQUIRE(encode(format, x, Overflow::to_special) == eigen);
    }
}

TEST_CASE("encoding random doubles agrees with APFloat") {
  rc::prop("any bit pattern", [] {
    const double x = any_double();
    for (const Format format : fp8_formats) check_encode_against_llvm(format, x);
    for (const Format format : {Format::bf16, Format::f16, Format::f32}) check_encode_against_llvm(format, x);
  });
  rc::prop("values of the size of the format", [] {
    for (const Format format : {Format::bf16, Format::f16, Format::f32, Format::fp8_e4m3fn,
                                Format::fp8_e4m3fnuz, Format::fp8_e5m2, Format::fp8_e5m2fnuz})
      for (int i = 0; i < 20; ++i) check_encode_against_llvm(format, near_format(format));
  });
}

TEST_CASE("every code that is a number encodes to itself") {
  for (const Format format : {Format::bf16, Format::f16, Format::fp8_e4m3fn, Format::fp8_e4m3fnuz,
                              Format::fp8_e5m2, Format::fp8_e5m2fnuz, Format::e8m0})
    for (std::uint32_t bits = 0; bits < codes(format); ++bits) {
      const double x = decode(format, bits);
      if (x != x) continue;
      REQUIRE(encode(format, x, Overflow::to_special) == bits);
      if (std::isfinite(x)) REQUIRE(encode(format, x, Overflow::saturate) == bits);
    }
}

TEST_CASE("overflow begins where rounding passes the largest value") {
  struct Row {
    Format format;
    double largest, last_in, first_out;
    std::uint32_t largest_code, special;
  };
  // The midpoint past the largest value belongs to the side with the even code.
  const std::vector<Row> rows{
      {Format::fp8_e4m3fn, 448, 464, std::nextafter(464, 1e9), 0x7e, 0x7f},
      {Format::fp8_e4m3fnuz, 240, std::nextafter(248, 0), 248, 0x7f, 0x80},
      {Format::fp8_e5m2, 57344, std::nextafter(61440, 0), 61440, 0x7b, 0x7c},
      {Format::fp8_e5m2fnuz, 57344, std::nextafter(61440, 0), 61440, 0x7f, 0x80},
      {Format::f16, 65504, std::nextafter(65520, 0), 65520, 0x7bff, 0x7c00},
      {Format::bf16, 0x1.fep127, std::nextafter(0x1.ffp127, 0), 0x1.ffp127, 0x7f7f, 0x7f80},
      {Format::f32, 0x1.fffffep127, std::nextafter(0x1.ffffffp127, 0), 0x1.ffffffp127, 0x7f7fffff,
       0x7f800000},
      {Format::e8m0, 0x1p127, 0x1.8p127, std::nextafter(0x1.8p127, infinity), 0xfe, 0xff},
  };
  for (const Row& row : rows) {
    INFO(name(row.format));
    CHECK(max_finite(row.format) == row.largest);
    for (const Overflow overflow : {Overflow::saturate, Overflow::to_special})
      CHECK(encode(row.format, row.last_in, overflow) == row.largest_code);
    for (const double x : {row.first_out, infinity}) {
      CHECK(encode(row.format, x, Overflow::saturate) == row.largest_code);
      CHECK(encode(row.format, x, Overflow::to_special) == row.special);
    }
    if (row.format == Format::e8m0) continue;
    for (const double x : {-row.first_out, -infinity})
      CHECK(encode(row.format, x, Overflow::saturate) == (sign_bit(row.format) | row.largest_code));
    CHECK(encode(row.format, -row.first_out, Overflow::to_special) == (sign_bit(row.format) | row.special));
  }
}

TEST_CASE("FNUZ formats have one zero and one NaN") {
  for (const Format format : {Format::fp8_e4m3fnuz, Format::fp8_e5m2fnuz}) {
    const double smallest = decode(format, 1);
    for (const double x : {-0.0, -0x1p-1074, -smallest / 2})
      CHECK(encode(format, x, Overflow::to_special) == 0);
    CHECK(encode(format, std::nextafter(-smallest / 2, -1), Overflow::to_special) == 0x81);
    for (std::uint32_t bits = 0; bits < 256; ++bits)
      CHECK(std::isnan(decode(format, bits)) == (bits == 0x80));
  }
}

TEST_CASE("e8m0 is a power of two") {
  for (std::uint32_t bits = 0; bits < 255; ++bits) {
    const int exponent = static_cast<int>(bits) - 127;
    const double x = std::ldexp(1.0, exponent);
    REQUIRE(decode(Format::e8m0, bits) == x);
    if (bits == 254) continue;
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    CHECK(encode(Format::e8m0, 1.5 * x, Overflow::to_special) == even);
    CHECK(encode(Format::e8m0, std::nextafter(1.5 * x, 0), Overflow::to_special) == bits);
    CHECK(encode(Format::e8m0, std::nextafter(1.5 * x, infinity), Overflow::to_special) == bits + 1);
    CHECK(encode(Format::e8m0, std::nextafter(2 * x, 0), Overflow::to_special) == bits + 1);
  }
  CHECK(std::isnan(decode(Format::e8m0, 255)));
  for (const double x : {0x1p-128, std::nextafter(0x1p-127, 0), 0x1p-1022, 0x1p-1074})
    CHECK(encode(Format::e8m0, x, Overflow::to_special) == 0);
  for (const double x : {0.0, -0.0, -1.0, -infinity, not_a_number})
    for (const Overflow overflow : {Overflow::saturate, Overflow::to_special})
      CHECK(encode(Format::e8m0, x, overflow) == 255);
}

TEST_CASE("decoding a range is decoding its elements") {
  for (const Format format : {Format::bf16, Format::f16, Format::f32, Format::fp8_e4m3fn,
                              Format::fp8_e4m3fnuz, Format::fp8_e5m2, Format::fp8_e5m2fnuz, Format::e8m0}) {
    const auto size = static_cast<std::size_t>(bytes_per_element(format));
    const std::uint32_t count = size == 1 ? 256 : 65536;
    std::vector<std::byte> bytes(count * size + 1);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t code = size == 4 ? i * 65537 : i;
      std::memcpy(bytes.data() + 1 + i * size, &code, size);  // odd: tensors need not be aligned
    }
    std::vector<double> values(count);
    decode(format, std::span(bytes).subspan(1), values);
    for (std::uint32_t i = 0; i < count; ++i)
      REQUIRE(same(values[i], decode(format, size == 4 ? i * 65537 : i)));
    CHECK_THROWS_WITH(decode(format, std::span(bytes), values), Catch::Contains(name(format)));
  }
}

TEST_CASE("formats have the names and sizes of case files") {
  const std::vector<std::pair<std::string, int>> expected{
      {"bf16", 2},         {"f16", 2},      {"f32", 4},          {"fp8_e4m3fn", 1},
      {"fp8_e4m3fnuz", 1}, {"fp8_e5m2", 1}, {"fp8_e5m2fnuz", 1}, {"e8m0", 1}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto format = static_cast<Format>(i);
    CHECK(name(format) == expected[i].first);
    CHECK(bytes_per_element(format) == expected[i].second);
  }
}
