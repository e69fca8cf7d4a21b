// SPDX-License-Identifier: MIT
//
// f64 arithmetic. A value is the same lane of two consecutive registers.
#include "device/simulator/exec/vector_float.h"

namespace attest::device::sim::ATTEST_SIMD_NAMESPACE {
namespace {

ATTEST_INLINE J biased_exponent(const D& x) {
  return j((l(x) >> 52) & 0x7ffu);
}
ATTEST_INLINE J denormal(const D& x) {
  return J(biased_exponent(x) == 0) & J((l(x) & 0xfffffffffffffull) != 0);
}
ATTEST_INLINE L quieted(const D& x) {
  return l(x) | 0x0008000000000000ull;
}
ATTEST_INLINE J special(const D& x) {  // infinite, NaN or zero
  return ~J(abs(x) < __builtin_inf()) | J(x == 0.0);
}

/// The f32 rules with wider numbers, see vector_float32.cpp.
void div_scale_kernel(Rows& rows) {
  u64 mask = 0;
  for (u32 at = 0; at < lanes; at += 8) {
    const D s0 = d(load64(rows.at(0, at))), s1 = d(load64(rows.at(1, at))), s2 = d(load64(rows.at(2, at)));
    const D up = propagate(s0 * splatd(0x1p128), rows.mode, s0, D{}, D{});
    const D down = propagate(s0 * splatd(0x1p-128), rows.mode, s0, D{}, D{});
    const J zero = J(s1 == 0.0) | J(s2 == 0.0);
    const J gap = (biased_exponent(s2) - biased_exponent(s1)) >= 768;
    const J reciprocal_tiny = J(abs(s1) > 0x1p1022) & J(abs(s1) < __builtin_inf());
    const J quotient_tiny = J(abs(s2 / s1) < 0x1p-1022);
    const J is_denominator = l(s0) == l(s1), is_numerator = l(s0) == l(s2);
    D r = select(J(biased_exponent(s2) <= 53), up, s0);
    r = select(quotient_tiny, select(is_numerator, up, s0), r);
    J flag = quotient_tiny;
    r = select(reciprocal_tiny, down, r);
    flag &= ~reciprocal_tiny;
    const J both = reciprocal_tiny & quotient_tiny;
    r = select(both, select(is_denominator, down, s0), r);
    flag |= both;
    r = select(denormal(s1), up, r);
    flag &= ~denormal(s1);
    r = select(gap, select(is_denominator, up, s0), r);
    flag |= gap;
    r = select(zero, d(splat64(0x7ff8000000000000ull)), r);
    flag &= ~zero;
    store64(rows.dst + at, l(r));
    mask |= u64{mask_bits(flag)} << at;
  }
  rows.mask_out = mask;
}

/// (a * b + c) * 2^-128 where that is denormal: one rounding to a multiple of 2^-1074, which before scaling
/// is one of 2^-946. The sum is had as two numbers (the product is exact as high + low by FMA, TwoSum keeps
/// what adding c loses); adding 2^-894 of its sign, whose last place is 2^-946, rounds, and the parts lost
/// there and before, joined to odd, go into that rounding.
ATTEST_INLINE D fused_down_to_denormal(const D& a, const D& b, const D& c) {
  const D high = a * b, low = fma(a, b, -high);
  const D sum = high + c, virtual_c = sum - high;
  const D lost = add_to_odd((high - (sum - virtual_c)) + (c - virtual_c), low);
  const D grid = copysign(splatd(0x1p-894), sum);
  const D coarse_sum = grid + sum, rest = sum - (coarse_sum - grid);
  const D rounded = (coarse_sum + add_to_odd(rest, lost)) - grid;
  return copysign(rounded * splatd(0x1p-128), sum);
}

/// (a * b + c) * 2^+-128 in one rounding; c's exponent decides the direction, as for f32. Where the sum or
/// the result may be denormal, multiplying the rounded sum would round twice. Scaling up, the sources are
/// scaled instead (small as the sum is, so are they).
void div_fmas_kernel(Rows& rows) {
  for (u32 at = 0; at < lanes; at += 8) {
    const D a = d(load64(rows.at(0, at))), b = d(load64(rows.at(1, at))), c = d(load64(rows.at(2, at)));
    const J scaled = lane_mask64(static_cast<u32>(rows.mask_in >> at) & 0xffu);
    const J upwards = biased_exponent(c) > 1023;
    const D sum = fma(a, b, c);
    const J denormal_below = J(abs(sum) < 0x1p-894) & J(sum != 0.0),
            small = J(abs(sum) < 0x1p-800) & J(sum != 0.0);
    const D down = select(denormal_below, fused_down_to_denormal(a, b, c), sum * splatd(0x1p-128));
    const D up = select(small, fma(a * splatd(0x1p64), b * splatd(0x1p64), c * splatd(0x1p128)),
                        sum * splatd(0x1p128));
    const D r = select(scaled, select(upwards, up, down), sum);
    store64(rows.dst + at, l(propagate(r, rows.mode, a, b, c)));
  }
}

struct Ldexp64 {
  /// Three multiplications by powers of two could round more than once; split so that only the last one can.
  static ATTEST_INLINE L run(const Context& context, const L& x, const L& exponent) {
    const J wide = j(exponent << 32) >> 32;
    const J k = select(J(wide > 2200), J{} + 2200, select(J(wide < -2200), J{} - 2200, wide));
    // Normalise the source, then every intermediate of magnitude above 2^-1022 is exact.
    const J tiny = denormal(d(x));
    D r = select(tiny, d(x) * splatd(0x1p64), d(x));
    const J remaining = k - (tiny & 64);
    const J e = biased_exponent(r) - 1023;
    const J target = e + remaining;  // exponent of the result, unbounded
    const J in_range = J(target >= -1022) & J(target <= 1023);
    const J usual = in_range & ~special(r);
    const D exact = d((l(r) & 0x800fffffffffffffull) | (l(target + 1023) << 52));
    // Below: bring to 2^-1022 * 1.m exactly, one rounding multiplication. Above: overflow.
    const J below = target < -1022;
    const D smallest = d((l(r) & 0x800fffffffffffffull) | (1ull << 52));
    const J deficit = select(J((-1022 - target) > 60), J{} + 60, -1022 - target);
    const D rounded = smallest * power_of_two(select(below, -deficit, J{}));
    const D overflowed = d((l(r) & 0x800fffffffffffffull) | (0x7feull << 52)) * splatd(2.0);
    D out = select(below, rounded, overflowed);
    out = select(usual, exact, out);
    out = select(special(r), r, out);
    return l(propagate(out, context.mode, d(x), D{}, D{}));
  }
};

// 2/pi = 0.b1200 b1199 ... b0, most significant bit first.
constexpr u64 two_over_pi[20] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b0000, 0x0000000000000000};
u64 bits_of_two_over_pi(u32 first) {  // 53 bits from bit `first` on
  if (first >= 1201) return 0;
  const u32 word = first / 64, shift = first % 64;
  const u64 next = word + 1 < 20 ? two_over_pi[word + 1] : 0;
  const u64 window = shift == 0 ? two_over_pi[word] : two_over_pi[word] << shift | next >> (64 - shift);
  return window >> 11;
}
void trig_preop(Rows& rows) {
  for (u32 lane = 0; lane < lanes; ++lane) {
    const u32 exponent = rows.at(0, lane)[lanes] >> 20 & 0x7ff;
    u32 shift = (*rows.at(1, lane) & 31) * 53;
    if (exponent > 1077) shift += exponent - 1077;
    int scale = -53 - static_cast<int>(shift);
    if (exponent >= 1968) scale += 128;
    const double whole = static_cast<double>(bits_of_two_over_pi(shift));
    // whole has 53 bits and scale is at least -53 - 31 * 53 - 970: two exact steps, then one that may round
    double r = whole;
    while (scale < -500) r *= 0x1p-500, scale += 500;
    r *= bits<double>(static_cast<u64>(1023 + scale) << 52);
    const u64 b = bits<u64>(r);
    rows.dst[lane] = static_cast<u32>(b);
    rows.dst[lane + lanes] = static_cast<u32>(b >> 32);
  }
}

template <class Fn>
struct Exact64 {
  template <class... X>
  static ATTEST_INLINE L run(const Context& context, const X&... x) {
    return l(call<Fn>(context, d(x)...));
  }
};
template <int sources, class Fn>
Entry exact64(Fn) {
  Entry e;
  e.kernel = &kernel64<Exact64<Fn>, sources, 7>;
  e.result = Result::f64;
  e.flushes = true;
  e.mode_mask = e.mode_keep = denorm64;
  return e;
}
template <class Fn>
Entry to_integral(Fn fn) {
  Entry e = float64<1>(fn);
  e.rounds = false;
  e.mode_mask = e.mode_keep = denorm64;
  return e;
}

}  // namespace

