// SPDX-License-Identifier: MIT
//
// 2^x, log2, 1/x, 1/sqrt, sqrt, sin and cos of f32 and f16.
//
// The hardware's tables are not public; what is known is the accuracy class, 1 ulp, and that the f32 forms
// treat denormal inputs and results as zero whatever MODE says: clang brackets each of them with scaling when
// denormals are on (LLVM, AMDGPULegalizerInfo: legalizeFExp2, legalizeFLog2, legalizeFSQRT). So: evaluate in
// double with an error far below 2^-24, round once to f32. The result is the correctly rounded one but for
// about one input in 2^12 (series cut at 2^-40), and the same on every machine: no library function, no
// contraction.
//
// The f64 forms have a documented error of up to 2^29 ulp (LLVM expands 1/x around v_rcp_f64 with two Newton
// steps, which square that). To give a kernel that forgets the refinement away, the result here is not better
// than f32.
#include "device/simulator/exec/vector_float.h"
#include "device/simulator/exec/vector_half.h"

namespace attest::device::sim::ATTEST_SIMD_NAMESPACE {
namespace {

/// c[0] + x (c[1] + x (c[2] + ...))
template <int n>
ATTEST_INLINE D polynomial(const D& x, const double (&c)[n]) {
  D r = splatd(c[n - 1]);
  for (int k = n - 2; k >= 0; --k) r = r * x + splatd(c[k]);
  return r;
}

/// 2^x for |x| <= 1100: 2^n from the exponent, 2^f by its Taylor series, |f| <= 1/2 (next term 2^-42).
ATTEST_INLINE D exp2_of(const D& x) {
  static constexpr double c[11] = {1.0,
                                   0.693147180559945286,
                                   0.240226506959100722,
                                   0.0555041086648215831,
                                   0.00961812910762847688,
                                   0.00133335581464284433,
                                   0.000154035303933816088,
                                   1.52527338040598411e-05,
                                   1.32154867901443095e-06,
                                   1.01780860092396999e-07,
                                   7.05491162080112332e-09};
  const D whole = rint(x);
  const J n = __builtin_convertvector(whole, J);
  return polynomial(x - whole, c) * power_of_two(n);
}

/// log2 of a positive normal double: exponent plus log2 of m in [sqrt(1/2), sqrt(2)) by the series of
/// 2 atanh((m - 1) / (m + 1)) / ln 2 (next term 2^-50).
ATTEST_INLINE D log2_of(const D& x) {
  static constexpr double c[9] = {2.88539008177792677,  0.961796693925975554, 0.57707801635558531,
                                  0.412198583111132388, 0.320598897975325203, 0.262308189252538793,
                                  0.221953083213686675, 0.192359338785195122, 0.169728828339878041};
  const L b = l(x);
  // Adding 1 - sqrt(1/2) in units of the exponent moves the cut from 1 to sqrt(1/2).
  const L moved = b + (0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull);
  const J e = j(moved >> 52) - 1023;
  const D m = d((moved & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
  const D s = (m - splatd(1.0)) / (m + splatd(1.0));
  return __builtin_convertvector(e, D) + s * polynomial(s * s, c);
}

/// sin(2 pi r) for |r| <= 1/4 by its Taylor series in 2 pi r (next term 2^-44).
ATTEST_INLINE D sin_of(const D& r) {
  static constexpr double c[9] = {1.0,
                                  -0.166666666666666657,
                                  0.00833333333333333322,
                                  -0.000198412698412698413,
                                  2.75573192239858925e-06,
                                  -2.50521083854417202e-08,
                                  1.60590438368216133e-10,
                                  -7.64716373181981641e-13,
                                  2.8114572543455206e-15};
  const D t = r * splatd(6.283185307179586232);
  return t * polynomial(t * t, c);
}
/// Revolutions: outside [-256, 256] the instruction gives sin 0 and cos 1.
ATTEST_INLINE D sin_turns(const D& x) {
  D r = x - rint(x);
  r = select(r > 0.25, splatd(0.5) - r, select(r < -0.25, splatd(-0.5) - r, r));
  return select(abs(x) > 256.0, x * D{}, sin_of(r));
}
ATTEST_INLINE D cos_turns(const D& x) {
  const D r = abs(x - rint(x));
  return select(abs(x) > 256.0, splatd(1.0) + x * D{}, sin_of(splatd(0.25) - r));
}

struct Exp2 {
  static ATTEST_INLINE D of(const D& x) {
    const D limited = select(x > 1000.0, splatd(1000.0), select(x < -1000.0, splatd(-1000.0), x));
    return select(x != x, x, exp2_of(select(x != x, D{}, limited)));
  }
};
struct Log2 {
  static ATTEST_INLINE D of(const D& x) {
    const D inf = splatd(__builtin_inf());
    const J usable = (x > 0.0) & (x < inf);
    D r = log2_of(select(usable, x, splatd(1.0)));
    r = select(x == inf, inf, r);
    r = select(x == 0.0, -inf, r);
    return select((x < 0.0) | (x != x), d(splat64(default_nan64)), r);
  }
};
struct Reciprocal {
  static ATTEST_INLINE D of(const D& x) { return splatd(1.0) / x; }
};
struct SquareRoot {
  static ATTEST_INLINE D of(const D& x) { return sqrt(x); }
};
struct ReciprocalRoot {
  static ATTEST_INLINE D of(const D& x) { return splatd(1.0) / sqrt(x); }
};
struct Sine {
  static ATTEST_INLINE D of(const D& x) { return sin_turns(x); }
};
struct Cosine {
  static ATTEST_INLINE D of(const D& x) { return cos_turns(x); }
};

template <class Fn>
struct Single {
  static ATTEST_INLINE U run(const Context& context, const U& raw) {
    const F x = flush(f(raw));
    const F r = join(to_float(Fn::of(to_double(lower(x)))), to_float(Fn::of(to_double(upper(x)))));
    return u(flush(propagate(r, context.mode, x, F{}, F{})));
  }
};
template <class Fn>
Entry single() {
  Entry e = entry_of<&kernel32<Single<Fn>, 1>, nullptr, Shape{}>();
  e.result = Result::f32;
  return e;
}
template <class Fn>
struct HalfPrecision {
  static ATTEST_INLINE U run(const Context& context, const U& raw) {
    const F x = half_to_float(raw & 0xffffu);
    const F r = join(odd_float(Fn::of(to_double(lower(x)))), odd_float(Fn::of(to_double(upper(x)))));
    return half_result(r, context.mode & ~round64, raw);
  }
};
template <class Fn>
Entry half() {
  Entry e;
  e.kernel = &kernel32<HalfPrecision<Fn>, 1>;
  e.result = Result::f16;
  e.flushes = true;
  e.mode_mask = e.mode_keep = denorm64;
  return e;
}

/// The significand rounded to 24 bits, as good as the hardware's table.
ATTEST_INLINE D coarse(const D& x) {
  const L b = l(x), rounded = (b + 0x0fffffffull + ((b >> 29) & 1u)) & ~0x1fffffffull;
  const J normal = (j(b) & 0x7ff0000000000000ll) != 0;
  return d(select(normal & J(abs(x) < __builtin_inf()), rounded, b));
}
template <class Fn>
struct Double {
  static ATTEST_INLINE L run(const Context& context, const L& x) {
    return l(propagate(coarse(Fn::of(d(x))), context.mode, d(x), D{}, D{}));
  }
};
template <class Fn>
Entry rough_double() {
  Entry e;
  e.kernel = &kernel64<Double<Fn>, 1, 1>;
  e.result = Result::f64;
  e.flushes = true;
  e.mode_mask = e.mode_keep = denorm64;
  return e;
}

}  // namespace

void register_transcendental(Table& table) {
  table[Op::v_exp_f32] = single<Exp2>();
  table[Op::v_log_f32] = single<Log2>();
  table[Op::v_rcp_f32] = single<Reciprocal>();
  table[Op::v_rsq_f32] = single<ReciprocalRoot>();
  table[Op::v_sqrt_f32] = single<SquareRoot>();
  table[Op::v_sin_f32] = single<Sine>();
  table[Op::v_cos_f32] = single<Cosine>();
  table[Op::v_rcp_iflag_f32] = table[Op::v_rcp_f32];  // differs in exceptions only
  table[Op::v_exp_legacy_f32] = table[Op::v_exp_f32];
  table[Op::v_log_legacy_f32] = table[Op::v_log_f32];
  table[Op::v_exp_f16] = half<Exp2>();
  table[Op::v_log_f16] = half<Log2>();
  table[Op::v_rcp_f16] = half<Reciprocal>();
  table[Op::v_rsq_f16] = half<ReciprocalRoot>();
  table[Op::v_sqrt_f16] = half<SquareRoot>();
  table[Op::v_sin_f16] = half<Sine>();
  table[Op::v_cos_f16] = half<Cosine>();
  table[Op::v_rcp_f64] = rough_double<Reciprocal>();
  table[Op::v_rsq_f64] = rough_double<ReciprocalRoot>();
  table[Op::v_sqrt_f64] = rough_double<SquareRoot>();
}

}  // namespace attest::device::sim::ATTEST_SIMD_NAMESPACE
