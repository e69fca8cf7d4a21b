// SPDX-License-Identifier: MIT
//
// The rule of model.h for any input, in loops over sixteen columns that compilers turn into vector code.
// Included by kernel sources only (see kernels.h). At the baseline level this is the kernel; at the others it
// takes what kernel_narrow.h refuses: NaN, infinities, exponents far apart.
//
// Doubles make it simple. A product of two elements is exact, never overflows and never underflows; scaled by
// 2^(24-E) and converted to int32 it is truncated exactly as the rule says. What joins the accumulator fits
// int32 too:
//
//   U = max(E, e(c) - 5), T = floor(sum * 2^(E-U)) + floor(c * 2^(24-U)), |T| < 2^31, D = T * 2^(U-24).
//
// If U = E nothing of the sum is lost and the rule's floors of the sum do nothing. If U > E, c is more than
// sixty-four times the largest product, T is at least 2^28, and the bits of the sum below T only matter as
// "more than a half or less": those that the rule keeps are joined into T's last bit. The rule keeps
//
//   renormalised: down to 2^(e(S)-31), at most three bits (e(S) = e(c)-1), and 2^-157 for subnormal S;
//   aligned:      down to 2^(e(c)-31), always two bits.
//
// For U - E >= 32 the last bit of T is set already when the sum is negative, so it does not matter what is
// joined. The conversion of the double T * 2^(U-24) to f32 is then the only rounding, subnormals and overflow
// included.
#pragma once

#include "device/simulator/matrix/kernel_panels.h"

