// SPDX-License-Identifier: MIT
//
// f16 to f32 and back in integer arithmetic, the same at every level.
//
// f16 operations run in f32. For +, -, * that is exact up to one harmless second rounding: f32 has 24 >= 2 *
// 11 + 2 bits (Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30(3), 1995). A fused
// multiply-add has an exact product in f32; its sum is made in double and rounded to odd on the way down.
#pragma once

#include "device/simulator/exec/vector_float.h"

namespace attest::device::sim::ATTEST_SIMD_NAMESPACE {

/// Of the low half; the high one must be clear. A NaN keeps its payload, signalling ones stay so.
ATTEST_INLINE F half_to_float(const U& half) {
  const U magnitude = (half & 0x7fffu) << 13;
  const F scaled = f(magnitude) * splatf(0x1p112f);
  const U r = select(magnitude >= 0x0f800000u, magnitude | 0x7f800000u, u(scaled));
  return f(r | ((half & 0x8000u) << 16));
}

/// Rounded to nearest even; beyond 65504 infinity; NaN: top payload bits.
ATTEST_INLINE U float_to_half(const F& x) {
  const U sign = (u(x) >> 16) & 0x8000u, magnitude = u(x) & 0x7fffffffu;
  // Normal results: drop 13 bits with a carry that may run into the exponent.
  const U normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  // Denormal results: let an f32 addition put the unit of 2^-24 into the last place.
  const U denormal = u(f(magnitude) + splatf(0.5f)) - 0x3f000000u;
  U r = select(magnitude < 0x38800000u, denormal, normal);
  r = select(magnitude >= 0x477ff000u, splat(0x7c00), r);
  const U nan = ((magnitude >> 13) & 0x3ffu) | 0x7c00u;
  r = select(magnitude > 0x7f800000u, select((nan & 0x3ffu) == 0, splat(0x7e00), nan), r);
  return r | sign;
}

/// Directed: 1 up, 2 down, 3 towards zero.
inline U float_to_half_directed(const F& x, u32 rounding) {
  const U sign = (u(x) >> 16) & 0x8000u, magnitude = u(x) & 0x7fffffffu;
  const I negative = sign != 0;
  const U shift = select(magnitude < 0x38800000u, 126u - (magnitude >> 23), splat(13));  // 14.. for denormals
  const U limited = select(shift > 31u, splat(31), shift);
  const U significand = (magnitude & 0x7fffffu) | 0x800000u;
  const I is_denormal = magnitude < 0x38800000u;
  const U kept = select(is_denormal, significand >> limited, (magnitude - 0x38000000u) >> 13);
  const U lost = select(is_denormal, significand & ((splat(1) << limited) - 1u), magnitude & 0x1fffu);
  const I inexact = select(magnitude < 0x00800000u, I((magnitude & 0x7fffffu) != 0), I(lost != 0));
  const I away = rounding == 1 ? inexact & ~negative : rounding == 2 ? inexact & negative : I{};
  U r = select(magnitude < 0x00800000u, U{}, kept) + (u(away) & 1u);
  const I outward = rounding == 1 ? ~negative : rounding == 2 ? negative : I{};
  const U largest = select(outward, splat(0x7c00), splat(0x7bff));
  r = select(magnitude >= 0x47800000u, largest, r);
  r = select(magnitude == 0x7f800000u, splat(0x7c00), r);
  const U nan = ((magnitude >> 13) & 0x3ffu) | 0x7c00u;
  r = select(magnitude > 0x7f800000u, select((nan & 0x3ffu) == 0, splat(0x7e00), nan), r);
  return r | sign;
}

ATTEST_INLINE U to_half(const F& x, u32 mode_bits) {
  const u32 rounding = (mode_bits & round64) >> 2;
  return rounding == 0 ? float_to_half(x) : float_to_half_directed(x, rounding);
}

/// FP16_OVFL: an overflow of finite numbers stops at the largest one.
ATTEST_INLINE U limit_overflow(const U& half, const F& from, u32 mode_bits) {
  if ((mode_bits & mode::fp16_ovfl) == 0) return half;
  const I overflowed = ((half & 0x7fffu) == 0x7c00u) & (abs(from) < __builtin_inff());
  return select(overflowed, (half & 0x8000u) | 0x7bffu, half);
}

ATTEST_INLINE I is_half_nan(const U& half) {
  return (half & 0x7fffu) > 0x7c00u;
}

/// An operation's f16 result: rounded, and the NaN rule applied to the f16 sources.
template <class... X>
ATTEST_INLINE U half_result(const F& r, u32 mode_bits, const X&... sources) {
  const U rounded = limit_overflow(to_half(r, mode_bits), r, mode_bits);
  const I broken = is_half_nan(rounded);
  if (!any(broken)) [[likely]]
    return rounded;
  const U quiet = splat((mode_bits & mode::ieee) != 0 ? 0x0200u : 0u);
  U nan = splat(0xfe00);
  I found{};
  const auto consider = [&](const U& source) {
    const U half = source & 0xffffu;
    const I here = is_half_nan(half) & ~found;
    nan = select(here, half | quiet, nan);
    found |= here;
  };
  (consider(sources), ...);
  return select(broken, nan, rounded);
}

/// a * b + c of three halves held in f32: exact product, exact or odd sum in double, odd to f32.
ATTEST_INLINE F8 odd_float(const D& x) {
  // to f32 with round-to-odd: cut, and set the last bit if anything was lost
  const F8 nearest = to_float(x);
  const D back = to_double(nearest);
  const J exact = (back == x) | ((x != x)) | (abs(x) == __builtin_inf()) | (abs(back) == __builtin_inf());
  const U8 raw = bits<U8>(nearest);
  const J too_far = abs(back) > abs(x);
  const U8 cut = raw - low32(l(J(too_far)) & 1u);
  return bits<F8>(select(__builtin_convertvector(exact, I8), raw, cut | 1u));
}
ATTEST_INLINE F half_fma(const F& a, const F& b, const F& c) {
  const F product = a * b;
  return join(odd_float(add_to_odd(to_double(lower(product)), to_double(lower(c)))),
              odd_float(add_to_odd(to_double(upper(product)), to_double(upper(c)))));
}

}  // namespace attest::device::sim::ATTEST_SIMD_NAMESPACE