void register_float64(Table& table) {
  const auto at = [&](Op op) -> Entry& { return table[op]; };
  at(Op::v_add_f64) = float64<2>([](D a, D b) { return a + b; });
  at(Op::v_mul_f64) = float64<2>([](D a, D b) { return a * b; });
  const auto fused = [](D a, D b, D c) { return fma(a, b, c); };
  at(Op::v_fma_f64) = float64<3>(fused);
  at(Op::v_fmac_f64) = float64<3, accumulate>(fused);
  at(Op::v_min_f64) = exact64<2>([](const Context& c, D a, D b) { return minimum(c, a, b); });
  at(Op::v_max_f64) = exact64<2>([](const Context& c, D a, D b) { return maximum(c, a, b); });
  at(Op::v_trunc_f64) = to_integral([](D a) { return trunc(a); });
  at(Op::v_ceil_f64) = to_integral([](D a) { return ceil(a); });
  at(Op::v_floor_f64) = to_integral([](D a) { return floor(a); });
  at(Op::v_rndne_f64) = to_integral([](D a) { return rint(a); });
  at(Op::v_fract_f64) = to_integral([](D a) {
    const D r = a - floor(a), limit = splatd(0x1.fffffffffffffp-1);
    return select(J(r > limit), limit, r);
  });
  at(Op::v_frexp_mant_f64) = to_integral([](D a) {
    const D normal = select(denormal(a), a * splatd(0x1p64), a);
    return select(special(a), a, d((l(normal) & 0x800fffffffffffffull) | 0x3fe0000000000000ull));
  });
  struct FrexpExponent {
    static ATTEST_INLINE L run(const Context&, const L& x) {
      const J tiny = denormal(d(x));
      const D normal = select(tiny, d(x) * splatd(0x1p64), d(x));
      const J exponent = biased_exponent(normal) - 1022 - (tiny & 64);
      return l(select(special(d(x)), J{}, exponent));
    }
  };
  at(Op::v_frexp_exp_i32_f64).kernel = &kernel64<FrexpExponent, 1, 1, true>;
  at(Op::v_frexp_exp_i32_f64).flushes = true;
  at(Op::v_frexp_exp_i32_f64).mode_mask = at(Op::v_frexp_exp_i32_f64).mode_keep = denorm64;

  Entry ldexp;
  ldexp.kernel = &kernel64<Ldexp64, 2, 1>;
  ldexp.result = Result::f64;
  ldexp.rounds = ldexp.flushes = true;
  ldexp.mode_mask = round64 | denorm64;
  ldexp.mode_keep = denorm64;
  at(Op::v_ldexp_f64) = ldexp;
  at(Op::v_div_scale_f64) = ldexp;
  at(Op::v_div_scale_f64).kernel = &div_scale_kernel;
  at(Op::v_div_fmas_f64) = ldexp;
  at(Op::v_div_fmas_f64).kernel = &div_fmas_kernel;
  at(Op::v_div_fixup_f64) = exact64<3>([](D quotient, D denominator, D numerator) {
    const L sign = (l(denominator) ^ l(numerator)) & 0x8000000000000000ull;
    const D mn = abs(numerator), md = abs(denominator);
    const J n_zero = mn == 0.0, d_zero = md == 0.0, n_inf = mn == __builtin_inf(),
            d_inf = md == __builtin_inf();
    L r =
        select(J(quotient != quotient), splat64(0x7ff0000000000000ull), l(quotient) & 0x7fffffffffffffffull) |
        sign;
    const J far_below = (biased_exponent(numerator) - biased_exponent(denominator)) < -1075;
    r = select(far_below, sign, r);
    r = select(d_inf | n_zero, sign, r);
    r = select(d_zero | n_inf, sign | 0x7ff0000000000000ull, r);
    r = select((d_zero & n_zero) | (d_inf & n_inf), splat64(default_nan64), r);
    r = select(J(denominator != denominator), quieted(denominator), r);
    r = select(J(numerator != numerator), quieted(numerator), r);
    return d(r);
  });
  at(Op::v_trig_preop_f64).kernel = &trig_preop;
  at(Op::v_trig_preop_f64).result = Result::f64;
}

}  // namespace attest::device::sim::ATTEST_SIMD_NAMESPACE
