// SPDX-License-Identifier: MIT
//
// f16: single, packed, and the mixed-precision multiply-adds. See vector_half.h for why f32 arithmetic is
// enough.
#include "device/simulator/exec/vector_half.h"

namespace attest::device::sim::ATTEST_SIMD_NAMESPACE {
namespace {

template <class Fn>
struct Half16 {
  template <class... X>
  static ATTEST_INLINE U run(const Context& context, const X&... x) {
    return half_result(call<Fn>(context, half_to_float(x & 0xffffu)...), context.mode, x...);
  }
};
template <class Fn>
struct PackedHalf {
  template <class... X>
  static ATTEST_INLINE U run(const Context& context, const X&... x) {
    return Half16<Fn>::run(context, x...) | (Half16<Fn>::run(context, (x >> 16)...) << 16);
  }
};
/// Functions of halves without rounding or NaN rule: min and max, on f32 images, which order the same.
template <class Fn>
struct ExactHalf {
  template <class... X>
  static ATTEST_INLINE U run(const Context& context, const X&... x) {
    // Signalling NaNs keep being so in the image, so the f32 rule does what the f16 one says.
    return float_to_half(call<Fn>(context, half_to_float(x & 0xffffu)...));
  }
};
template <class Fn>
struct PackedExactHalf {
  template <class... X>
  static ATTEST_INLINE U run(const Context& context, const X&... x) {
    return ExactHalf<Fn>::run(context, x...) | (ExactHalf<Fn>::run(context, (x >> 16)...) << 16);
  }
};

Entry entry16(Kernel kernel, Result result, bool rounds) {
  Entry e;
  e.kernel = kernel;
  e.result = result;
  e.flushes = true;
  e.rounds = rounds;
  e.mode_mask = rounds ? denorm64 | round64 : denorm64;
  e.mode_keep = denorm64;
  return e;
}
template <int sources, class Fn>
Entry float16(Fn) {
  return entry16(&kernel32<Half16<Fn>, sources>, Result::f16, true);
}
template <int sources, class Fn>
Entry packed_float16(Fn) {
  return entry16(&kernel32<PackedHalf<Fn>, sources>, Result::v2f16, true);
}
template <int sources, class Fn>
Entry exact16(Fn) {
  return entry16(&kernel32<ExactHalf<Fn>, sources>, Result::f16, false);
}
template <int sources, class Fn>
Entry packed_exact16(Fn) {
  return entry16(&kernel32<PackedExactHalf<Fn>, sources>, Result::v2f16, false);
}
/// To an integral value, and what hangs on it: to nearest whatever MODE says.
template <class Fn>
struct IntegralHalf {
  static ATTEST_INLINE U run(const Context& context, const U& x) {
    return half_result(Fn{}(half_to_float(x & 0xffffu)), context.mode & ~round64, x);
  }
};
template <class Fn>
Entry integral16(Fn) {
  return entry16(&kernel32<IntegralHalf<Fn>, 1>, Result::f16, false);
}

ATTEST_INLINE F half_ldexp(const F& x, const U& exponent) {
  const I wide = i(exponent << 16) >> 16;
  const I k = select(wide > 60, I{} + 60, select(wide < -60, I{} - 60, wide));
  return x * f(u(k + 127) << 23);
}
ATTEST_INLINE U fixup(const U& quotient, const U& denominator, const U& numerator) {
  const U q = quotient & 0xffffu, d16 = denominator & 0xffffu, n16 = numerator & 0xffffu;
  const U sign = (d16 ^ n16) & 0x8000u, md = d16 & 0x7fffu, mn = n16 & 0x7fffu;
  const I n_zero = mn == 0, d_zero = md == 0, n_inf = mn == 0x7c00u, d_inf = md == 0x7c00u;
  U r = (q & 0x7fffu) | sign;
  r = select(d_inf | n_zero, sign, r);
  r = select(d_zero | n_inf, sign | 0x7c00u, r);
  r = select((d_zero & n_zero) | (d_inf & n_inf), splat(0xfe00), r);
  r = select(is_half_nan(d16), d16 | 0x200u, r);
  return select(is_half_nan(n16), n16 | 0x200u, r);
}
struct Fixup {
  static ATTEST_INLINE U run(const Context&, const U& a, const U& b, const U& c) { return fixup(a, b, c); }
};

// v_fma_mix*: sources are f32 by now; one rounding to f32 or to f16.
struct MixToHalf {
  static ATTEST_INLINE U run(const Context& context, const U& a, const U& b, const U& c) {
    const auto part = [](const F8& x, const F8& y, const F8& z) {
      return odd_float(add_to_odd(to_double(x) * to_double(y), to_double(z)));
    };
    const F r =
        join(part(lower(f(a)), lower(f(b)), lower(f(c))), part(upper(f(a)), upper(f(b)), upper(f(c))));
    const F known = propagate(r, context.mode, f(a), f(b), f(c));
    return limit_overflow(to_half(known, context.mode), known, context.mode);
  }
};

/// v_dot2: two exact products added to an f32, in order; f32 denormals are zero whatever MODE says.
struct Dot2 {
  static ATTEST_INLINE U run(const Context& context, const U& a, const U& b, const U& c) {
    const F a0 = half_to_float(a & 0xffffu), b0 = half_to_float(b & 0xffffu);
    const F a1 = half_to_float(a >> 16), b1 = half_to_float(b >> 16), addend = flush(f(c));
    const F first = propagate(fma(a0, b0, addend), context.mode, a0, b0, addend);
    return u(flush(propagate(fma(a1, b1, flush(first)), context.mode, a1, b1, first)));
  }
};

}  // namespace

void register_float16(Table& table) {
  const auto at = [&](Op op) -> Entry& { return table[op]; };
  const auto add = [](F a, F b) { return a + b; };
  const auto mul = [](F a, F b) { return a * b; };
  const auto fused = [](F a, F b, F c) { return half_fma(a, b, c); };
  // mad rounds the product first
  const auto mad = [](const Context& x, F a, F b, F c) {
    const F product = a * b;
    return half_to_float(limit_overflow(to_half(product, x.mode), product, x.mode)) + c;
  };
  const auto min_of = [](const Context& c, F a, F b) { return minimum(c, a, b); };
  const auto max_of = [](const Context& c, F a, F b) { return maximum(c, a, b); };
  at(Op::v_add_f16) = float16<2>(add);
  at(Op::v_sub_f16) = float16<2>([](F a, F b) { return a - b; });
  at(Op::v_subrev_f16) = float16<2>([](F a, F b) { return b - a; });
  at(Op::v_mul_f16) = float16<2>(mul);
  at(Op::v_fma_legacy_f16) = float16<3>(fused);
  at(Op::v_fma_f16) = keeping_half(float16<3>(fused));
  at(Op::v_mad_legacy_f16) = float16<3>(mad);
  at(Op::v_mad_f16) = keeping_half(float16<3>(mad));
  at(Op::v_mac_f16) = keeping_half(float16<3>(mad));
  at(Op::v_madmk_f16) = keeping_half(float16<3>(mad));
  at(Op::v_madak_f16) = keeping_half(float16<3>(mad));
  at(Op::v_min_f16) = exact16<2>(min_of);
  at(Op::v_max_f16) = exact16<2>(max_of);
  at(Op::v_min3_f16) = keeping_half(
      exact16<3>([](const Context& x, F a, F b, F c) { return minimum(x, minimum(x, a, b), c); }));
  at(Op::v_max3_f16) = keeping_half(
      exact16<3>([](const Context& x, F a, F b, F c) { return maximum(x, maximum(x, a, b), c); }));
  at(Op::v_med3_f16) =
      keeping_half(exact16<3>([](const Context& x, F a, F b, F c) { return median(x, a, b, c); }));
  at(Op::v_trunc_f16) = integral16([](F a) { return trunc(a); });
  at(Op::v_ceil_f16) = integral16([](F a) { return ceil(a); });
  at(Op::v_floor_f16) = integral16([](F a) { return floor(a); });
  at(Op::v_rndne_f16) = integral16([](F a) { return rint(a); });
  at(Op::v_fract_f16) = integral16([](F a) {
    const F r = a - floor(a), limit = splatf(0x1.ffcp-1f);
    return select(r > limit, limit, r);
  });
  at(Op::v_frexp_mant_f16) = integral16([](F a) {
    const U mantissa = (u(a) & 0x807fffffu) | 0x3f000000u;
    return select(~(abs(a) < __builtin_inff()) | (a == 0.0f), a, f(mantissa));
  });
  struct FrexpExponent {
    static ATTEST_INLINE U run(const Context&, const U& x) {
      const F a = half_to_float(x & 0xffffu);
      const I exponent = i((u(a) >> 23) & 0xffu) - 126;
      return u(select(~(abs(a) < __builtin_inff()) | (a == 0.0f), I{}, exponent)) & 0xffffu;
    }
  };
  at(Op::v_frexp_exp_i16_f16) = entry16(&kernel32<FrexpExponent, 1>, Result::b16, false);
  struct Ldexp {
    static ATTEST_INLINE U run(const Context& context, const U& x, const U& exponent) {
      return half_result(half_ldexp(half_to_float(x & 0xffffu), exponent), context.mode, x);
    }
  };
  at(Op::v_ldexp_f16) = entry16(&kernel32<Ldexp, 2>, Result::f16, true);
  at(Op::v_div_fixup_legacy_f16) = entry16(&kernel32<Fixup, 3>, Result::f16, false);
  at(Op::v_div_fixup_f16) = keeping_half(at(Op::v_div_fixup_legacy_f16));

  at(Op::v_pk_add_f16) = packed_float16<2>(add);
  at(Op::v_pk_mul_f16) = packed_float16<2>(mul);
  at(Op::v_pk_fma_f16) = packed_float16<3>(fused);
  at(Op::v_pk_fmac_f16) = packed_float16<3>(fused);
  at(Op::v_pk_min_f16) = packed_exact16<2>(min_of);
  at(Op::v_pk_max_f16) = packed_exact16<2>(max_of);

  Entry& mix = at(Op::v_fma_mix_f32);
  mix = float32<3>([](F a, F b, F c) { return fma(a, b, c); });
  mix.mixes = true;
  mix.simple = false;
  Entry& low = at(Op::v_fma_mixlo_f16);
  low = entry16(&kernel32<MixToHalf, 3>, Result::f16, true);
  low.mixes = true;
  low.simple = false;
  at(Op::v_fma_mixhi_f16) = low;
  at(Op::v_fma_mixhi_f16).high_half = true;

  at(Op::v_dot2_f32_f16).kernel = &kernel32<Dot2, 3>;
  at(Op::v_dot2_f32_f16).result = Result::f32;
  at(Op::v_dot2c_f32_f16) = at(Op::v_dot2_f32_f16);
  at(Op::v_pack_b32_f16) = indirect(integer<2>([](U a, U b) { return (a & 0xffffu) | (b << 16); }));
  at(Op::v_pack_b32_f16).flushes = true;
  at(Op::v_pack_b32_f16).mode_mask = at(Op::v_pack_b32_f16).mode_keep = denorm64;
}

}  // namespace attest::device::sim::ATTEST_SIMD_NAMESPACE
