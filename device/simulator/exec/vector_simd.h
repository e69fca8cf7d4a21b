// SPDX-License-Identifier: MIT
//
// Vectors of lanes, compiled once per SIMD level.
//
// A register is 64 lanes of 32 bits, so the natural unit is 64 bytes: 16 lanes of 32 bits or 8 of 64. The
// types below are GNU vector extensions of that size; the compiler splits them into four SSE2, two AVX2 or
// one AVX-512 register. Everything an operation needs beyond + - * / & | ^ << >> and comparisons (which give
// all-ones or zero lanes) is here.
//
// Same bits at every level. Additions, multiplications, divisions, square roots and fused multiply-adds are
// correctly rounded whoever executes them; nothing here uses an approximate instruction; contraction is off
// for the whole project. Two things differ between instruction sets and are handled: the fused multiply-add
// (emulated without FMA, see fma below) and which NaN an operation returns (see propagate).
//
// All of it lives in a namespace named after the level: an inline function compiled for AVX-512 must never be
// the one the linker keeps for the baseline. For the same reason these files call no inline function of the
// standard library.
#pragma once

#include <cstdint>

#include "device/simulator/core/wave.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include <immintrin.h>
#define ATTEST_SIMD_NAMESPACE simd_avx512
#define ATTEST_SIMD_AVX512 1
#define ATTEST_SIMD_FMA 1
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define ATTEST_SIMD_NAMESPACE simd_avx2
#define ATTEST_SIMD_AVX2 1
#define ATTEST_SIMD_FMA 1
#else
#include <emmintrin.h>
#define ATTEST_SIMD_NAMESPACE simd_baseline
#endif

#define ATTEST_INLINE inline __attribute__((always_inline))

