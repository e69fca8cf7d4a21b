// SPDX-License-Identifier: MIT
//
// Every format but e8m0 is the same construction with four parameters: a sign, `exponent_bits` of biased
// exponent, `mantissa_bits` of fraction, gradual underflow at exponent 0. Formats differ in the bias and in
// which codes at the top are not numbers. Read as integers, the codes of one sign ascend with the values they
// stand for, so rounding can be done on codes: the tie goes to the even code, a carry out of the fraction is
// a step into the next binade by itself, and overflow is `code > largest_code`.
//
// e8m0 is the exponent field alone; its "fraction" has no bits and it has neither zero nor sign.
#include "reference/formats.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "reference/simd.h"

namespace attest::reference {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Layout {
  const char* name;
  int bytes;
  int mantissa_bits;
  int bias;
  std::uint32_t largest_code;   ///< of the largest finite value
  std::uint32_t overflow_code;  ///< positive infinity, or the NaN of a format without one
  std::uint32_t nan_code;
  bool has_infinity;
  bool has_negative_zero;  ///< the FNUZ formats spend this code on their only NaN

  [[nodiscard]] constexpr std::uint32_t sign_bit() const { return std::uint32_t{1} << (8 * bytes - 1); }
};

constexpr std::array<Layout, 8> layouts{{
    {"bf16", 2, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, true, true},
    {"f16", 2, 10, 15, 0x7bff, 0x7c00, 0x7e00, true, true},
    {"f32", 4, 23, 127, 0x7f7f'ffff, 0x7f80'0000, 0x7fc0'0000, true, true},
    {"fp8_e4m3fn", 1, 3, 7, 0x7e, 0x7f, 0x7f, false, true},
    {"fp8_e4m3fnuz", 1, 3, 8, 0x7f, 0x80, 0x80, false, false},
    {"fp8_e5m2", 1, 2, 15, 0x7b, 0x7c, 0x7e, true, true},
    {"fp8_e5m2fnuz", 1, 2, 16, 0x7f, 0x80, 0x80, false, false},
    {"e8m0", 1, 0, 127, 0xfe, 0xff, 0xff, false, false},
}};

constexpr const Layout& layout(Format format) {
  return layouts[static_cast<std::size_t>(format)];
}

/// 2^exponent for a normal result.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

constexpr double decode_signed(const Layout& f, std::uint32_t bits) {
  const std::uint32_t magnitude = bits & (f.sign_bit() - 1);
  const bool negative = (bits & f.sign_bit()) != 0;
  if (!f.has_negative_zero && bits == f.nan_code) return not_a_number;
  if (magnitude > f.largest_code) {
    if (!f.has_infinity || magnitude != f.overflow_code) return not_a_number;
    return negative ? -infinity : infinity;
  }
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const std::uint32_t fraction = magnitude & ((std::uint32_t{1} << f.mantissa_bits) - 1);
  const std::uint32_t hidden = exponent == 0 ? 0 : std::uint32_t{1} << f.mantissa_bits;
  const int quantum = (exponent == 0 ? 1 : exponent) - f.bias - f.mantissa_bits;
  const double value = (hidden + fraction) * power_of_two(quantum);
  return negative ? -value : value;
}

constexpr double decode_e8m0(std::uint32_t bits) {
  return bits == 0xff ? not_a_number : power_of_two(static_cast<int>(bits) - 127);
}

using ByteTable = std::array<double, 256>;

constexpr ByteTable byte_table(Format format) {
  ByteTable table{};
  for (std::uint32_t bits = 0; bits < 256; ++bits)
    table[bits] = format == Format::e8m0 ? decode_e8m0(bits) : decode_signed(layout(format), bits);
  return table;
}

constexpr ByteTable e4m3fn_values = byte_table(Format::fp8_e4m3fn);
constexpr ByteTable e4m3fnuz_values = byte_table(Format::fp8_e4m3fnuz);
constexpr ByteTable e5m2_values = byte_table(Format::fp8_e5m2);
constexpr ByteTable e5m2fnuz_values = byte_table(Format::fp8_e5m2fnuz);
constexpr ByteTable e8m0_values = byte_table(Format::e8m0);

const ByteTable& byte_values(Format format) {
  switch (format) {
    case Format::fp8_e4m3fn:
      return e4m3fn_values;
    case Format::fp8_e4m3fnuz:
      return e4m3fnuz_values;
    case Format::fp8_e5m2:
      return e5m2_values;
    case Format::fp8_e5m2fnuz:
      return e5m2fnuz_values;
    case Format::e8m0:
      return e8m0_values;
    default:
      throw std::logic_error(fmt::format("{} is not a one-byte format", name(format)));
  }
}

double decode_bf16(std::uint32_t bits) {
  return std::bit_cast<float>(bits << 16);
}
/// The fields of f16 put where f32 has them are the value times 2^(15 - 127), subnormals included.
double decode_f16(std::uint32_t bits) {
  const double magnitude = double{std::bit_cast<float>((bits & 0x7fff) << 13)} * 0x1p112;
  if ((bits & 0x7c00) == 0x7c00) return decode_signed(layout(Format::f16), bits);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}
double decode_f32(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

template <typename Code, typename Decode>
void decode_each(std::span<const std::byte> bytes, std::span<double> values, Decode decode_one) {
  static_assert(std::endian::native == std::endian::little, "tensors are little-endian");
  const std::byte* from = bytes.data();
  double* to = values.data();
  const std::size_t count = values.size();
  run_for(widest_simd(), [=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) {
      Code code;
      std::memcpy(&code, from + i * sizeof code, sizeof code);
      to[i] = decode_one(code);
    }
  });
}

/// x / 2^drop to nearest, ties to even. Callers that drop more than 53 bits have x < 2^53.
std::uint64_t drop_bits(std::uint64_t x, int drop) {
  if (drop > 53) return 0;  // less than half
  const std::uint64_t odd = (x >> drop) & 1;
  return (x + (std::uint64_t{1} << (drop - 1)) - 1 + odd) >> drop;
}

}  // namespace

int bytes_per_element(Format format) {
  return layout(format).bytes;
}

const char* name(Format format) {
  return layout(format).name;
}

double max_finite(Format format) {
  return decode(format, layout(format).largest_code);
}

double decode(Format format, std::uint32_t bits) {
  switch (format) {
    case Format::bf16:
      return decode_bf16(bits & 0xffff);
    case Format::f16:
      return decode_f16(bits & 0xffff);
    case Format::f32:
      return decode_f32(bits);
    default:
      return byte_values(format)[bits & 0xff];
  }
}

void decode(Format format, std::span<const std::byte> bytes, std::span<double> values) {
  if (bytes.size() != values.size() * static_cast<std::size_t>(bytes_per_element(format)))
    throw std::invalid_argument(
        fmt::format("decode: {} bytes are not {} elements of {}", bytes.size(), values.size(), name(format)));
  switch (format) {
    case Format::bf16:
      return decode_each<std::uint16_t>(bytes, values, [](std::uint16_t code) { return decode_bf16(code); });
    case Format::f16:
      return decode_each<std::uint16_t>(bytes, values, [](std::uint16_t code) { return decode_f16(code); });
    case Format::f32:
      return decode_each<std::uint32_t>(bytes, values, [](std::uint32_t code) { return decode_f32(code); });
    default: {
      const double* table = byte_values(format).data();
      return decode_each<std::uint8_t>(bytes, values, [table](std::uint8_t code) { return table[code]; });
    }
  }
}

std::uint32_t encode(Format format, double value, Overflow overflow) {
  const Layout& f = layout(format);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t magnitude = bits & 0x7fff'ffff'ffff'ffff;
  const bool negative = magnitude != bits;
  const bool e8m0 = format == Format::e8m0;
  const std::uint32_t sign = negative && !e8m0 ? f.sign_bit() : 0;

  if (value != value) return f.has_negative_zero ? sign | f.nan_code : f.nan_code;
  if (e8m0 && (negative || value == 0)) return f.nan_code;

  // Rounded in place, a double is a code of the format but for the bias of its exponent.
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  const int smallest_exponent = (e8m0 ? 0 : 1) - f.bias;
  const int drop = 52 - f.mantissa_bits;
  std::uint64_t code = 0;
  if (exponent >= smallest_exponent)
    code = drop_bits(magnitude, drop) - (static_cast<std::uint64_t>(1023 - f.bias) << f.mantissa_bits);
  else if (!e8m0)
    code = drop_bits((magnitude & 0xf'ffff'ffff'ffff) | (std::uint64_t{1} << 52),
                     drop + smallest_exponent - exponent);

  if (code > f.largest_code) {
    if (overflow == Overflow::saturate) return sign | f.largest_code;
    return f.has_negative_zero ? sign | f.overflow_code : f.nan_code;
  }
  if (code == 0 && !f.has_negative_zero) return 0;
  return sign | static_cast<std::uint32_t>(code);
}

}  // namespace attest::reference