namespace attest::device::sim::matrix {
namespace {

constexpr int columns = 16;  // of a vector

/// No product: an exponent far below all others.
constexpr int no_exponent = -2000;

struct Decoded {
  float value;
  int exponent;
};

inline float bits_to_float(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
inline std::uint32_t float_to_bits(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}

template <Element type>
inline Decoded decode_element(std::uint32_t bits, bool flush) {
  constexpr int mantissa_bits = type == Element::f16    ? 10
                                : type == Element::bf16 ? 7
                                : type == Element::fp8  ? 3
                                : type == Element::bf8  ? 2
                                                        : 23;
  constexpr int exponent_bits = type == Element::f16 || type == Element::bf8 ? 5
                                : type == Element::fp8                       ? 4
                                                                             : 8;
  constexpr int bias = type == Element::f16 ? 15 : type == Element::fp8 ? 8 : type == Element::bf8 ? 16 : 127;
  constexpr std::uint32_t magnitude_mask = (1u << (mantissa_bits + exponent_bits)) - 1;
  if constexpr (type == Element::xf32) {
    const bool nan = (bits & magnitude_mask) > 0x7f800000u;
    if (flush && (bits & 0x7f800000u) == 0) bits &= 0x80000000u;
    bits = nan ? bits | 0x00400000u : bits & ~0x1fffu;
  }
  const std::uint32_t magnitude = bits & magnitude_mask;
  const std::uint32_t sign = (bits >> (mantissa_bits + exponent_bits)) << 31;
  const int field = static_cast<int>(magnitude >> mantissa_bits);
  // Moved into f32's fields the value is too small by a power of two, subnormals too.
  float value = bits_to_float(magnitude << (23 - mantissa_bits)) *
                bits_to_float(static_cast<std::uint32_t>(127 - bias + 127) << 23);
  if (type == Element::f16 && field == 31) value = bits_to_float(0x7f800000u | magnitude << 13);
  value = bits_to_float(float_to_bits(value) | sign);
  if (is_8bit(type) && sign != 0 && magnitude == 0) value = bits_to_float(0x7fc00000u);
  return {value, magnitude == 0 ? no_exponent : (field == 0 ? 1 : field) - bias};
}

template <int M, int K, int Blocks>
struct PlainPanel {
  alignas(64) float value[Blocks][K][M];
  alignas(64) std::int32_t exponent[Blocks][K][M];
};

template <Element type, int M, int K, int Blocks>
inline void unpack(const std::uint32_t* source, bool flush, PlainPanel<M, K, Blocks>& panel) {
  constexpr int bits = bits_of(type), per_word = 32 / bits;
  for_each_run<M, K, Blocks, per_word>([&](int at, int block, int k) {
    for (int e = 0; e < per_word; ++e)
      for (int i = 0; i < M; ++i) {
        const std::uint32_t raw = source[at + i] >> (bits * e);
        const Decoded x = decode_element<type>(bits == 32 ? raw : raw & ((1u << (bits % 32)) - 1), flush);
        panel.value[block][k + e][i] = x.value;
        panel.exponent[block][k + e][i] = x.exponent;
      }
  });
}

inline double power_of_two(int e) {
  return __builtin_bit_cast(double, static_cast<std::int64_t>(e + 1023) << 52);
}

inline int max_of(int a, int b) {
  return a > b ? a : b;
}
inline int min_of(int a, int b) {
  return a < b ? a : b;
}

inline int floor_to_int(double x) {
  const int truncated = static_cast<int>(x);
  return truncated - (x < truncated);
}

/// One step of one row and sixteen columns: products s .. s + L of row i into c.
template <bool grouped, int L, int M>
inline void plain_step(SumRule rule, const float (*a)[M], const std::int32_t (*ea)[M], int i,
                       const float (*b)[M], const std::int32_t (*eb)[M], int j0, float* c) {
  constexpr int groups = grouped ? 2 : 1;
  int e[groups][columns], sum[groups][columns];
  double special[columns];
  for (int j = 0; j < columns; ++j) {
    special[j] = __builtin_fabsf(c[j]) < __builtin_inff() ? 0.0 : static_cast<double>(c[j]);
    for (int g = 0; g < groups; ++g) e[g][j] = no_exponent, sum[g][j] = 0;
  }
  for (int k = 0; k < L; ++k)
    for (int j = 0; j < columns; ++j) {
      int sum_of_exponents = ea[k][i] + eb[k][j0 + j];
      if (rule == SumRule::aligned)
        sum_of_exponents = max_of(sum_of_exponents, sum_of_exponents < -999 ? -126 : no_exponent);
      e[k % groups][j] = max_of(e[k % groups][j], sum_of_exponents);
    }
  double scale[groups][columns];
  for (int g = 0; g < groups; ++g)
    for (int j = 0; j < columns; ++j) {
      e[g][j] = max_of(e[g][j], -600);
      scale[g][j] = power_of_two(24 - e[g][j]);
    }
  for (int k = 0; k < L; ++k)
    for (int j = 0; j < columns; ++j) {
      const double p = static_cast<double>(a[k][i]) * static_cast<double>(b[k][j0 + j]);
      const bool ordinary = __builtin_fabs(p) < 0x1p128;
      special[j] += ordinary ? 0.0 : p * __builtin_inf();
      sum[k % groups][j] += static_cast<int>(ordinary ? p * scale[k % groups][j] : 0.0);
    }
  for (int j = 0; j < columns; ++j) {
    int top = e[0][j], total = sum[0][j];
    if constexpr (grouped) {
      top = max_of(e[0][j], e[1][j]);
      total = (sum[0][j] >> min_of(top - e[0][j], 31)) + (sum[1][j] >> min_of(top - e[1][j], 31));
    }
    const std::uint32_t c_bits = float_to_bits(c[j]);
    const int c_exponent = max_of(static_cast<int>(c_bits >> 23 & 0xff), 1) - 127;
    const int u = max_of(top, c_exponent - 5);
    const bool finite = (c_bits & 0x7f800000u) != 0x7f800000u;
    const bool kept = finite && !(grouped && c_exponent < top - 25);
    const int low = floor_to_int(kept ? static_cast<double>(c[j]) * power_of_two(24 - u) : 0.0);
    const int h = u - top;
    int t = (total >> min_of(h, 31)) + low;
    const std::uint32_t lost = h == 0 ? 0 : static_cast<std::uint32_t>(total) << (32 - min_of(h, 32));
    const int magnitude = t < 0 ? -t : t;
    int bits = 2;
    if (rule == SumRule::renormalised)
      bits = min_of(3 - (magnitude >= 1 << 29) - (magnitude >= 1 << 30), u + 133);
    t |= (lost >> (32 - bits)) != 0 ? 1 : 0;
    const float rounded = static_cast<float>(static_cast<double>(t) * power_of_two(u - 24));
    const float odd = special[j] == special[j] ? static_cast<float>(special[j]) : bits_to_float(0x7fc00000u);
    c[j] = special[j] == 0 ? rounded : odd;
  }
}

template <bool grouped, int L, int M, int K, int Blocks>
[[gnu::noinline]] void plain_multiply(const PlainPanel<M, K, Blocks>& a, const PlainPanel<M, K, Blocks>& b,
                                      const Operands& o) {
  for (int block = 0; block < Blocks; ++block)
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < M; j += columns) {
        const int at = row_offset<M>(block, i) + j;
        float c[columns];
        __builtin_memcpy(c, o.c + at, sizeof c);
        for (int s = 0; s < K; s += L)
          plain_step<grouped, L>(o.rule, &a.value[block][s], &a.exponent[block][s], i, &b.value[block][s],
                                 &b.exponent[block][s], j, c);
        __builtin_memcpy(o.d + at, c, sizeof c);
      }
}

template <Element type_a, Element type_b, int M, int K, int Blocks>
void plain_kernel(const Operands& o) {
  PlainPanel<M, K, Blocks> a, b;
  unpack<type_a>(o.a, o.flush, a);
  unpack<type_b>(o.b, o.flush, b);
  plain_multiply<is_8bit(type_a), (step_length(type_a) < K ? step_length(type_a) : K)>(a, b, o);
}

/// f32: one fused multiply-add per k. Only where the machine has one; a library call per element would not
/// pay.
template <int M, int K, int Blocks>
void f32_kernel(const Operands& o) {
  static_assert(per_lane<M, K, Blocks> == 1);
  std::uint32_t a[64], b[64];
  for (int lane = 0; lane < 64; ++lane) {
    a[lane] = o.flush ? flush_subnormal(o.a[lane]) : o.a[lane];
    b[lane] = o.flush ? flush_subnormal(o.b[lane]) : o.b[lane];
  }
  for (int block = 0; block < Blocks; ++block)
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < M; j += columns) {
        const int at = row_offset<M>(block, i) + j;
        float c[columns];
        __builtin_memcpy(c, o.c + at, sizeof c);
        for (int k = 0; k < K; ++k) {
          const int lane = M * (block + Blocks * k);
          const float x = bits_to_float(a[lane + i]);
          for (int l = 0; l < columns; ++l) c[l] = __builtin_fmaf(x, bits_to_float(b[lane + j + l]), c[l]);
        }
        for (int l = 0; l < columns; ++l) c[l] = c[l] == c[l] ? c[l] : bits_to_float(0x7fc00000u);
        __builtin_memcpy(o.d + at, c, sizeof c);
      }
}

template <int M, int K, int Blocks>
void i8_kernel(const Operands& o) {
  std::int32_t a[Blocks][K][M], b[Blocks][K][M];
  const auto split = [](const std::uint32_t* source, std::int32_t(*to)[K][M]) {
    for_each_run<M, K, Blocks, 4>([&](int at, int block, int k) {
      for (int e = 0; e < 4; ++e)
        for (int i = 0; i < M; ++i) to[block][k + e][i] = static_cast<std::int8_t>(source[at + i] >> (8 * e));
    });
  };
  split(o.a, a);
  split(o.b, b);
  for (int block = 0; block < Blocks; ++block)
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < M; j += columns) {
        const int at = row_offset<M>(block, i) + j;
        std::uint32_t c[columns];
        __builtin_memcpy(c, o.c + at, sizeof c);
        for (int k = 0; k < K; ++k)
          for (int l = 0; l < columns; ++l)
            c[l] += static_cast<std::uint32_t>(a[block][k][i] * b[block][k][j + l]);
        __builtin_memcpy(o.d + at, c, sizeof c);
      }
}

}  // namespace
}  // namespace attest::device::sim::matrix
