// SPDX-License-Identifier: MIT
#include "reference/exponential.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>

namespace attest::reference {
namespace {

constexpr double ln2_hi = 0x1.62e42fefap-1;       // 36 bits: n * ln2_hi is exact for |n| < 2^17
constexpr double ln2_lo = 0x1.cf79abc9e3b3ap-40;  // ln 2 - ln2_hi
constexpr double round_to_integer =
    0x1.8p52;                               // added, it leaves no fraction bits; its low bits are the integer
constexpr double smallest_argument = -708;  // exp(-708) = 1.49 * 2^-1022, still normal

constexpr int degree = 13;
struct Taylor {
  double coefficient[degree + 1];
  constexpr Taylor() : coefficient{} {
    double factorial = 1;
    for (int k = 0; k <= degree; ++k) {
      if (k > 0) factorial *= k;
      coefficient[k] = 1 / factorial;
    }
  }
};
constexpr Taylor taylor;

/// x <= 0, or NaN. `Bits` is the unsigned vector of the same shape.
template <typename Vector, typename Bits>
[[gnu::always_inline]] inline void exp_shifted_vector(double* values, double shift) {
  Vector x;
  std::memcpy(&x, values, sizeof x);
  x -= shift;

  const Vector shifted = x * std::numbers::log2e + round_to_integer;
  const Vector n = shifted - round_to_integer;
  const Vector r = (x - n * ln2_hi) - n * ln2_lo;
  Vector sum = r * taylor.coefficient[degree] + taylor.coefficient[degree - 1];
#pragma GCC unroll 16
  for (int k = degree - 2; k >= 0; --k) sum = sum * r + taylor.coefficient[k];

  Bits exponent, result;
  std::memcpy(&exponent, &shifted, sizeof exponent);
  exponent = (exponent - std::bit_cast<std::uint64_t>(round_to_integer) + 1023) << 52;
  Vector power;
  std::memcpy(&power, &exponent, sizeof power);
  sum *= power;
  std::memcpy(&result, &sum, sizeof result);
  const auto underflow = x < smallest_argument;  // all bits set where true, and false for NaN
  Bits mask;
  static_assert(sizeof underflow == sizeof mask);
  std::memcpy(&mask, &underflow, sizeof mask);
  result &= ~mask;
  std::memcpy(values, &result, sizeof result);
}

template <typename Vector, typename Bits>
[[gnu::always_inline]] inline void exp_shifted_all(double* values, std::size_t count, double shift) {
  constexpr std::size_t lanes = sizeof(Vector) / sizeof(double);
  std::size_t j = 0;
  for (; j + lanes <= count; j += lanes) exp_shifted_vector<Vector, Bits>(values + j, shift);
  if (j == count) return;
  double rest[lanes];
  for (std::size_t k = 0; k < lanes; ++k) rest[k] = j + k < count ? values[j + k] : shift;
  exp_shifted_vector<Vector, Bits>(rest, shift);
  for (std::size_t k = 0; j + k < count; ++k) values[j + k] = rest[k];
}

using Vector2 [[gnu::vector_size(16)]] = double;
using Vector4 [[gnu::vector_size(32)]] = double;
using Vector8 [[gnu::vector_size(64)]] = double;
using Bits2 [[gnu::vector_size(16)]] = std::uint64_t;
using Bits4 [[gnu::vector_size(32)]] = std::uint64_t;
using Bits8 [[gnu::vector_size(64)]] = std::uint64_t;

void exp_shifted_sse2(double* values, std::size_t count, double shift) {
  exp_shifted_all<Vector2, Bits2>(values, count, shift);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] void exp_shifted_avx2(double* values, std::size_t count, double shift) {
  exp_shifted_all<Vector4, Bits4>(values, count, shift);
}
[[gnu::target("avx512f,avx512dq")]] void exp_shifted_avx512(double* values, std::size_t count, double shift) {
  exp_shifted_all<Vector8, Bits8>(values, count, shift);
}
#else
void exp_shifted_avx2(double* values, std::size_t count, double shift) {
  exp_shifted_sse2(values, count, shift);
}
void exp_shifted_avx512(double* values, std::size_t count, double shift) {
  exp_shifted_sse2(values, count, shift);
}
#endif

}  // namespace

void exp_shifted(std::span<double> values, double shift, Simd simd) {
  switch (simd) {
    case Simd::sse2:
      return exp_shifted_sse2(values.data(), values.size(), shift);
    case Simd::avx2:
      return exp_shifted_avx2(values.data(), values.size(), shift);
    case Simd::avx512:
      return exp_shifted_avx512(values.data(), values.size(), shift);
  }
}

double natural_log(double x) {
  if (!(x <= std::numeric_limits<double>::max())) return x;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int n = static_cast<int>(bits >> 52) - 1023;
  double f = std::bit_cast<double>((bits & 0xf'ffff'ffff'ffff) | (std::uint64_t{1023} << 52));
  if (f > std::numbers::sqrt2) {
    f /= 2;
    n += 1;
  }
  const double t = (f - 1) / (f + 1);
  double series = 0;
  for (int k = 21; k >= 3; k -= 2) series = (series + 1.0 / k) * (t * t);
  return n * ln2_hi + (2 * t + (2 * t * series + n * ln2_lo));
}

}  // namespace attest::reference
