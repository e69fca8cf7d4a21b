// SPDX-License-Identifier: MIT
//
// Conversions. Integers from floating point saturate, NaN becomes 0. The 8-bit formats of gfx942 are the FNUZ
// ones: no infinity, no -0, 0x80 is NaN (Micikevicius et al. define the OCP ones; FNUZ:
// https://arxiv.org/abs/2206.02915).
#include "device/simulator/exec/vector_half.h"

namespace attest::device::sim::ATTEST_SIMD_NAMESPACE {
namespace {

struct E4M3 {
  static constexpr u32 mantissa = 3, bias = 8;
};
struct E5M2 {
  static constexpr u32 mantissa = 2, bias = 16;
};

/// The low byte as f32: its bits moved to the exponent and fraction of an f32 are off by the bias only, and a
/// multiplication corrects that, denormals included.
template <class Format>
ATTEST_INLINE U from_fp8(const U& x) {
  const U byte = x & 0xffu;
  const F magnitude = f((byte & 0x7fu) << (23 - Format::mantissa)) * f(splat((254u - Format::bias) << 23));
  return select(byte == 0x80u, splat(default_nan), u(magnitude) | ((byte & 0x80u) << 24));
}

/// Rounded to nearest even whatever MODE says; too large, infinite or NaN: 0x80, or with FP16_OVFL the
/// largest number (NaN stays NaN).
template <class Format>
ATTEST_INLINE U to_fp8(const U& x, u32 mode_bits) {
  constexpr u32 drop = 23 - Format::mantissa, rebias = (127 - Format::bias) << Format::mantissa;
  constexpr u32 smallest_normal = (128 - Format::bias) << 23;
  // An f32 of this size has the format's denormal unit as its last place.
  constexpr u32 aligned = (127 + 23 + 1 - Format::bias - Format::mantissa) << 23;
  const U sign = (x >> 24) & 0x80u, magnitude = x & 0x7fffffffu;
  const U normal = ((magnitude + ((1u << (drop - 1)) - 1u) + ((magnitude >> drop) & 1u)) >> drop) - rebias;
  const U denormal = u(f(magnitude) + f(splat(aligned))) - aligned;
  U r = select(magnitude < smallest_normal, denormal, normal);
  const I too_large = (r > 0x7fu) | (magnitude >= 0x7f800000u);
  r = select(r == 0, U{}, r | sign);
  const bool saturates = (mode_bits & mode::fp16_ovfl) != 0;
  const U overflow = saturates ? select(magnitude > 0x7f800000u, splat(0x80), 0x7fu | sign) : splat(0x80);
  return select(too_large, overflow, r);
}

/// Stochastic: the random bits of b, as a fraction of the format's last place, are added before the rest is
/// cut off.
template <class Format>
u32 to_fp8_stochastic(u32 x, u32 random, u32 mode_bits) {
  constexpr u32 drop = 23 - Format::mantissa;
  const u32 sign = x >> 24 & 0x80, magnitude = x & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x80;
  const bool saturates = (mode_bits & mode::fp16_ovfl) != 0;
  const u32 overflow = saturates ? sign | 0x7f : 0x80;
  if (magnitude == 0x7f800000) return overflow;
  const u32 fraction = random >> (32 - drop);
  constexpr u32 smallest_normal = (128 - Format::bias) << 23;
  u32 r;
  if (magnitude >= smallest_normal) {
    r = ((magnitude + fraction) >> drop) - ((127 - Format::bias) << Format::mantissa);
  } else {
    const u32 down = (smallest_normal >> 23) - (magnitude >> 23);
    const u32 significand = (magnitude >> 23) == 0 ? 0 : (magnitude & 0x7fffff) | 0x800000;
    r = ((down > 31 ? 0 : significand >> down) + fraction) >> drop;
  }
  if (r > 0x7f) return overflow;
  return r == 0 ? 0 : r | sign;
}

template <class Format>
struct Fp8Pair {
  static ATTEST_INLINE U run(const Context& context, const U& a, const U& b) {
    return to_fp8<Format>(a, context.mode) | (to_fp8<Format>(b, context.mode) << 8);
  }
};
template <class Format>
void fp8_stochastic(Rows& rows) {
  for (u32 lane = 0; lane < lanes; ++lane)
    rows.dst[lane] = to_fp8_stochastic<Format>(*rows.at(0, lane), *rows.at(1, lane), rows.mode);
}
template <class Format>
void fp8_pair_to_f32(Rows& rows) {
  for (u32 at = 0; at < lanes; at += 16) {
    const U x = load(rows.at(0, at));
    store(rows.dst + at, from_fp8<Format>(x));
    store(rows.dst + lanes + at, from_fp8<Format>(x >> 8));
  }
}

ATTEST_INLINE U byte_to_float(const U& x, u32 k) {
  return u(to_float(i((x >> (8 * k)) & 0xffu)));
}

// Integers of f32 and f64 by way of double, which holds both exactly.
ATTEST_INLINE L to_i32(const D& x) {
  const J valid = x == x;
  const D limited = select(J(x > 2147483647.0), splatd(2147483647.0),
                           select(J(x < -2147483648.0), splatd(-2147483648.0), x));
  return l(__builtin_convertvector(select(valid, limited, D{}), J)) & 0xffffffffull;
}
ATTEST_INLINE L to_u32(const D& x) {
  const D limited = select(J(x > 4294967295.0), splatd(4294967295.0), select(J(x > 0.0), x, D{}));
  return l(__builtin_convertvector(limited, J));
}

ATTEST_INLINE U normalised(const F& x, float scale, float lowest) {
  const F limited =
      select(x > 1.0f, splatf(1.0f), select(x < lowest, splatf(lowest), select(x != x, F{}, x)));
  const D low = rint(to_double(lower(limited)) * splatd(static_cast<double>(scale)));
  const D high = rint(to_double(upper(limited)) * splatd(static_cast<double>(scale)));
  const U8 l32 = low32(l(__builtin_convertvector(low, J))), h32 = low32(l(__builtin_convertvector(high, J)));
  return join(l32, h32) & 0xffffu;
}

ATTEST_INLINE U to_byte(const F& x) {
  const F limited = select(x > 255.0f, splatf(255.0f), select(x > 0.0f, x, F{}));
  return u(__builtin_convertvector(limited, I));
}
ATTEST_INLINE U insert_byte(const F& x, const U& place, const U& into) {
  const U shift = (place & 3u) * 8u;
  return (into & ~(splat(0xff) << shift)) | (to_byte(x) << shift);
}

struct F16FromF32 {
  static ATTEST_INLINE U run(const Context& context, const U& a) {
    const F x = f(a);
    const F known = propagate(x, context.mode, x, F{}, F{});
    return limit_overflow(to_half(known, context.mode), known, context.mode);
  }
};
struct F32FromF16 {
  static ATTEST_INLINE U run(const Context& context, const U& a) {
    const F x = half_to_float(a & 0xffffu);
    return u(propagate(x, context.mode, x, F{}, F{}));
  }
};
template <bool is_signed>
struct F16FromInteger {
  static ATTEST_INLINE U run(const Context& context, const U& a) {
    const F x = is_signed ? to_float(i(a << 16) >> 16) : to_float(a & 0xffffu);
    return limit_overflow(to_half(x, context.mode), x, context.mode);
  }
};
template <bool is_signed>
struct IntegerFromF16 {
  static ATTEST_INLINE U run(const Context&, const U& a) {
    const F x = half_to_float(a & 0xffffu);
    const F lowest = splatf(is_signed ? -32768.0f : 0.0f), highest = splatf(is_signed ? 32767.0f : 65535.0f);
    const F limited = select(x > highest, highest, select(x < lowest, lowest, select(x != x, F{}, x)));
    return u(__builtin_convertvector(limited, I)) & 0xffffu;
  }
};
struct PackTowardsZero {
  static ATTEST_INLINE U run(const Context& context, const U& a, const U& b) {
    return one(context, a) | (one(context, b) << 16);
  }
  static ATTEST_INLINE U one(const Context& context, const U& a) {
    const F known = propagate(f(a), context.mode, f(a), F{}, F{});
    return float_to_half_directed(known, 3);
  }
};

void f64_from_f32(Rows& rows) {
  for (u32 at = 0; at < lanes; at += 8) {
    const F8 x = bits<F8>(load8(rows.at(0, at)));
    const D wide = to_double(x);
    const L raw = widen(bits<U8>(x));
    const L payload = ((raw & 0x7fffffu) << 29) | ((raw & 0x80000000u) << 32) | 0x7ff0000000000000ull;
    const L quiet = splat64((rows.mode & mode::ieee) != 0 ? 0x0008000000000000ull : 0ull);
    store64(rows.dst + at, select(J(wide != wide), payload | quiet, l(wide)));
  }
}
void f32_from_f64(Rows& rows) {
  for (u32 at = 0; at < lanes; at += 8) {
    const L raw = load64(rows.at(0, at));
    const D x = d(raw);
    const U8 quiet = splat8((rows.mode & mode::ieee) != 0 ? 0x00400000u : 0u);
    U8 nan = low32((raw >> 29) & 0x7fffffu) | low32((raw >> 32) & 0x80000000u) | 0x7f800000u | quiet;
    nan = select((nan & 0x7fffffu) == 0, nan | 0x00400000u, nan);
    const J broken = x != x;
    store8(rows.dst + at, select(__builtin_convertvector(broken, I8), nan, bits<U8>(to_float(x))));
  }
}
template <bool is_signed>
void f64_from_integer(Rows& rows) {
  for (u32 at = 0; at < lanes; at += 8) {
    const U8 x = load8(rows.at(0, at));
    store64(rows.dst + at, l(is_signed ? to_double(bits<I8>(x)) : to_double(x)));
  }
}
template <bool is_signed>
struct IntegerFromDouble {
  static ATTEST_INLINE L run(const Context&, const L& a) { return is_signed ? to_i32(d(a)) : to_u32(d(a)); }
};

template <class Run, int sources>
Entry adapted(Result result, bool rounds, u32 mask, u32 keep) {
  Entry e;
  e.kernel = &kernel32<Run, sources>;
  e.result = result;
  e.rounds = rounds;
  e.flushes = true;
  e.mode_mask = mask;
  e.mode_keep = keep;
  return e;
}

}  // namespace

void register_convert(Table& table) {
  const auto at = [&](Op op) -> Entry& { return table[op]; };
  const auto from_integer = []<class Fn>(Fn) {
    Entry e = entry_of<&kernel32<Integer<Fn>, 1>, nullptr, Shape{.mode_mask = round32}>();
    e.result = Result::f32;
    e.rounds = true;
    return e;
  };
  at(Op::v_cvt_f32_i32) = from_integer([](U a) { return u(to_float(i(a))); });
  at(Op::v_cvt_f32_u32) = from_integer([](U a) { return u(to_float(a)); });
  const auto byte = [](auto fn) {
    Entry e = integer<1>(fn);
    e.result = Result::f32;
    return e;
  };
  at(Op::v_cvt_f32_ubyte0) = byte([](U a) { return byte_to_float(a, 0); });
  at(Op::v_cvt_f32_ubyte1) = byte([](U a) { return byte_to_float(a, 1); });
  at(Op::v_cvt_f32_ubyte2) = byte([](U a) { return byte_to_float(a, 2); });
  at(Op::v_cvt_f32_ubyte3) = byte([](U a) { return byte_to_float(a, 3); });
  at(Op::v_cvt_off_f32_i4) = byte([](U a) { return u(to_float(i(a << 28) >> 28) * splatf(0.0625f)); });
  at(Op::v_cvt_i32_f32) = from_float32<1>([](F a) { return u(to_i32(a)); });
  at(Op::v_cvt_u32_f32) = from_float32<1>([](F a) { return to_u32(a); });
  // floor(x + 1/2), without rounding the sum: x's own fraction decides.
  at(Op::v_cvt_rpi_i32_f32) = from_float32<1>([](F a) {
    const F below = floor(a);
    return u(to_i32(select((a - below) >= 0.5f, below + splatf(1.0f), below)));
  });
  at(Op::v_cvt_flr_i32_f32) = from_float32<1>([](F a) { return u(to_i32(floor(a))); });
  at(Op::v_cvt_pk_u8_f32) = integer<3>([](U a, U b, U c) { return insert_byte(f(a), b, c); });
  at(Op::v_cvt_pkaccum_u8_f32) = indirect(at(Op::v_cvt_pk_u8_f32));
  at(Op::v_cvt_pkaccum_u8_f32).reads_old = true;

  at(Op::v_cvt_f64_f32).kernel = &f64_from_f32;
  at(Op::v_cvt_f64_f32).result = Result::f64;
  at(Op::v_cvt_f64_f32).flushes = true;
  at(Op::v_cvt_f64_f32).mode_mask = at(Op::v_cvt_f64_f32).mode_keep = denorm32 | denorm64;
  at(Op::v_cvt_f32_f64).kernel = &f32_from_f64;
  at(Op::v_cvt_f32_f64).result = Result::f32;
  at(Op::v_cvt_f32_f64).flushes = at(Op::v_cvt_f32_f64).rounds = true;
  at(Op::v_cvt_f32_f64).mode_mask = denorm32 | denorm64 | round32;
  at(Op::v_cvt_f32_f64).mode_keep = denorm32 | denorm64;
  at(Op::v_cvt_f64_i32).kernel = &f64_from_integer<true>;
  at(Op::v_cvt_f64_u32).kernel = &f64_from_integer<false>;
  at(Op::v_cvt_f64_i32).result = at(Op::v_cvt_f64_u32).result = Result::f64;
  at(Op::v_cvt_i32_f64).kernel = &kernel64<IntegerFromDouble<true>, 1, 1, true>;
  at(Op::v_cvt_u32_f64).kernel = &kernel64<IntegerFromDouble<false>, 1, 1, true>;

  constexpr u32 half_mask = denorm32 | denorm64 | round64, half_keep = denorm32 | denorm64;
  at(Op::v_cvt_f16_f32) = adapted<F16FromF32, 1>(Result::f16, true, half_mask, half_keep);
  at(Op::v_cvt_f32_f16) = adapted<F32FromF16, 1>(Result::f32, false, half_keep, half_keep);
  at(Op::v_cvt_f16_u16) = adapted<F16FromInteger<false>, 1>(Result::f16, true, round64, 0);
  at(Op::v_cvt_f16_i16) = adapted<F16FromInteger<true>, 1>(Result::f16, true, round64, 0);
  at(Op::v_cvt_u16_f16) = adapted<IntegerFromF16<false>, 1>(Result::b16, false, 0, 0);
  at(Op::v_cvt_i16_f16) = adapted<IntegerFromF16<true>, 1>(Result::b16, false, 0, 0);
  at(Op::v_cvt_pkrtz_f16_f32) = adapted<PackTowardsZero, 2>(Result::v2f16, false, half_keep, half_keep);

  at(Op::v_cvt_pknorm_i16_f32) = integer<2>(
      [](U a, U b) { return normalised(f(a), 32767.0f, -1.0f) | (normalised(f(b), 32767.0f, -1.0f) << 16); });
  at(Op::v_cvt_pknorm_u16_f32) = integer<2>(
      [](U a, U b) { return normalised(f(a), 65535.0f, 0.0f) | (normalised(f(b), 65535.0f, 0.0f) << 16); });
  at(Op::v_cvt_pknorm_i16_f16) = integer<2>([](U a, U b) {
    return normalised(half_to_float(a & 0xffffu), 32767.0f, -1.0f) |
           (normalised(half_to_float(b & 0xffffu), 32767.0f, -1.0f) << 16);
  });
  at(Op::v_cvt_pknorm_u16_f16) = integer<2>([](U a, U b) {
    return normalised(half_to_float(a & 0xffffu), 65535.0f, 0.0f) |
           (normalised(half_to_float(b & 0xffffu), 65535.0f, 0.0f) << 16);
  });
  at(Op::v_cvt_norm_i16_f16) =
      integer<1>([](U a) { return normalised(half_to_float(a & 0xffffu), 32767.0f, -1.0f); });
  at(Op::v_cvt_norm_u16_f16) =
      integer<1>([](U a) { return normalised(half_to_float(a & 0xffffu), 65535.0f, 0.0f); });
  at(Op::v_cvt_norm_i16_f16).result = at(Op::v_cvt_norm_u16_f16).result = Result::b16;
  for (const Op op :
       {Op::v_cvt_pknorm_i16_f16, Op::v_cvt_pknorm_u16_f16, Op::v_cvt_norm_i16_f16, Op::v_cvt_norm_u16_f16}) {
    at(op) = indirect(at(op));
    at(op).flushes = true;
    at(op).mode_mask = at(op).mode_keep = denorm64;
  }

  at(Op::v_cvt_f32_fp8) = byte([](U a) { return from_fp8<E4M3>(a); });
  at(Op::v_cvt_f32_bf8) = byte([](U a) { return from_fp8<E5M2>(a); });
  at(Op::v_cvt_pk_f32_fp8).kernel = &fp8_pair_to_f32<E4M3>;
  at(Op::v_cvt_pk_f32_bf8).kernel = &fp8_pair_to_f32<E5M2>;
  const auto partial = [](Kernel kernel, std::uint8_t bytes) {
    Entry e;
    e.kernel = kernel;
    e.simple = false;
    e.bytes_written = bytes;
    return e;
  };
  at(Op::v_cvt_pk_fp8_f32) = partial(&kernel32<Fp8Pair<E4M3>, 2>, 2);
  at(Op::v_cvt_pk_bf8_f32) = partial(&kernel32<Fp8Pair<E5M2>, 2>, 2);
  at(Op::v_cvt_sr_fp8_f32) = partial(&fp8_stochastic<E4M3>, 1);
  at(Op::v_cvt_sr_bf8_f32) = partial(&fp8_stochastic<E5M2>, 1);
}

}  // namespace attest::device::sim::ATTEST_SIMD_NAMESPACE