namespace attest::device::sim::ATTEST_SIMD_NAMESPACE {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

using U = u32 __attribute__((vector_size(64)));  // 16 lanes
using I = i32 __attribute__((vector_size(64)));
using F = float __attribute__((vector_size(64)));
using U8 = u32 __attribute__((vector_size(32)));  // 8 lanes
using I8 = i32 __attribute__((vector_size(32)));
using F8 = float __attribute__((vector_size(32)));
using L = u64 __attribute__((vector_size(64)));  // 8 lanes of 64 bits
using J = i64 __attribute__((vector_size(64)));
using D = double __attribute__((vector_size(64)));

template <class To, class From>
ATTEST_INLINE To bits(const From& from) {
  return __builtin_bit_cast(To, from);
}
ATTEST_INLINE F f(const U& x) {
  return bits<F>(x);
}
ATTEST_INLINE F f(const I& x) {
  return bits<F>(x);
}
ATTEST_INLINE U u(const F& x) {
  return bits<U>(x);
}
ATTEST_INLINE U u(const I& x) {
  return bits<U>(x);
}
ATTEST_INLINE I i(const U& x) {
  return bits<I>(x);
}
ATTEST_INLINE D d(const L& x) {
  return bits<D>(x);
}
ATTEST_INLINE L l(const D& x) {
  return bits<L>(x);
}
ATTEST_INLINE L l(const J& x) {
  return bits<L>(x);
}
ATTEST_INLINE J j(const L& x) {
  return bits<J>(x);
}

ATTEST_INLINE U splat(u32 x) {
  return x - U{};
}
ATTEST_INLINE L splat64(u64 x) {
  return x - L{};
}
ATTEST_INLINE U8 splat8(u32 x) {
  return x - U8{};
}
ATTEST_INLINE F splatf(float x) {
  const u32 b = bits<u32>(x);
  return f(splat(b));
}
ATTEST_INLINE D splatd(double x) {
  return d(splat64(bits<u64>(x)));
}

// mask lanes are 0 or ~0
ATTEST_INLINE U select(const I& mask, const U& yes, const U& no) {
  return mask ? yes : no;
}
ATTEST_INLINE I select(const I& mask, const I& yes, const I& no) {
  return mask ? yes : no;
}
ATTEST_INLINE F select(const I& mask, const F& yes, const F& no) {
  return mask ? yes : no;
}
ATTEST_INLINE L select(const J& mask, const L& yes, const L& no) {
  return mask ? yes : no;
}
ATTEST_INLINE J select(const J& mask, const J& yes, const J& no) {
  return mask ? yes : no;
}
ATTEST_INLINE D select(const J& mask, const D& yes, const D& no) {
  return mask ? yes : no;
}
ATTEST_INLINE U8 select(const I8& mask, const U8& yes, const U8& no) {
  return mask ? yes : no;
}

ATTEST_INLINE U load(const u32* p) {
  return *static_cast<const U*>(__builtin_assume_aligned(p, 64));
}
ATTEST_INLINE void store(u32* p, const U& x) {
  *static_cast<U*>(__builtin_assume_aligned(p, 64)) = x;
}
ATTEST_INLINE U8 load8(const u32* p) {
  return *static_cast<const U8*>(__builtin_assume_aligned(p, 32));
}
ATTEST_INLINE void store8(u32* p, const U8& x) {
  *static_cast<U8*>(__builtin_assume_aligned(p, 32)) = x;
}

// A 64-bit value occupies the same lane of two consecutive registers, 64 dwords apart.
ATTEST_INLINE L widen(const U8& x) {
  return __builtin_convertvector(x, L);
}
ATTEST_INLINE L load64(const u32* p) {
  return widen(load8(p)) | (widen(load8(p + lanes)) << 32);
}
ATTEST_INLINE U8 low32(const L& x) {
  return __builtin_convertvector(x, U8);
}
ATTEST_INLINE U8 high32(const L& x) {
  return __builtin_convertvector(x >> 32, U8);
}
ATTEST_INLINE void store64(u32* p, const L& x) {
  store8(p, low32(x));
  store8(p + lanes, high32(x));
}

ATTEST_INLINE U8 lower(const U& x) {
  return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
}
ATTEST_INLINE U8 upper(const U& x) {
  return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
}
ATTEST_INLINE F8 lower(const F& x) {
  return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
}
ATTEST_INLINE F8 upper(const F& x) {
  return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
}
ATTEST_INLINE U join(const U8& a, const U8& b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
ATTEST_INLINE F join(const F8& a, const F8& b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
ATTEST_INLINE D to_double(const F8& x) {
  return __builtin_convertvector(x, D);
}
ATTEST_INLINE F8 to_float(const D& x) {
  return __builtin_convertvector(x, F8);
}

/// Lane k of the 16 or 8: its bit of a mask word, as a full lane.
ATTEST_INLINE I lane_mask(u32 mask16) {
#ifdef ATTEST_SIMD_AVX512
  return bits<I>(_mm512_movm_epi32(static_cast<__mmask16>(mask16)));
#else
  const U bit = {1u << 0, 1u << 1, 1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
                 1u << 8, 1u << 9, 1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15};
  return (splat(mask16) & bit) != 0;
#endif
}
ATTEST_INLINE J lane_mask64(u32 mask8) {
#ifdef ATTEST_SIMD_AVX512
  return bits<J>(_mm512_movm_epi64(static_cast<__mmask8>(mask8)));
#else
  const L bit = {1u << 0, 1u << 1, 1u << 2, 1u << 3, 1u << 4, 1u << 5, 1u << 6, 1u << 7};
  return (splat64(mask8) & bit) != 0;
#endif
}
ATTEST_INLINE I8 lane_mask8(u32 mask8) {
  const U8 bit = {1u << 0, 1u << 1, 1u << 2, 1u << 3, 1u << 4, 1u << 5, 1u << 6, 1u << 7};
  return (splat8(mask8) & bit) != 0;
}

#ifndef ATTEST_SIMD_AVX512
#ifdef ATTEST_SIMD_AVX2
struct Halves {
  __m256i part[2];
};
#else
struct Quarters {
  __m128i part[4];
};
#endif
#endif

/// The other way round: bit k is set where lane k is negative (masks: all ones).
ATTEST_INLINE u32 mask_bits32(const I& x) {
#if defined(ATTEST_SIMD_AVX512)
  return static_cast<u32>(_mm512_movepi32_mask(bits<__m512i>(x)));
#elif defined(ATTEST_SIMD_AVX2)
  const auto h = bits<Halves>(x);
  return static_cast<u32>(_mm256_movemask_ps(_mm256_castsi256_ps(h.part[0]))) |
         static_cast<u32>(_mm256_movemask_ps(_mm256_castsi256_ps(h.part[1]))) << 8;
#else
  const auto q = bits<Quarters>(x);
  return static_cast<u32>(_mm_movemask_epi8(
      _mm_packs_epi16(_mm_packs_epi32(q.part[0], q.part[1]), _mm_packs_epi32(q.part[2], q.part[3]))));
#endif
}
ATTEST_INLINE u32 mask_bits64(const J& x) {
#if defined(ATTEST_SIMD_AVX512)
  return static_cast<u32>(_mm512_movepi64_mask(bits<__m512i>(x)));
#elif defined(ATTEST_SIMD_AVX2)
  const auto h = bits<Halves>(x);
  return static_cast<u32>(_mm256_movemask_pd(_mm256_castsi256_pd(h.part[0]))) |
         static_cast<u32>(_mm256_movemask_pd(_mm256_castsi256_pd(h.part[1]))) << 4;
#else
  const auto q = bits<Quarters>(x);
  u32 mask = 0;
  for (int k = 0; k < 4; ++k)
    mask |= static_cast<u32>(_mm_movemask_pd(_mm_castsi128_pd(q.part[k]))) << (2 * k);
  return mask;
#endif
}
template <class M>
ATTEST_INLINE u32 mask_bits(const M& x) {  // compilers disagree whether a 64-bit mask is long or long long
  if constexpr (sizeof(x[0]) == 4)
    return mask_bits32(bits<I>(x));
  else
    return mask_bits64(bits<J>(x));
}
template <class M>
ATTEST_INLINE bool any(const M& mask) {
  return mask_bits(mask) != 0;
}

ATTEST_INLINE D sqrt(const D& x) {
#if defined(ATTEST_SIMD_AVX512)
  return bits<D>(_mm512_sqrt_pd(bits<__m512d>(x)));
#elif defined(ATTEST_SIMD_AVX2)
  struct Parts {
    __m256d part[2];
  } p = bits<Parts>(x);
  for (auto& part : p.part) part = _mm256_sqrt_pd(part);
  return bits<D>(p);
#else
  struct Parts {
    __m128d part[4];
  } p = bits<Parts>(x);
  for (auto& part : p.part) part = _mm_sqrt_pd(part);
  return bits<D>(p);
#endif
}

ATTEST_INLINE D abs(const D& x) {
  return d(l(x) & 0x7fffffffffffffffull);
}
ATTEST_INLINE F abs(const F& x) {
  return f(u(x) & 0x7fffffffu);
}
ATTEST_INLINE D copysign(const D& magnitude, const D& sign) {
  return d((l(magnitude) & 0x7fffffffffffffffull) | (l(sign) & 0x8000000000000000ull));
}
ATTEST_INLINE F copysign(const F& magnitude, const F& sign) {
  return f((u(magnitude) & 0x7fffffffu) | (u(sign) & 0x80000000u));
}

// To integral values. Only SSE2 lacks the instruction; there, beyond 2^23 (2^52) every number is integral
// already, and below adding and subtracting that makes it so. (Written that way for AVX-512, clang 19 also
// gets it wrong: it swaps the operands of a masked vpternlogd.)
enum Direction { to_nearest, to_minus, to_plus, to_zero };  // as the instructions encode them
#if defined(ATTEST_SIMD_AVX512)
template <int how>
ATTEST_INLINE F to_integral(const F& x) {
  return bits<F>(_mm512_roundscale_ps(bits<__m512>(x), how | _MM_FROUND_NO_EXC));
}
template <int how>
ATTEST_INLINE D to_integral(const D& x) {
  return bits<D>(_mm512_roundscale_pd(bits<__m512d>(x), how | _MM_FROUND_NO_EXC));
}
#elif defined(ATTEST_SIMD_AVX2)
template <int how>
ATTEST_INLINE F to_integral(const F& x) {
  struct Parts {
    __m256 part[2];
  } p = bits<Parts>(x);
  for (auto& part : p.part) part = _mm256_round_ps(part, how | _MM_FROUND_NO_EXC);
  return bits<F>(p);
}
template <int how>
ATTEST_INLINE D to_integral(const D& x) {
  struct Parts {
    __m256d part[2];
  } p = bits<Parts>(x);
  for (auto& part : p.part) part = _mm256_round_pd(part, how | _MM_FROUND_NO_EXC);
  return bits<D>(p);
}
#else
ATTEST_INLINE F nearest(const F& x) {
  const F big = splatf(8388608.0f);
  const F magnitude = abs(x);
  return select(magnitude < big, copysign((magnitude + big) - big, x), x);
}
ATTEST_INLINE D nearest(const D& x) {
  const D big = splatd(4503599627370496.0);
  const D magnitude = abs(x);
  return select(magnitude < big, copysign((magnitude + big) - big, x), x);
}
template <int how, class V>
ATTEST_INLINE V to_integral(const V& x) {
  const V r = nearest(x), one = V{} + 1;
  if constexpr (how == to_nearest)
    return r;
  else if constexpr (how == to_zero)
    return copysign(select(abs(r) > abs(x), abs(r) - one, abs(r)), x);
  else if constexpr (how == to_minus)
    return copysign(select(r > x, r - one, r), x);
  else
    return copysign(select(r < x, r + one, r), x);
}
#endif
template <class V>
ATTEST_INLINE V rint(const V& x) {
  return to_integral<to_nearest>(x);
}
template <class V>
ATTEST_INLINE V trunc(const V& x) {
  return to_integral<to_zero>(x);
}
template <class V>
ATTEST_INLINE V floor(const V& x) {
  return to_integral<to_minus>(x);
}
template <class V>
ATTEST_INLINE V ceil(const V& x) {
  return to_integral<to_plus>(x);
}

// a * b + c with one rounding.
//
// Without FMA: the product of two floats is exact in double, so only the sum rounds, once to 53 bits and
// again to 24. Rounding the first time to odd makes the second one right (Boldo and Melquiond, "Emulation of
// FMA and correctly rounded sums", IEEE TC 57(4), 2008): if the sum was inexact and its last bit is even,
// take the neighbour towards the lost part. TwoSum gives that part, exactly for round-to-nearest and with the
// right sign for every other mode.
ATTEST_INLINE D add_to_odd(const D& a, const D& b) {
  const D sum = a + b;
  const D virtual_b = sum - a;
  const D lost = (a - (sum - virtual_b)) + (b - virtual_b);
  const J odd = (j(l(sum)) & 1) != 0;
  const J exact = ~(lost != 0.0) | (abs(sum) == __builtin_inf());
  const J towards_zero = (j(l(lost)) ^ j(l(sum))) < 0;
  const L adjusted = l(sum) + select(towards_zero, splat64(~0ull), splat64(1));
  return d(select(exact | odd, l(sum), adjusted));
}
#ifndef ATTEST_SIMD_FMA
ATTEST_INLINE F8 fma_half(const F8& a, const F8& b, const F8& c) {
  return to_float(add_to_odd(to_double(a) * to_double(b), to_double(c)));
}
#endif
ATTEST_INLINE F fma(const F& a, const F& b, const F& c) {
#if defined(ATTEST_SIMD_AVX512)
  return bits<F>(_mm512_fmadd_ps(bits<__m512>(a), bits<__m512>(b), bits<__m512>(c)));
#elif defined(ATTEST_SIMD_AVX2)
  struct Parts {
    __m256 part[2];
  };
  const auto pa = bits<Parts>(a), pb = bits<Parts>(b), pc = bits<Parts>(c);
  Parts r;
  for (int k = 0; k < 2; ++k) r.part[k] = _mm256_fmadd_ps(pa.part[k], pb.part[k], pc.part[k]);
  return bits<F>(r);
#else
  return join(fma_half(lower(a), lower(b), lower(c)), fma_half(upper(a), upper(b), upper(c)));
#endif
}
ATTEST_INLINE D fma(const D& a, const D& b, const D& c) {
#if defined(ATTEST_SIMD_AVX512)
  return bits<D>(_mm512_fmadd_pd(bits<__m512d>(a), bits<__m512d>(b), bits<__m512d>(c)));
#elif defined(ATTEST_SIMD_AVX2)
  struct Parts {
    __m256d part[2];
  };
  const auto pa = bits<Parts>(a), pb = bits<Parts>(b), pc = bits<Parts>(c);
  Parts r;
  for (int k = 0; k < 2; ++k) r.part[k] = _mm256_fmadd_pd(pa.part[k], pb.part[k], pc.part[k]);
  return bits<D>(r);
#else
  D r{};
  for (int k = 0; k < 8; ++k) r[k] = __builtin_fma(a[k], b[k], c[k]);
  return r;
#endif
}

// Integers to floating point, rounding as the machine is told to. Compilers convert unsigned numbers for AVX2
// and SSE2 with magic constants, which turns 0 into -0 when rounding down; written out it can be mended (and
// 32 bits are exact in double).
ATTEST_INLINE D to_double(const I8& x) {
  return __builtin_convertvector(x, D);
}
ATTEST_INLINE D to_double(const U8& x) {
  const D shifted = d(widen(x) | 0x4330000000000000ull);  // 2^52 + x
  return abs(shifted - splatd(0x1p52));
}
ATTEST_INLINE F to_float(const I& x) {
  return __builtin_convertvector(x, F);
}
ATTEST_INLINE F to_float(const U& x) {
#ifdef ATTEST_SIMD_AVX512
  return __builtin_convertvector(x, F);
#else
  return join(to_float(to_double(lower(x))), to_float(to_double(upper(x))));
#endif
}

// Floating point to integers, towards zero, saturating, NaN to 0.
ATTEST_INLINE I to_i32(const F& x) {
  const F limit = splatf(2147483648.0f);
  const I fits = (x >= -limit) & (x < limit);
  const I converted = __builtin_convertvector(select(fits, x, F{}), I);
  return select(x >= limit, I{} + 0x7fffffff, select(x < -limit, I{} + (-0x7fffffff - 1), converted));
}
ATTEST_INLINE U to_u32(const F& x) {
  const F half = splatf(2147483648.0f);
  const I small = (x > 0.0f) & (x < half), large = (x >= half) & (x < 2 * half);
  const F reduced = select(large, x - half, select(small, x, F{}));
  const U converted = u(__builtin_convertvector(reduced, I)) + (u(large) & 0x80000000u);
  return select(x >= 2 * half, splat(~0u), converted);
}

/// An operation's NaN: the first source that is one, quieted unless IEEE mode is off (LLVM issue 139622: with
/// it off no instruction quiets), or the default NaN, whose sign is the one v_div_fixup_f32 documents for
/// 0/0.
inline constexpr u32 default_nan = 0xffc00000u;
inline constexpr u64 default_nan64 = 0xfff8000000000000ull;

ATTEST_INLINE F propagate(const F& result, u32 mode_bits, const F& a, const F& b, const F& c) {
  const I broken = result != result;
  if (!any(broken)) [[likely]]
    return result;
  const U quiet = splat((mode_bits & mode::ieee) != 0 ? 0x00400000u : 0u);
  U nan = splat(default_nan);
  nan = select(c != c, u(c) | quiet, nan);
  nan = select(b != b, u(b) | quiet, nan);
  nan = select(a != a, u(a) | quiet, nan);
  return f(select(broken, nan, u(result)));
}
ATTEST_INLINE D propagate(const D& result, u32 mode_bits, const D& a, const D& b, const D& c) {
  const J broken = result != result;
  if (!any(broken)) [[likely]]
    return result;
  const L quiet = splat64((mode_bits & mode::ieee) != 0 ? 0x0008000000000000ull : 0ull);
  L nan = splat64(default_nan64);
  nan = select(c != c, l(c) | quiet, nan);
  nan = select(b != b, l(b) | quiet, nan);
  nan = select(a != a, l(a) | quiet, nan);
  return d(select(broken, nan, l(result)));
}

/// Denormals to zero, keeping the sign.
ATTEST_INLINE F flush(const F& x) {
  return f(select((i(u(x)) & 0x7f800000) == 0, u(x) & 0x80000000u, u(x)));
}
ATTEST_INLINE D flush(const D& x) {
  return d(select((j(l(x)) & 0x7ff0000000000000ll) == 0, l(x) & 0x8000000000000000ull, l(x)));
}

}  // namespace attest::device::sim::ATTEST_SIMD_NAMESPACE
