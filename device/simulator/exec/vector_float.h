// SPDX-License-Identifier: MIT
//
// Floating-point pieces that several operation files share.
#pragma once

#include "device/simulator/exec/vector_kernels.h"

namespace attest::device::sim::ATTEST_SIMD_NAMESPACE {

// min and max drop a NaN (the other source wins), order -0 below +0, and in IEEE mode return a signalling NaN
// quieted.
ATTEST_INLINE I signalling(const F& x) {
  return (x != x) & ((u(x) & 0x00400000u) == 0);
}
ATTEST_INLINE F drop_nan(const Context& context, const F& ordered, const F& a, const F& b) {
  const I nan_a = a != a, nan_b = b != b;
  if (!any(nan_a | nan_b)) [[likely]]
    return ordered;
  U r = select(nan_b, u(a), u(ordered));
  r = select(nan_a, u(b), r);
  if ((context.mode & mode::ieee) != 0) {
    r = select(signalling(b), u(b) | 0x00400000u, r);
    r = select(signalling(a), u(a) | 0x00400000u, r);
  }
  return f(r);
}
ATTEST_INLINE F minimum(const Context& context, const F& a, const F& b) {
  const F ordered = select(a < b, a, b);
  return drop_nan(context, select(a == b, f(u(a) | u(b)), ordered), a, b);
}
ATTEST_INLINE F maximum(const Context& context, const F& a, const F& b) {
  const F ordered = select(a > b, a, b);
  return drop_nan(context, select(a == b, f(u(a) & u(b)), ordered), a, b);
}
ATTEST_INLINE F median(const Context& x, const F& a, const F& b, const F& c) {
  const F largest = maximum(x, maximum(x, a, b), c);
  const F r =
      select(largest == a, maximum(x, b, c), select(largest == b, maximum(x, a, c), maximum(x, a, b)));
  const I nan = (a != a) | (b != b) | (c != c);
  if (!any(nan)) [[likely]]
    return r;
  return select(nan, minimum(x, minimum(x, a, b), c), r);
}

ATTEST_INLINE J signalling(const D& x) {
  return (x != x) & ((j(l(x)) & 0x0008000000000000ll) == 0);
}
ATTEST_INLINE D drop_nan(const Context& context, const D& ordered, const D& a, const D& b) {
  D r = select(b != b, a, ordered);
  r = select(a != a, b, r);
  if ((context.mode & mode::ieee) != 0) {
    L out = select(signalling(b), l(b) | 0x0008000000000000ull, l(r));
    r = d(select(signalling(a), l(a) | 0x0008000000000000ull, out));
  }
  return r;
}
ATTEST_INLINE D minimum(const Context& context, const D& a, const D& b) {
  const D ordered = select(a < b, a, b);
  return drop_nan(context, select(a == b, d(l(a) | l(b)), ordered), a, b);
}
ATTEST_INLINE D maximum(const Context& context, const D& a, const D& b) {
  const D ordered = select(a > b, a, b);
  return drop_nan(context, select(a == b, d(l(a) & l(b)), ordered), a, b);
}

/// 2^k as a double, for -1022 <= k <= 1023.
ATTEST_INLINE D power_of_two(const J& k) {
  return d(l((k + 1023) << 52));
}

/// (a * b + c) * 2^+-64 with one rounding: exact product, sum rounded to odd, exact scaling, one rounding to
/// f32.
ATTEST_INLINE F8 scale_fused_half(const F8& a, const F8& b, const F8& c, const F8& factor) {
  return to_float(add_to_odd(to_double(a) * to_double(b), to_double(c)) * to_double(factor));
}
ATTEST_INLINE F scale_fused(const F& a, const F& b, const F& c, const F& factor) {
  return join(scale_fused_half(lower(a), lower(b), lower(c), lower(factor)),
              scale_fused_half(upper(a), upper(b), upper(c), upper(factor)));
}

/// x * 2^k with one rounding: the exponent is limited to where every result is 0 or infinite, then double
/// holds it.
struct Ldexp32 {
  static ATTEST_INLINE F8 half(const F8& x, const U8& exponent) {
    const J wide = __builtin_convertvector(bits<I8>(exponent), J);
    const J k = select(wide > 400, J{} + 400, select(wide < -400, J{} - 400, wide));
    return to_float(to_double(x) * power_of_two(k));
  }
  static ATTEST_INLINE U run(const Context& context, const U& x, const U& exponent) {
    const F r = join(half(lower(f(x)), lower(exponent)), half(upper(f(x)), upper(exponent)));
    return u(propagate(r, context.mode, f(x), F{}, F{}));
  }
};

}  // namespace attest::device::sim::ATTEST_SIMD_NAMESPACE
