// SPDX-License-Identifier: MIT
//
// 32-bit and 16-bit integer operations. Names of operands follow the manual: a, b, c are S0, S1, S2.
#include "device/simulator/exec/vector_kernels.h"

namespace attest::device::sim::ATTEST_SIMD_NAMESPACE {
namespace {

ATTEST_INLINE U sext24(const U& x) {
  return u(i(x << 8) >> 8);
}
ATTEST_INLINE U sext16(const U& x) {
  return u(i(x << 16) >> 16);
}
ATTEST_INLINE U min_u(const U& a, const U& b) {
  return select(a < b, a, b);
}
ATTEST_INLINE U max_u(const U& a, const U& b) {
  return select(a >= b, a, b);
}
ATTEST_INLINE U min_i(const U& a, const U& b) {
  return select(i(a) < i(b), a, b);
}
ATTEST_INLINE U max_i(const U& a, const U& b) {
  return select(i(a) >= i(b), a, b);
}
ATTEST_INLINE U saturated_add(const U& a, const U& b) {
  const U sum = a + b;
  return select(sum < a, splat(~0u), sum);
}
ATTEST_INLINE U saturated_sub(const U& a, const U& b) {
  return select(a < b, U{}, a - b);
}
ATTEST_INLINE U signed_limit(const U& a) {
  return (a >> 31) + 0x7fffffffu;
}
ATTEST_INLINE U saturated_add_i(const U& a, const U& b) {
  const U sum = a + b;
  return select(i(~(a ^ b) & (a ^ sum)) < 0, signed_limit(a), sum);
}
ATTEST_INLINE U saturated_sub_i(const U& a, const U& b) {
  const U difference = a - b;
  return select(i((a ^ b) & (a ^ difference)) < 0, signed_limit(a), difference);
}
ATTEST_INLINE U clamp_i16(const U& x) {  // of a 32-bit value
  const I v = i(x);
  return u(select(v > 32767, I{} + 32767, select(v < -32768, I{} - 32768, v)));
}
ATTEST_INLINE U clamp_u16(const U& x) {  // of a signed 32-bit value
  const I v = i(x);
  return u(select(v > 65535, I{} + 65535, select(v < 0, I{}, v)));
}
ATTEST_INLINE U low16(const U& x) {
  return x & 0xffffu;
}

ATTEST_INLINE U popcount(U x) {
  x = x - ((x >> 1) & 0x55555555u);
  x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0fu;
  return (x * 0x01010101u) >> 24;
}
ATTEST_INLINE U reverse(U x) {
  x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
  x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
  x = ((x >> 4) & 0x0f0f0f0fu) | ((x & 0x0f0f0f0fu) << 4);
  x = ((x >> 8) & 0x00ff00ffu) | ((x & 0x00ff00ffu) << 8);
  return (x >> 16) | (x << 16);
}
ATTEST_INLINE U leading_zeros(U x) {  // 32 for 0
  x |= x >> 1;
  x |= x >> 2;
  x |= x >> 4;
  x |= x >> 8;
  x |= x >> 16;
  return 32u - popcount(x);
}
ATTEST_INLINE U bytes_abs_difference(const U& a, const U& b, const U& c, bool masked) {
  U sum = c;
  for (int at = 0; at < 32; at += 8) {
    const U x = (a >> at) & 0xffu, y = (b >> at) & 0xffu;
    const U difference = max_u(x, y) - min_u(x, y);
    sum += masked ? select(y == 0, U{}, difference) : difference;
  }
  return sum;
}
// Products of two 32-bit numbers, high half.
ATTEST_INLINE U mul_high(const U& a, const U& b) {
  const L low = widen(lower(a)) * widen(lower(b)), high = widen(upper(a)) * widen(upper(b));
  return join(high32(low), high32(high));
}
ATTEST_INLINE U mul_high_i(const U& a, const U& b) {
  const U negative_a = u(i(a) >> 31), negative_b = u(i(b) >> 31);
  return mul_high(a, b) - (negative_a & b) - (negative_b & a);
}

void choose(Rows& rows) {
  for (u32 at = 0; at < lanes; at += 16)
    store(rows.dst + at, select(lane_mask(static_cast<u32>(rows.mask_in >> at) & 0xffffu),
                                load(rows.at(1, at)), load(rows.at(0, at))));
}

ATTEST_INLINE U permute_byte(const U& a, const U& b, const U& selector) {
  const U from_b = (b >> ((selector & 3u) * 8u)) & 0xffu, from_a = (a >> ((selector & 3u) * 8u)) & 0xffu;
  U r = select((selector & 4u) != 0, from_a, from_b);
  const U sign_source = select((selector & 2u) != 0, a, b);
  const U sign = select((selector & 1u) != 0, sign_source >> 31, (sign_source >> 15) & 1u) * 0xffu;
  r = select(selector >= 8u, sign, r);
  r = select(selector == 12u, U{}, r);
  return select(selector >= 13u, splat(0xff), r);
}

/// Sum of products of fields of `width` bits, plus c.
template <int width, bool is_signed>
ATTEST_INLINE U dot(const U& a, const U& b, const U& c) {
  U sum = c;
  for (int at = 0; at < 32; at += width) {
    const int up = 32 - width - at;
    if constexpr (is_signed)
      sum += u((i(a << up) >> (32 - width)) * (i(b << up) >> (32 - width)));
    else
      sum += ((a << up) >> (32 - width)) * ((b << up) >> (32 - width));
  }
  return sum;
}
template <int width, bool is_signed>
U dot_saturated(const U& a, const U& b, const U& c) {
  U r{};
  for (int lane = 0; lane < 16; ++lane) {
    i64 sum = is_signed ? i64{static_cast<i32>(c[lane])} : i64{c[lane]};
    for (int at = 0; at < 32; at += width) {
      const u32 x = a[lane] << (32 - width - at), y = b[lane] << (32 - width - at);
      sum += is_signed ? i64{static_cast<i32>(x) >> (32 - width)} * (static_cast<i32>(y) >> (32 - width))
                       : i64{x >> (32 - width)} * (y >> (32 - width));
    }
    if (is_signed)
      r[lane] = static_cast<u32>(sum > 0x7fffffff ? 0x7fffffff : sum < -0x80000000ll ? -0x80000000ll : sum);
    else
      r[lane] = static_cast<u32>(sum > 0xffffffffll ? 0xffffffffll : sum);
  }
  return r;
}
template <int width, bool is_signed>
Entry dot_entry() {
  return integer<3>([](U a, U b, U c) { return dot<width, is_signed>(a, b, c); },
                    [](U a, U b, U c) { return dot_saturated<width, is_signed>(a, b, c); });
}

ATTEST_INLINE U saturated_product_sum(const U& a, const U& b, const U& c, bool is_signed) {
  // a and b have at most 24 bits (25 with sign): the exact sum needs 64.
  U r{};
  for (int lane = 0; lane < 16; ++lane) {
    if (is_signed) {
      const i64 sum = i64{static_cast<i32>(a[lane])} * static_cast<i32>(b[lane]) + static_cast<i32>(c[lane]);
      r[lane] = static_cast<u32>(sum > 0x7fffffff ? 0x7fffffff : sum < -0x80000000ll ? -0x80000000ll : sum);
    } else {
      const u64 sum = u64{a[lane]} * b[lane] + c[lane];
      r[lane] = static_cast<u32>(sum > 0xffffffffull ? 0xffffffffull : sum);
    }
  }
  return r;
}

}  // namespace

void register_integer(Table& table) {
  const auto at = [&](Op op) -> Entry& { return table[op]; };

  // Moves and bits.
  at(Op::v_mov_b32) = integer<1, hot>([](U a) { return a; });
  at(Op::v_accvgpr_mov_b32) = at(Op::v_mov_b32);
  at(Op::v_accvgpr_read_b32) = at(Op::v_mov_b32);
  at(Op::v_accvgpr_write_b32) = at(Op::v_mov_b32);
  at(Op::v_not_b32) = integer<1, hot>([](U a) { return ~a; });
  at(Op::v_bfrev_b32) = integer<1>([](U a) { return reverse(a); });
  at(Op::v_ffbh_u32) = integer<1>([](U a) { return select(a == 0, splat(~0u), leading_zeros(a)); });
  at(Op::v_ffbl_b32) = integer<1>([](U a) { return select(a == 0, splat(~0u), leading_zeros(reverse(a))); });
  at(Op::v_ffbh_i32) = integer<1>([](U a) {
    const U flipped = a ^ u(i(a) >> 31);
    return select(flipped == 0, splat(~0u), leading_zeros(flipped));
  });
  at(Op::v_and_b32) = integer<2, hot>([](U a, U b) { return a & b; });
  at(Op::v_or_b32) = integer<2, hot>([](U a, U b) { return a | b; });
  at(Op::v_xor_b32) = integer<2, hot>([](U a, U b) { return a ^ b; });
  at(Op::v_xnor_b32) = integer<2>([](U a, U b) { return ~(a ^ b); });
  at(Op::v_and_or_b32) = integer<3, hot>([](U a, U b, U c) { return (a & b) | c; });
  at(Op::v_or3_b32) = integer<3, hot>([](U a, U b, U c) { return a | b | c; });
  at(Op::v_bfi_b32) = integer<3, hot>([](U a, U b, U c) { return (a & b) | (~a & c); });
  at(Op::v_bfm_b32) = integer<2>([](U a, U b) { return ((splat(1) << (a & 31u)) - 1u) << (b & 31u); });
  at(Op::v_bfe_u32) =
      integer<3, hot>([](U a, U b, U c) { return (a >> (b & 31u)) & ((splat(1) << (c & 31u)) - 1u); });
  at(Op::v_bfe_i32) = integer<3, hot>([](U a, U b, U c) {
    const U width = c & 31u, field = u(i(a) >> i(b & 31u)) & ((splat(1) << width) - 1u);
    const U sign = (splat(1) << width) >> 1;
    return (field ^ sign) - sign;
  });
  at(Op::v_cndmask_b32) = entry_of<&choose, nullptr, Shape{.sources = 2, .mask_in = true}>();
  at(Op::v_perm_b32) = integer<3, hot>([](U a, U b, U c) {
    U r = permute_byte(a, b, c & 0xffu);
    r |= permute_byte(a, b, (c >> 8) & 0xffu) << 8;
    r |= permute_byte(a, b, (c >> 16) & 0xffu) << 16;
    return r | (permute_byte(a, b, c >> 24) << 24);
  });
  at(Op::v_alignbit_b32) = integer<3>([](U a, U b, U c) {
    const U shift = c & 31u;
    return (b >> shift) | ((a << 1) << (31u - shift));
  });
  at(Op::v_alignbyte_b32) = integer<3>([](U a, U b, U c) {
    const U shift = (c & 3u) * 8u;
    return (b >> shift) | ((a << 1) << (31u - shift));
  });
  at(Op::v_bcnt_u32_b32) = integer<2>([](U a, U b) { return popcount(a) + b; });
  at(Op::v_mbcnt_lo_u32_b32) = integer<2>([](const Context& context, U a, U b) {
    U below{};
    for (u32 k = 0; k < 16; ++k) {
      const u32 lane = context.first_lane + k;
      below[k] = lane >= 32 ? ~0u : (1u << lane) - 1u;
    }
    return popcount(a & below) + b;
  });
  at(Op::v_mbcnt_hi_u32_b32) = integer<2>([](const Context& context, U a, U b) {
    U below{};
    for (u32 k = 0; k < 16; ++k) {
      const u32 lane = context.first_lane + k;
      below[k] = lane < 32 ? 0u : (1u << (lane - 32)) - 1u;
    }
    return popcount(a & below) + b;
  });

  // Shifts: the "rev" forms shift b by a.
  at(Op::v_lshlrev_b32) = integer<2, hot>([](U a, U b) { return b << (a & 31u); });
  at(Op::v_lshrrev_b32) = integer<2, hot>([](U a, U b) { return b >> (a & 31u); });
  at(Op::v_ashrrev_i32) = integer<2, hot>([](U a, U b) { return u(i(b) >> i(a & 31u)); });
  at(Op::v_lshl_add_u32) = integer<3, hot>([](U a, U b, U c) { return (a << (b & 31u)) + c; });
  at(Op::v_add_lshl_u32) = integer<3, hot>([](U a, U b, U c) { return (a + b) << (c & 31u); });
  at(Op::v_lshl_or_b32) = integer<3, hot>([](U a, U b, U c) { return (a << (b & 31u)) | c; });

  // Sums.
  at(Op::v_add_u32) =
      integer<2, hot>([](U a, U b) { return a + b; }, [](U a, U b) { return saturated_add(a, b); });
  at(Op::v_sub_u32) =
      integer<2, hot>([](U a, U b) { return a - b; }, [](U a, U b) { return saturated_sub(a, b); });
  at(Op::v_subrev_u32) =
      integer<2, hot>([](U a, U b) { return b - a; }, [](U a, U b) { return saturated_sub(b, a); });
  at(Op::v_add_i32) =
      integer<2>([](U a, U b) { return a + b; }, [](U a, U b) { return saturated_add_i(a, b); });
  at(Op::v_sub_i32) =
      integer<2>([](U a, U b) { return a - b; }, [](U a, U b) { return saturated_sub_i(a, b); });
  at(Op::v_add3_u32) = integer<3, hot>([](U a, U b, U c) { return a + b + c; });
  at(Op::v_xad_u32) = integer<3>([](U a, U b, U c) { return (a ^ b) + c; });

  const auto carry = []<class Fn>(Fn) {
    return entry_of<&carry32<Fn>, nullptr, Shape{.sources = 2, .mask_in = true, .mask_out = true}>();
  };
  const auto add = [](U a, U b, U) { return WithCarry{a + b, a + b < a}; };
  const auto sub = [](U a, U b, U) { return WithCarry{a - b, b > a}; };
  const auto subrev = [](U a, U b, U) { return WithCarry{b - a, a > b}; };
  const auto addc = [](U a, U b, U in) {
    const U sum = a + b, total = sum + in;
    return WithCarry{total, (sum < a) | (total < sum)};
  };
  const auto subb = [](U a, U b, U in) { return WithCarry{a - b - in, (b > a) | ((b == a) & (in != 0))}; };
  const auto subbrev = [](U a, U b, U in) { return WithCarry{b - a - in, (a > b) | ((a == b) & (in != 0))}; };
  at(Op::v_add_co_u32) = carry(add);
  at(Op::v_sub_co_u32) = carry(sub);
  at(Op::v_subrev_co_u32) = carry(subrev);
  at(Op::v_addc_co_u32) = carry(addc);
  at(Op::v_subb_co_u32) = carry(subb);
  at(Op::v_subbrev_co_u32) = carry(subbrev);

  // Products.
  at(Op::v_mul_lo_u32) = integer<2, hot>([](U a, U b) { return a * b; });
  at(Op::v_mul_hi_u32) = integer<2, hot>([](U a, U b) { return mul_high(a, b); });
  at(Op::v_mul_hi_i32) = integer<2>([](U a, U b) { return mul_high_i(a, b); });
  at(Op::v_mul_u32_u24) = integer<2, hot>([](U a, U b) { return (a & 0xffffffu) * (b & 0xffffffu); });
  at(Op::v_mul_i32_i24) = integer<2, hot>([](U a, U b) { return sext24(a) * sext24(b); });
  at(Op::v_mul_hi_u32_u24) = integer<2>([](U a, U b) { return mul_high(a & 0xffffffu, b & 0xffffffu); });
  at(Op::v_mul_hi_i32_i24) = integer<2>([](U a, U b) { return mul_high_i(sext24(a), sext24(b)); });
  at(Op::v_mad_u32_u24) = integer<3, hot>(
      [](U a, U b, U c) { return (a & 0xffffffu) * (b & 0xffffffu) + c; },
      [](U a, U b, U c) { return saturated_product_sum(a & 0xffffffu, b & 0xffffffu, c, false); });
  at(Op::v_mad_i32_i24) =
      integer<3, hot>([](U a, U b, U c) { return sext24(a) * sext24(b) + c; },
                      [](U a, U b, U c) { return saturated_product_sum(sext24(a), sext24(b), c, true); });
  at(Op::v_mad_u32_u16) =
      integer<3>([](U a, U b, U c) { return low16(a) * low16(b) + c; },
                 [](U a, U b, U c) { return saturated_product_sum(low16(a), low16(b), c, false); });
  at(Op::v_mad_i32_i16) =
      integer<3>([](U a, U b, U c) { return sext16(a) * sext16(b) + c; },
                 [](U a, U b, U c) { return saturated_product_sum(sext16(a), sext16(b), c, true); });
  at(Op::v_dot2_i32_i16) = dot_entry<16, true>();
  at(Op::v_dot2_u32_u16) = dot_entry<16, false>();
  at(Op::v_dot4_i32_i8) = dot_entry<8, true>();
  at(Op::v_dot4_u32_u8) = dot_entry<8, false>();
  at(Op::v_dot8_i32_i4) = dot_entry<4, true>();
  at(Op::v_dot8_u32_u4) = dot_entry<4, false>();
  at(Op::v_dot2c_i32_i16) = indirect(dot_entry<16, true>());
  at(Op::v_dot4c_i32_i8) = indirect(dot_entry<8, true>());
  at(Op::v_dot8c_i32_i4) = indirect(dot_entry<4, true>());

  // Order.
  at(Op::v_min_u32) = integer<2, hot>([](U a, U b) { return min_u(a, b); });
  at(Op::v_max_u32) = integer<2, hot>([](U a, U b) { return max_u(a, b); });
  at(Op::v_min_i32) = integer<2, hot>([](U a, U b) { return min_i(a, b); });
  at(Op::v_max_i32) = integer<2, hot>([](U a, U b) { return max_i(a, b); });
  at(Op::v_min3_u32) = integer<3>([](U a, U b, U c) { return min_u(min_u(a, b), c); });
  at(Op::v_max3_u32) = integer<3>([](U a, U b, U c) { return max_u(max_u(a, b), c); });
  at(Op::v_min3_i32) = integer<3>([](U a, U b, U c) { return min_i(min_i(a, b), c); });
  at(Op::v_max3_i32) = integer<3>([](U a, U b, U c) { return max_i(max_i(a, b), c); });
  at(Op::v_med3_u32) = integer<3>([](U a, U b, U c) { return max_u(min_u(a, b), min_u(max_u(a, b), c)); });
  at(Op::v_med3_i32) = integer<3>([](U a, U b, U c) { return max_i(min_i(a, b), min_i(max_i(a, b), c)); });

  // Differences of bytes.
  at(Op::v_sad_u8) = integer<3>([](U a, U b, U c) { return bytes_abs_difference(a, b, c, false); });
  at(Op::v_msad_u8) = integer<3>([](U a, U b, U c) { return bytes_abs_difference(a, b, c, true); });
  at(Op::v_sad_hi_u8) =
      integer<3>([](U a, U b, U c) { return (bytes_abs_difference(a, b, U{}, false) << 16) + c; });
  at(Op::v_sad_u16) = integer<3>([](U a, U b, U c) {
    const U al = low16(a), bl = low16(b), ah = a >> 16, bh = b >> 16;
    return max_u(al, bl) - min_u(al, bl) + max_u(ah, bh) - min_u(ah, bh) + c;
  });
  at(Op::v_sad_u32) = integer<3>([](U a, U b, U c) { return max_u(a, b) - min_u(a, b) + c; });
  const auto saturate_sad = [&](Op op, auto fn) { at(op).clamped = &kernel32<Integer<decltype(fn)>, 3>; };
  saturate_sad(Op::v_sad_u8,
               [](U a, U b, U c) { return saturated_add(bytes_abs_difference(a, b, U{}, false), c); });
  saturate_sad(Op::v_msad_u8,
               [](U a, U b, U c) { return saturated_add(bytes_abs_difference(a, b, U{}, true), c); });
  saturate_sad(Op::v_sad_hi_u8,
               [](U a, U b, U c) { return saturated_add(bytes_abs_difference(a, b, U{}, false) << 16, c); });
  saturate_sad(Op::v_sad_u16, [](U a, U b, U c) {
    const U al = low16(a), bl = low16(b), ah = a >> 16, bh = b >> 16;
    return saturated_add(max_u(al, bl) - min_u(al, bl) + max_u(ah, bh) - min_u(ah, bh), c);
  });
  saturate_sad(Op::v_sad_u32, [](U a, U b, U c) { return saturated_add(max_u(a, b) - min_u(a, b), c); });
  at(Op::v_lerp_u8) = integer<3>([](U a, U b, U c) {
    U r{};
    for (int k = 0; k < 32; k += 8)
      r |= ((((a >> k) & 0xffu) + ((b >> k) & 0xffu) + ((c >> k) & 1u)) >> 1) << k;
    return r;
  });
  at(Op::v_sat_pk_u8_i16) = integer<1>([](U a) {
    const I low = i(sext16(a)), high = i(a) >> 16, limit = I{} + 255;
    const I x = select(low < 0, I{}, select(low > 255, limit, low));
    const I y = select(high < 0, I{}, select(high > 255, limit, high));
    return u(x) | (u(y) << 8);
  });
  at(Op::v_sat_pk_u8_i16).result = Result::b16;

  // 16 bits.
  at(Op::v_add_u16) =
      integer16<2>([](U a, U b) { return a + b; }, [](U a, U b) { return clamp_u16(low16(a) + low16(b)); });
  at(Op::v_sub_u16) =
      integer16<2>([](U a, U b) { return a - b; }, [](U a, U b) { return clamp_u16(low16(a) - low16(b)); });
  at(Op::v_subrev_u16) =
      integer16<2>([](U a, U b) { return b - a; }, [](U a, U b) { return clamp_u16(low16(b) - low16(a)); });
  at(Op::v_add_i16) = keeping_half(integer16<2>([](U a, U b) { return a + b; },
                                                [](U a, U b) { return clamp_i16(sext16(a) + sext16(b)); }));
  at(Op::v_sub_i16) = keeping_half(integer16<2>([](U a, U b) { return a - b; },
                                                [](U a, U b) { return clamp_i16(sext16(a) - sext16(b)); }));
  at(Op::v_mul_lo_u16) = integer16<2>([](U a, U b) { return a * b; });
  at(Op::v_lshlrev_b16) = integer16<2>([](U a, U b) { return b << (a & 15u); });
  at(Op::v_lshrrev_b16) = integer16<2>([](U a, U b) { return low16(b) >> (a & 15u); });
  at(Op::v_ashrrev_i16) = integer16<2>([](U a, U b) { return u(i(sext16(b)) >> i(a & 15u)); });
  at(Op::v_max_u16) = integer16<2>([](U a, U b) { return max_u(low16(a), low16(b)); });
  at(Op::v_min_u16) = integer16<2>([](U a, U b) { return min_u(low16(a), low16(b)); });
  at(Op::v_max_i16) = integer16<2>([](U a, U b) { return max_i(sext16(a), sext16(b)); });
  at(Op::v_min_i16) = integer16<2>([](U a, U b) { return min_i(sext16(a), sext16(b)); });
  const auto mad_u16 = integer16<3>([](U a, U b, U c) { return a * b + c; },
                                    [](U a, U b, U c) {
                                      const U sum = low16(a) * low16(b) + low16(c);
                                      return select(sum > 0xffffu, splat(0xffff), sum);
                                    });
  const auto mad_i16 =
      integer16<3>([](U a, U b, U c) { return a * b + c; },
                   [](U a, U b, U c) { return clamp_i16(sext16(a) * sext16(b) + sext16(c)); });
  at(Op::v_mad_legacy_u16) = mad_u16;
  at(Op::v_mad_legacy_i16) = mad_i16;
  at(Op::v_mad_u16) = keeping_half(mad_u16);
  at(Op::v_mad_i16) = keeping_half(mad_i16);
  at(Op::v_min3_u16) =
      keeping_half(integer16<3>([](U a, U b, U c) { return min_u(min_u(low16(a), low16(b)), low16(c)); }));
  at(Op::v_max3_u16) =
      keeping_half(integer16<3>([](U a, U b, U c) { return max_u(max_u(low16(a), low16(b)), low16(c)); }));
  at(Op::v_min3_i16) =
      keeping_half(integer16<3>([](U a, U b, U c) { return min_i(min_i(sext16(a), sext16(b)), sext16(c)); }));
  at(Op::v_max3_i16) =
      keeping_half(integer16<3>([](U a, U b, U c) { return max_i(max_i(sext16(a), sext16(b)), sext16(c)); }));
  at(Op::v_med3_u16) = keeping_half(integer16<3>([](U a, U b, U c) {
    const U x = low16(a), y = low16(b);
    return max_u(min_u(x, y), min_u(max_u(x, y), low16(c)));
  }));
  at(Op::v_med3_i16) = keeping_half(integer16<3>([](U a, U b, U c) {
    const U x = sext16(a), y = sext16(b);
    return max_i(min_i(x, y), min_i(max_i(x, y), sext16(c)));
  }));

  // Integer packing.
  at(Op::v_cvt_pk_u16_u32) =
      integer<2>([](U a, U b) { return min_u(a, splat(0xffff)) | (min_u(b, splat(0xffff)) << 16); });
  at(Op::v_cvt_pk_i16_i32) = integer<2>([](U a, U b) { return low16(clamp_i16(a)) | (clamp_i16(b) << 16); });
}

// Halves of a register, each on its own.
namespace {

template <class Fn>
struct Packed {
  template <class... X>
  static ATTEST_INLINE U run(const Context&, const X&... x) {
    return low16(Fn{}(low16(x)...)) | (Fn{}((x >> 16)...) << 16);
  }
};
template <int sources, class Fn>
Entry packed(Fn) {
  return entry_of<&kernel32<Packed<Fn>, sources>, nullptr, Shape{.sources = sources}>();
}
template <int sources, class Fn, class Saturating>
Entry packed(Fn fn, Saturating) {
  Entry e = packed<sources>(fn);
  e.clamped = &kernel32<Packed<Saturating>, sources>;
  return e;
}

}  // namespace

void register_packed(Table& table) {
  const auto at = [&](Op op) -> Entry& { return table[op]; };
  at(Op::v_pk_add_u16) = packed<2>([](U a, U b) { return a + b; }, [](U a, U b) { return clamp_u16(a + b); });
  at(Op::v_pk_sub_u16) = packed<2>([](U a, U b) { return a - b; }, [](U a, U b) { return clamp_u16(a - b); });
  at(Op::v_pk_add_i16) =
      packed<2>([](U a, U b) { return a + b; }, [](U a, U b) { return clamp_i16(sext16(a) + sext16(b)); });
  at(Op::v_pk_sub_i16) =
      packed<2>([](U a, U b) { return a - b; }, [](U a, U b) { return clamp_i16(sext16(a) - sext16(b)); });
  at(Op::v_pk_mul_lo_u16) = packed<2>([](U a, U b) { return a * b; });
  at(Op::v_pk_mad_u16) = packed<3>([](U a, U b, U c) { return a * b + c; },
                                   [](U a, U b, U c) {
                                     const U sum = a * b + c;
                                     return select(sum > 0xffffu, splat(0xffff), sum);
                                   });
  at(Op::v_pk_mad_i16) =
      packed<3>([](U a, U b, U c) { return a * b + c; },
                [](U a, U b, U c) { return clamp_i16(sext16(a) * sext16(b) + sext16(c)); });
  at(Op::v_pk_lshlrev_b16) = packed<2>([](U a, U b) { return b << (a & 15u); });
  at(Op::v_pk_lshrrev_b16) = packed<2>([](U a, U b) { return b >> (a & 15u); });
  at(Op::v_pk_ashrrev_i16) = packed<2>([](U a, U b) { return u(i(sext16(b)) >> i(a & 15u)); });
  at(Op::v_pk_max_u16) = packed<2>([](U a, U b) { return max_u(a, b); });
  at(Op::v_pk_min_u16) = packed<2>([](U a, U b) { return min_u(a, b); });
  at(Op::v_pk_max_i16) = packed<2>([](U a, U b) { return max_i(sext16(a), sext16(b)); });
  at(Op::v_pk_min_i16) = packed<2>([](U a, U b) { return min_i(sext16(a), sext16(b)); });
}

}  // namespace attest::device::sim::ATTEST_SIMD_NAMESPACE
