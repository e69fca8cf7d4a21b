// SPDX-License-Identifier: MIT
#include "device/simulator/matrix/model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace attest::device::sim::matrix {
namespace {

constexpr std::uint32_t quiet_nan = 0x7fc00000u, infinity = 0x7f800000u;
constexpr int fraction_bits = 24;  // F of the paper
constexpr int f32_min_exponent = -126;

struct Format {
  int mantissa_bits;
  int exponent_bits;
  int bias;
  bool ieee;  // the largest exponent field means infinity or NaN; otherwise only the sign-bit-alone pattern
              // is NaN
};

constexpr Format format_of(Element element) {
  switch (element) {
    case Element::f16:
      return {10, 5, 15, true};
    case Element::bf16:
      return {7, 8, 127, true};
    case Element::fp8:
      return {3, 4, 8, false};
    case Element::bf8:
      return {2, 5, 16, false};
    default:
      return {23, 8, 127, true};
  }
}

enum class Kind : std::uint8_t { zero, finite, infinite, nan };

/// (-1)^negative * significand * 2^unit; exponent is what alignment uses.
struct Number {
  Kind kind = Kind::zero;
  bool negative = false;
  std::int64_t significand = 0;
  int exponent = 0;
  int unit = 0;
};

Number decode(Format f, std::uint32_t bits) {
  const int mantissa_mask = (1 << f.mantissa_bits) - 1, field_mask = (1 << f.exponent_bits) - 1;
  const int mantissa = static_cast<int>(bits) & mantissa_mask;
  const int field = static_cast<int>(bits >> f.mantissa_bits) & field_mask;
  const bool negative = ((bits >> (f.mantissa_bits + f.exponent_bits)) & 1) != 0;
  if (f.ieee && field == field_mask) return {mantissa ? Kind::nan : Kind::infinite, negative};
  if (field == 0 && mantissa == 0) return {!f.ieee && negative ? Kind::nan : Kind::zero, negative};
  const int significand = field == 0 ? mantissa : mantissa | (1 << f.mantissa_bits);
  const int exponent = std::max(field, 1) - f.bias;
  return {Kind::finite, negative, significand, exponent, exponent - f.mantissa_bits};
}

Number decode(Element element, std::uint32_t bits) {
  Number number = decode(format_of(element), bits);
  if (element == Element::xf32 && number.kind == Kind::finite)
    number = decode(format_of(element), bits & ~0x1fffu);
  return number;
}

int floor_log2(std::uint64_t x) {
  return 63 - std::countl_zero(x);
}

Number multiply(const Number& a, const Number& b) {
  Number p;
  p.negative = a.negative != b.negative;
  if (a.kind == Kind::nan || b.kind == Kind::nan) {
    p.kind = Kind::nan;
  } else if (a.kind == Kind::infinite || b.kind == Kind::infinite) {
    p.kind = a.kind == Kind::zero || b.kind == Kind::zero ? Kind::nan : Kind::infinite;
  } else if (a.kind == Kind::finite && b.kind == Kind::finite) {
    p.kind = Kind::finite;
    p.significand = a.significand * b.significand;
    p.exponent = a.exponent + b.exponent;
    p.unit = a.unit + b.unit;
    const int magnitude = floor_log2(static_cast<std::uint64_t>(p.significand)) + p.unit;
    if (magnitude >= 128) p.kind = Kind::infinite;
  }
  return p;
}

/// value * 2^unit.
struct Fixed {
  std::int64_t value = 0;
  int unit = 0;
};

std::int64_t shift_floor(std::int64_t value, int right) {
  if (right <= 0) return value * (std::int64_t{1} << -right);
  return value >> std::min(right, 63);
}

/// Rounded toward minus infinity to a multiple of 2^grid; a number that already is one stays as it is.
Fixed floor_to(Fixed x, int grid) {
  return x.unit >= grid ? x : Fixed{shift_floor(x.value, grid - x.unit), grid};
}

Fixed add(Fixed a, Fixed b) {
  if (a.value == 0) return b;
  if (b.value == 0) return a;
  const int unit = std::min(a.unit, b.unit);
  return {shift_floor(a.value, unit - a.unit) + shift_floor(b.value, unit - b.unit), unit};
}

std::uint64_t magnitude_of(Fixed x) {
  return x.value < 0 ? -static_cast<std::uint64_t>(x.value) : x.value;
}

/// floor(log2 |x|), not below f32's smallest exponent.
int exponent_of(Fixed x) {
  if (x.value == 0) return f32_min_exponent;
  return std::max(floor_log2(magnitude_of(x)) + x.unit, f32_min_exponent);
}

std::uint32_t round_to_f32(Fixed x) {
  if (x.value == 0) return 0;
  const std::uint32_t sign = x.value < 0 ? 0x80000000u : 0;
  std::uint64_t magnitude = magnitude_of(x);
  const int exponent = exponent_of(x);
  const int drop = exponent - 23 - x.unit;
  if (drop > 0) {
    if (drop > 62) return sign;  // far below half of the smallest subnormal
    const std::uint64_t half = std::uint64_t{1} << (drop - 1);
    const std::uint64_t rest = magnitude & (2 * half - 1);
    magnitude >>= drop;
    if (rest > half || (rest == half && (magnitude & 1) != 0)) ++magnitude;
  } else {
    magnitude <<= -drop;
  }
  // The significand's own top bit adds one to the exponent field; a subnormal has none; a carry moves up by
  // itself.
  const std::uint64_t bits = (static_cast<std::uint64_t>(exponent + 126) << 23) + magnitude;
  return sign | static_cast<std::uint32_t>(std::min<std::uint64_t>(bits, infinity));
}

/// What NaNs and infinities make of the sum, if there are any.
std::optional<std::uint32_t> special_sum(const Number* products, int k, const Number& c) {
  bool nan = c.kind == Kind::nan;
  bool up = c.kind == Kind::infinite && !c.negative, down = c.kind == Kind::infinite && c.negative;
  for (int i = 0; i < k; ++i) {
    nan |= products[i].kind == Kind::nan;
    if (products[i].kind == Kind::infinite) (products[i].negative ? down : up) = true;
  }
  if (nan || (up && down)) return quiet_nan;
  if (up) return infinity;
  if (down) return infinity | 0x80000000u;
  return std::nullopt;
}

struct AlignedSum {
  Fixed sum;
  std::optional<int> exponent;  // E; none if nothing takes part
};

/// Rule 1 over products first, first + stride, ...
AlignedSum align_and_add(SumRule rule, const Number* products, int k, int first, int stride) {
  AlignedSum result;
  for (int i = first; i < k; i += stride) {
    const bool zero = products[i].kind == Kind::zero;
    if (zero && rule == SumRule::renormalised) continue;
    const int exponent = zero ? f32_min_exponent : products[i].exponent;
    result.exponent = std::max(exponent, result.exponent.value_or(exponent));
  }
  if (!result.exponent) return result;
  const int grid = *result.exponent - fraction_bits;
  result.sum.unit = grid;
  for (int i = first; i < k; i += stride) {
    if (products[i].kind == Kind::zero) continue;
    const std::int64_t truncated = shift_floor(products[i].significand, grid - products[i].unit);
    result.sum.value += products[i].negative ? -truncated : truncated;
  }
  return result;
}

std::uint32_t step(SumRule rule, bool grouped, const Number* products, int k, std::uint32_t c_bits) {
  const Number c = decode(format_of(Element::f32), c_bits);
  if (const auto special = special_sum(products, k, c)) return *special;

  AlignedSum dot;
  if (grouped) {
    const AlignedSum even = align_and_add(rule, products, k, 0, 2);
    const AlignedSum odd = align_and_add(rule, products, k, 1, 2);
    if (even.exponent || odd.exponent) {
      dot.exponent = std::max(even.exponent.value_or(-999), odd.exponent.value_or(-999));
      const int grid = *dot.exponent - fraction_bits;
      dot.sum = add(floor_to(even.sum, grid), floor_to(odd.sum, grid));
    }
  } else {
    dot = align_and_add(rule, products, k, 0, 1);
  }

  const int c_exponent = c.kind == Kind::zero ? f32_min_exponent : c.exponent;
  const int grid = std::max(dot.exponent.value_or(c_exponent), c_exponent);
  Fixed accumulator{c.negative ? -c.significand : c.significand, c.unit};
  if (c.kind == Kind::zero || (grouped && c_exponent < grid - fraction_bits - 1)) accumulator = {};
  accumulator = floor_to(accumulator, grid - fraction_bits);

  if (rule == SumRule::aligned) return round_to_f32(add(floor_to(dot.sum, grid - 31), accumulator));
  const Fixed sum = add(floor_to(dot.sum, grid - 32), accumulator);
  return round_to_f32(floor_to(sum, exponent_of(sum) - 31));
}

float as_float(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

}  // namespace

std::uint32_t dot_accumulate(SumRule rule, Element a_type, Element b_type, const std::uint32_t* a,
                             const std::uint32_t* b, int k, std::uint32_t c) {
  const bool grouped = bits_of(a_type) == 8;
  const int length = step_length(a_type);
  for (int first = 0; first < k; first += length) {
    const int count = std::min(length, k - first);
    Number products[16];
    for (int i = 0; i < count; ++i)
      products[i] = multiply(decode(a_type, a[first + i]), decode(b_type, b[first + i]));
    c = step(rule, grouped, products, count, c);
  }
  return c;
}

std::uint32_t fma_chain(const std::uint32_t* a, const std::uint32_t* b, int k, std::uint32_t c) {
  float sum = as_float(c);
  for (int i = 0; i < k; ++i) sum = std::fma(as_float(a[i]), as_float(b[i]), sum);
  return std::isnan(sum) ? quiet_nan : std::bit_cast<std::uint32_t>(sum);
}

std::uint64_t fma_chain(const std::uint64_t* a, const std::uint64_t* b, int k, std::uint64_t c) {
  double sum = std::bit_cast<double>(c);
  for (int i = 0; i < k; ++i) sum = std::fma(std::bit_cast<double>(a[i]), std::bit_cast<double>(b[i]), sum);
  return std::isnan(sum) ? 0x7ff8000000000000u : std::bit_cast<std::uint64_t>(sum);
}

std::uint32_t integer_chain(const std::uint32_t* a, const std::uint32_t* b, int k, std::uint32_t c) {
  for (int i = 0; i < k; ++i)
    c += static_cast<std::uint32_t>(static_cast<std::int8_t>(a[i]) * static_cast<std::int8_t>(b[i]));
  return c;
}

std::optional<SumRule> sum_rule_named(std::string_view name) {
  if (name == "renormalised") return SumRule::renormalised;
  if (name == "aligned") return SumRule::aligned;
  return std::nullopt;
}

}  // namespace attest::device::sim::matrix
