// SPDX-License-Identifier: MIT
//
// 64-bit integers: pairs of rows.
#include "device/simulator/exec/vector_kernels.h"

namespace attest::device::sim::ATTEST_SIMD_NAMESPACE {
namespace {

/// v_mad_u64_u32 and v_mad_i64_i32: the carry is bit 64 of the exact sum.
template <bool is_signed>
void mad64(Rows& rows) {
  u64 mask = 0;
  for (u32 at = 0; at < lanes; at += 8) {
    L a = widen(load8(rows.at(0, at))), b = widen(load8(rows.at(1, at)));
    const L c = load64(rows.at(2, at));
    if constexpr (is_signed) {
      // a 32 x 32 product of signed numbers from the unsigned one
      const L product = a * b - (((b << 32) & (L{} - (a >> 31))) + ((a << 32) & (L{} - (b >> 31))));
      const L sum = product + c;
      const J carry = sum < product;
      // bit 64 of the sign-extended sum: carry plus both sign bits
      const L top = (l(J(carry)) ^ (product >> 63) ^ (c >> 63)) & 1u;
      store64(rows.dst + at, sum);
      mask |= u64{mask_bits(J(top != 0))} << at;
    } else {
      const L product = a * b, sum = product + c;
      store64(rows.dst + at, sum);
      mask |= u64{mask_bits(J(sum < product))} << at;
    }
  }
  rows.mask_out = mask;
}

// Sums of absolute byte differences at four byte offsets.
template <bool masked>
u32 sad_u8(u32 a, u32 b, u32 c) {
  u32 sum = c;
  for (u32 at = 0; at < 32; at += 8) {
    const u32 x = a >> at & 0xff, y = b >> at & 0xff;
    if (!masked || y != 0) sum += x > y ? x - y : y - x;
  }
  return sum;
}
template <bool masked>
void qsad_u16(Rows& rows) {
  for (u32 lane = 0; lane < lanes; ++lane) {
    const u64 window = *rows.at(0, lane) | u64{rows.at(0, lane)[lanes]} << 32;
    const u32 reference = *rows.at(1, lane);
    const u64 addend = *rows.at(2, lane) | u64{rows.at(2, lane)[lanes]} << 32;
    const bool saturates = rows.instruction->clamp;
    u64 r = 0;
    for (u32 k = 0; k < 4; ++k) {
      u32 sum = sad_u8<masked>(static_cast<u32>(window >> (8 * k)), reference,
                               static_cast<u32>(addend >> (16 * k)) & 0xffff);
      if (saturates && sum > 0xffff) sum = 0xffff;
      r |= u64{sum & 0xffff} << (16 * k);
    }
    rows.dst[lane] = static_cast<u32>(r);
    rows.dst[lane + lanes] = static_cast<u32>(r >> 32);
  }
}
void mqsad_u32(Rows& rows) {
  for (u32 lane = 0; lane < lanes; ++lane) {
    const u64 window = *rows.at(0, lane) | u64{rows.at(0, lane)[lanes]} << 32;
    const u32 reference = *rows.at(1, lane);
    u32 r[4];
    for (u32 k = 0; k < 4; ++k) {
      const u32 addend = rows.at(2, lane)[k * lanes];
      const u32 sum = sad_u8<true>(static_cast<u32>(window >> (8 * k)), reference, addend);
      r[k] = rows.instruction->clamp && sum < addend ? ~0u : sum;
    }
    for (u32 k = 0; k < 4; ++k) rows.dst[lane + k * lanes] = r[k];
  }
}

}  // namespace

void register_integer64(Table& table) {
  const auto at = [&](Op op) -> Entry& { return table[op]; };
  at(Op::v_mov_b64) = integer64<1, 1>([](L a) { return a; });
  at(Op::v_lshlrev_b64) = integer64<2, 2>([](L a, L b) { return b << (a & 63u); });
  at(Op::v_lshrrev_b64) = integer64<2, 2>([](L a, L b) { return b >> (a & 63u); });
  at(Op::v_ashrrev_i64) = integer64<2, 2>([](L a, L b) { return l(j(b) >> j(a & 63u)); });
  // Shifts of 5 to 7 act as 0, by a note in the manual.
  at(Op::v_lshl_add_u64) = integer64<3, 5>([](L a, L b, L c) {
    const L shift = b & 7u;
    return (a << select(J(shift > 4u), L{}, shift)) + c;
  });
  constexpr Shape mad{.sources = 3, .wide = 4, .results = 2, .mask_out = true};
  at(Op::v_mad_u64_u32) = entry_of<&mad64<false>, nullptr, mad>();
  at(Op::v_mad_i64_i32) = entry_of<&mad64<true>, nullptr, mad>();
  at(Op::v_qsad_pk_u16_u8).kernel = &qsad_u16<false>;
  at(Op::v_mqsad_pk_u16_u8).kernel = &qsad_u16<true>;
  at(Op::v_mqsad_u32_u8).kernel = &mqsad_u32;
  at(Op::v_mqsad_u32_u8).simple = false;  // a 128-bit addend
}

}  // namespace attest::device::sim::ATTEST_SIMD_NAMESPACE
