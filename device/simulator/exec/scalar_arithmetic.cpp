// SPDX-License-Identifier: MIT
//
// Scalar arithmetic. Each operation is a lambda over its operand values; the templates around it read the
// operands and write the result and SCC. Which operations touch SCC, and how, follows AMD's "Instinct MI300
// CDNA3 Instruction Set Architecture", chapter 12: logic, shifts, bit fields and counts set SCC to (result !=
// 0), additions to the carry or the signed overflow, moves, multiplications, bit searches, packing and s_bfm
// leave it alone.
//
// A lambda with a > in it stands in parentheses: g++ 12 takes the > for the end of the template arguments.
#include <bit>
#include <cstdint>
#include <type_traits>

#include "device/simulator/exec/scalar_operands.h"

namespace attest::device::sim::scalar {
namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

template <typename T>
void write(Wave& w, std::uint16_t code, T value) {
  if constexpr (sizeof(T) == 8)
    w.set_s64(code, static_cast<u64>(value));
  else
    w.sgpr[code] = static_cast<u32>(value);
}

template <typename T, bool any>
T read(const Wave& w, const Instruction& i, int s) {
  if constexpr (sizeof(T) == 8)
    return static_cast<T>(read64<any, std::is_signed_v<T>>(w, i, s));
  else
    return static_cast<T>(read32<any>(w, i, s));
}

/// What the result does to SCC.
enum class Scc { keep, nonzero };

template <typename A, Scc scc, auto f, bool any>
void run1(Wave& w, const Instruction& i) {
  const auto result = f(read<A, any>(w, i, 0));
  write(w, i.dst, result);
  if constexpr (scc == Scc::nonzero) w.scc = result != 0;
}
template <typename A, Scc scc, auto f>
Handler unary(const Instruction& i) {
  return has_special(i) ? run1<A, scc, f, true> : run1<A, scc, f, false>;
}

template <typename A, typename B, Scc scc, auto f, bool any>
void run2(Wave& w, const Instruction& i) {
  const auto result = f(read<A, any>(w, i, 0), read<B, any>(w, i, 1));
  write(w, i.dst, result);
  if constexpr (scc == Scc::nonzero) w.scc = result != 0;
}
template <typename A, typename B, Scc scc, auto f>
Handler binary(const Instruction& i) {
  return has_special(i) ? run2<A, B, scc, f, true> : run2<A, B, scc, f, false>;
}

/// f(a, b, scc) gives the result and changes scc itself.
template <typename T, auto f, bool any>
void run_carry(Wave& w, const Instruction& i) {
  write(w, i.dst, f(read<T, any>(w, i, 0), read<T, any>(w, i, 1), w.scc));
}
template <typename T, auto f>
Handler carrying(const Instruction& i) {
  return has_special(i) ? run_carry<T, f, true> : run_carry<T, f, false>;
}

template <typename A, typename B, auto f, bool any>
void run_compare(Wave& w, const Instruction& i) {
  w.scc = f(read<A, any>(w, i, 0), read<B, any>(w, i, 1));
}
template <typename A, typename B, auto f>
Handler compare(const Instruction& i) {
  return has_special(i) ? run_compare<A, B, f, true> : run_compare<A, B, f, false>;
}

/// SOPK comparison: T says how the 16 bits are extended.
template <typename T, auto f>
Handler compare_k(const Instruction&) {
  return [](Wave& w, const Instruction& i) {
    const T k =
        std::is_signed_v<T> ? static_cast<T>(i.imm) : static_cast<T>(static_cast<std::uint16_t>(i.imm));
    w.scc = f(static_cast<T>(w.sgpr[i.src[0]]), k);
  };
}

constexpr auto equal = [](auto a, auto b) { return a == b; };
constexpr auto different = [](auto a, auto b) { return a != b; };
constexpr auto greater = [](auto a, auto b) { return a > b; };
constexpr auto greater_equal = [](auto a, auto b) { return a >= b; };
constexpr auto less = [](auto a, auto b) { return a < b; };
constexpr auto less_equal = [](auto a, auto b) { return a <= b; };

/// Low `width` bits set; all of them from the type's size on.
template <typename T>
constexpr T low_bits(u32 width) {
  return width >= sizeof(T) * 8 ? ~T{0} : static_cast<T>((T{1} << width) - 1);
}

template <typename T>
constexpr T field_unsigned(T value, u32 control) {
  constexpr u32 position = sizeof(T) * 8 - 1;
  return static_cast<T>(value >> (control & position)) & low_bits<T>(control >> 16 & 0x7f);
}
template <typename T>
constexpr T field_signed(T value, u32 control) {
  constexpr u32 bits = sizeof(T) * 8;
  const u32 width = control >> 16 & 0x7f;
  if (width == 0) return 0;
  const auto shifted = static_cast<std::make_signed_t<T>>(value) >> (control & (bits - 1));
  if (width >= bits) return static_cast<T>(shifted);
  const u32 up = bits - width;
  return static_cast<T>(static_cast<std::make_signed_t<T>>(static_cast<T>(shifted) << up) >> up);
}

/// One bit of the result for four of the source: any of them set.
template <typename T>
constexpr T quads(T value) {
  value |= value >> 1;
  value |= value >> 2;
  return value & static_cast<T>(0x1111111111111111u);
}
template <typename T>
constexpr T quad_mask(T value) {
  T result = 0;
  for (unsigned q = 0; q < sizeof(T) * 2; ++q) result |= (quads(value) >> (q * 4) & 1) << q;
  return result;
}

template <typename T>
constexpr T reversed(T value) {
  T result = 0;
  for (unsigned b = 0; b < sizeof(T) * 8; ++b) result |= (value >> b & 1) << (sizeof(T) * 8 - 1 - b);
  return result;
}

/// Position from the low end of the lowest one, -1 when there is none.
template <typename T>
constexpr i32 lowest(T value) {
  return value == 0 ? -1 : std::countr_zero(value);
}
/// Distance from the high end of the highest one, -1 when there is none.
template <typename T>
constexpr i32 highest(T value) {
  return value == 0 ? -1 : std::countl_zero(value);
}
/// Distance from the high end of the first bit that differs from the sign.
template <typename T>
constexpr i32 sign_run(T value) {
  const T folded = value ^ static_cast<T>(static_cast<std::make_signed_t<T>>(value) >> (sizeof(T) * 8 - 1));
  return highest(folded);
}

constexpr u64 spread(u32 value) {
  u64 result = 0;
  for (unsigned b = 0; b < 32; ++b) result |= u64{value >> b & 1} * 3 << (2 * b);
  return result;
}

template <unsigned n>
constexpr auto shift_add = [](u32 a, u32 b, u32& scc) {
  const u64 sum = (u64{a} << n) + b;
  scc = sum >> 32 != 0;
  return static_cast<u32>(sum);
};

Handler sop1(const Instruction& i) {
  switch (i.op) {
    case Op::s_mov_b32:
      return unary<u32, Scc::keep, [](u32 a) { return a; }>(i);
    case Op::s_mov_b64:
      return unary<u64, Scc::keep, [](u64 a) { return a; }>(i);
    case Op::s_cmov_b32:
      return [](Wave& w, const Instruction& n) {
        if (w.scc != 0) w.sgpr[n.dst] = read32<true>(w, n, 0);
      };
    case Op::s_cmov_b64:
      return [](Wave& w, const Instruction& n) {
        if (w.scc != 0) w.set_s64(n.dst, read64<true>(w, n, 0));
      };
    case Op::s_not_b32:
      return unary<u32, Scc::nonzero, [](u32 a) { return ~a; }>(i);
    case Op::s_not_b64:
      return unary<u64, Scc::nonzero, [](u64 a) { return ~a; }>(i);
    case Op::s_wqm_b32:
      return unary<u32, Scc::nonzero, [](u32 a) { return quads(a) * 15u; }>(i);
    case Op::s_wqm_b64:
      return unary<u64, Scc::nonzero, [](u64 a) { return quads(a) * 15u; }>(i);
    case Op::s_brev_b32:
      return unary<u32, Scc::keep, [](u32 a) { return reversed(a); }>(i);
    case Op::s_brev_b64:
      return unary<u64, Scc::keep, [](u64 a) { return reversed(a); }>(i);
    case Op::s_bcnt0_i32_b32:
      return unary<u32, Scc::nonzero, [](u32 a) { return std::popcount(~a); }>(i);
    case Op::s_bcnt0_i32_b64:
      return unary<u64, Scc::nonzero, [](u64 a) { return std::popcount(~a); }>(i);
    case Op::s_bcnt1_i32_b32:
      return unary<u32, Scc::nonzero, [](u32 a) { return std::popcount(a); }>(i);
    case Op::s_bcnt1_i32_b64:
      return unary<u64, Scc::nonzero, [](u64 a) { return std::popcount(a); }>(i);
    case Op::s_ff0_i32_b32:
      return unary<u32, Scc::keep, [](u32 a) { return lowest(~a); }>(i);
    case Op::s_ff0_i32_b64:
      return unary<u64, Scc::keep, [](u64 a) { return lowest(~a); }>(i);
    case Op::s_ff1_i32_b32:
      return unary<u32, Scc::keep, [](u32 a) { return lowest(a); }>(i);
    case Op::s_ff1_i32_b64:
      return unary<u64, Scc::keep, [](u64 a) { return lowest(a); }>(i);
    case Op::s_flbit_i32_b32:
      return unary<u32, Scc::keep, [](u32 a) { return highest(a); }>(i);
    case Op::s_flbit_i32_b64:
      return unary<u64, Scc::keep, [](u64 a) { return highest(a); }>(i);
    case Op::s_flbit_i32:
      return unary<u32, Scc::keep, [](u32 a) { return sign_run(a); }>(i);
    case Op::s_flbit_i32_i64:
      return unary<u64, Scc::keep, [](u64 a) { return sign_run(a); }>(i);
    case Op::s_sext_i32_i8:
      return unary<u32, Scc::keep, ([](u32 a) { return i32{static_cast<std::int8_t>(a)}; })>(i);
    case Op::s_sext_i32_i16:
      return unary<u32, Scc::keep, ([](u32 a) { return i32{static_cast<std::int16_t>(a)}; })>(i);
    case Op::s_bitset0_b32:
      return [](Wave& w, const Instruction& n) { w.sgpr[n.dst] &= ~(1u << (read32<true>(w, n, 0) & 31)); };
    case Op::s_bitset1_b32:
      return [](Wave& w, const Instruction& n) { w.sgpr[n.dst] |= 1u << (read32<true>(w, n, 0) & 31); };
    case Op::s_bitset0_b64:
      return [](Wave& w, const Instruction& n) {
        w.set_s64(n.dst, w.s64(n.dst) & ~(u64{1} << (read32<true>(w, n, 0) & 63)));
      };
    case Op::s_bitset1_b64:
      return [](Wave& w, const Instruction& n) {
        w.set_s64(n.dst, w.s64(n.dst) | u64{1} << (read32<true>(w, n, 0) & 63));
      };
    case Op::s_quadmask_b32:
      return unary<u32, Scc::nonzero, [](u32 a) { return quad_mask(a); }>(i);
    case Op::s_quadmask_b64:
      return unary<u64, Scc::nonzero, [](u64 a) { return quad_mask(a); }>(i);
    case Op::s_abs_i32:
      return unary<u32, Scc::nonzero, ([](u32 a) { return a >> 31 != 0 ? 0u - a : a; })>(i);
    case Op::s_bitreplicate_b64_b32:
      return unary<u32, Scc::keep, [](u32 a) { return spread(a); }>(i);
    default:
      return nullptr;
  }
}

Handler sop2(const Instruction& i) {
  constexpr Scc nonzero = Scc::nonzero, keep = Scc::keep;
  switch (i.op) {
    case Op::s_add_u32:
      return carrying<u32, [](u32 a, u32 b, u32& scc) {
        const u32 r = a + b;
        scc = r < a;
        return r;
      }>(i);
    case Op::s_sub_u32:
      return carrying<u32, [](u32 a, u32 b, u32& scc) {
        scc = a < b;
        return a - b;
      }>(i);
    case Op::s_add_i32:
      return carrying<u32, ([](u32 a, u32 b, u32& scc) {
                        const u32 r = a + b;
                        scc = ((a ^ r) & (b ^ r)) >> 31;
                        return r;
                      })>(i);
    case Op::s_sub_i32:
      return carrying<u32, ([](u32 a, u32 b, u32& scc) {
                        const u32 r = a - b;
                        scc = ((a ^ b) & (a ^ r)) >> 31;
                        return r;
                      })>(i);
    case Op::s_addc_u32:
      return carrying<u32, ([](u32 a, u32 b, u32& scc) {
                        const u64 r = u64{a} + b + scc;
                        scc = r >> 32 != 0;
                        return static_cast<u32>(r);
                      })>(i);
    case Op::s_subb_u32:
      return carrying<u32, ([](u32 a, u32 b, u32& scc) {
                        const u64 s = u64{b} + scc;
                        scc = s > a;
                        return static_cast<u32>(a - s);
                      })>(i);
    case Op::s_min_i32:
      return carrying<i32, [](i32 a, i32 b, u32& scc) {
        scc = a < b;
        return scc != 0 ? a : b;
      }>(i);
    case Op::s_min_u32:
      return carrying<u32, [](u32 a, u32 b, u32& scc) {
        scc = a < b;
        return scc != 0 ? a : b;
      }>(i);
    case Op::s_max_i32:
      return carrying<i32, ([](i32 a, i32 b, u32& scc) {
                        scc = a >= b;
                        return scc != 0 ? a : b;
                      })>(i);
    case Op::s_max_u32:
      return carrying<u32, ([](u32 a, u32 b, u32& scc) {
                        scc = a >= b;
                        return scc != 0 ? a : b;
                      })>(i);
    case Op::s_cselect_b32:
      return carrying<u32, [](u32 a, u32 b, u32& scc) { return scc != 0 ? a : b; }>(i);
    case Op::s_cselect_b64:
      return carrying<u64, [](u64 a, u64 b, u32& scc) { return scc != 0 ? a : b; }>(i);
    case Op::s_and_b32:
      return binary<u32, u32, nonzero, [](u32 a, u32 b) { return a & b; }>(i);
    case Op::s_and_b64:
      return binary<u64, u64, nonzero, [](u64 a, u64 b) { return a & b; }>(i);
    case Op::s_or_b32:
      return binary<u32, u32, nonzero, [](u32 a, u32 b) { return a | b; }>(i);
    case Op::s_or_b64:
      return binary<u64, u64, nonzero, [](u64 a, u64 b) { return a | b; }>(i);
    case Op::s_xor_b32:
      return binary<u32, u32, nonzero, [](u32 a, u32 b) { return a ^ b; }>(i);
    case Op::s_xor_b64:
      return binary<u64, u64, nonzero, [](u64 a, u64 b) { return a ^ b; }>(i);
    case Op::s_andn2_b32:
      return binary<u32, u32, nonzero, [](u32 a, u32 b) { return a & ~b; }>(i);
    case Op::s_andn2_b64:
      return binary<u64, u64, nonzero, [](u64 a, u64 b) { return a & ~b; }>(i);
    case Op::s_orn2_b32:
      return binary<u32, u32, nonzero, [](u32 a, u32 b) { return a | ~b; }>(i);
    case Op::s_orn2_b64:
      return binary<u64, u64, nonzero, [](u64 a, u64 b) { return a | ~b; }>(i);
    case Op::s_nand_b32:
      return binary<u32, u32, nonzero, [](u32 a, u32 b) { return ~(a & b); }>(i);
    case Op::s_nand_b64:
      return binary<u64, u64, nonzero, [](u64 a, u64 b) { return ~(a & b); }>(i);
    case Op::s_nor_b32:
      return binary<u32, u32, nonzero, [](u32 a, u32 b) { return ~(a | b); }>(i);
    case Op::s_nor_b64:
      return binary<u64, u64, nonzero, [](u64 a, u64 b) { return ~(a | b); }>(i);
    case Op::s_xnor_b32:
      return binary<u32, u32, nonzero, [](u32 a, u32 b) { return ~(a ^ b); }>(i);
    case Op::s_xnor_b64:
      return binary<u64, u64, nonzero, [](u64 a, u64 b) { return ~(a ^ b); }>(i);
    case Op::s_lshl_b32:
      return binary<u32, u32, nonzero, [](u32 a, u32 b) { return a << (b & 31); }>(i);
    case Op::s_lshl_b64:
      return binary<u64, u32, nonzero, [](u64 a, u32 b) { return a << (b & 63); }>(i);
    case Op::s_lshr_b32:
      return binary<u32, u32, nonzero, ([](u32 a, u32 b) { return a >> (b & 31); })>(i);
    case Op::s_lshr_b64:
      return binary<u64, u32, nonzero, ([](u64 a, u32 b) { return a >> (b & 63); })>(i);
    case Op::s_ashr_i32:
      return binary<i32, u32, nonzero, ([](i32 a, u32 b) { return a >> (b & 31); })>(i);
    case Op::s_ashr_i64:
      return binary<i64, u32, nonzero, ([](i64 a, u32 b) { return a >> (b & 63); })>(i);
    case Op::s_bfm_b32:
      return binary<u32, u32, keep, ([](u32 a, u32 b) { return low_bits<u32>(a & 31) << (b & 31); })>(i);
    case Op::s_bfm_b64:
      return binary<u32, u32, keep, ([](u32 a, u32 b) { return low_bits<u64>(a & 63) << (b & 63); })>(i);
    case Op::s_mul_i32:
      return binary<u32, u32, keep, [](u32 a, u32 b) { return a * b; }>(i);
    case Op::s_bfe_u32:
      return binary<u32, u32, nonzero, [](u32 a, u32 b) { return field_unsigned(a, b); }>(i);
    case Op::s_bfe_i32:
      return binary<u32, u32, nonzero, [](u32 a, u32 b) { return field_signed(a, b); }>(i);
    case Op::s_bfe_u64:
      return binary<u64, u32, nonzero, [](u64 a, u32 b) { return field_unsigned(a, b); }>(i);
    case Op::s_bfe_i64:
      return binary<i64, u32, nonzero, ([](i64 a, u32 b) { return field_signed(static_cast<u64>(a), b); })>(
          i);
    case Op::s_absdiff_i32:
      return binary<u32, u32, nonzero, ([](u32 a, u32 b) {
                      const u32 d = a - b;
                      return d >> 31 != 0 ? 0u - d : d;
                    })>(i);
    case Op::s_mul_hi_u32:
      return binary<u32, u32, keep, ([](u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); })>(i);
    case Op::s_mul_hi_i32:
      return binary<i32, i32, keep, ([](i32 a, i32 b) { return static_cast<i32>(i64{a} * b >> 32); })>(i);
    case Op::s_lshl1_add_u32:
      return carrying<u32, shift_add<1>>(i);
    case Op::s_lshl2_add_u32:
      return carrying<u32, shift_add<2>>(i);
    case Op::s_lshl3_add_u32:
      return carrying<u32, shift_add<3>>(i);
    case Op::s_lshl4_add_u32:
      return carrying<u32, shift_add<4>>(i);
    case Op::s_pack_ll_b32_b16:
      return binary<u32, u32, keep, [](u32 a, u32 b) { return (a & 0xffff) | b << 16; }>(i);
    case Op::s_pack_lh_b32_b16:
      return binary<u32, u32, keep, [](u32 a, u32 b) { return (a & 0xffff) | (b & 0xffff0000); }>(i);
    case Op::s_pack_hh_b32_b16:
      return binary<u32, u32, keep, ([](u32 a, u32 b) { return a >> 16 | (b & 0xffff0000); })>(i);
    default:
      return nullptr;
  }
}

Handler sopc(const Instruction& i) {
  switch (i.op) {
    case Op::s_cmp_eq_i32:
    case Op::s_cmp_eq_u32:
      return compare<u32, u32, equal>(i);
    case Op::s_cmp_lg_i32:
    case Op::s_cmp_lg_u32:
      return compare<u32, u32, different>(i);
    case Op::s_cmp_gt_i32:
      return compare<i32, i32, greater>(i);
    case Op::s_cmp_ge_i32:
      return compare<i32, i32, greater_equal>(i);
    case Op::s_cmp_lt_i32:
      return compare<i32, i32, less>(i);
    case Op::s_cmp_le_i32:
      return compare<i32, i32, less_equal>(i);
    case Op::s_cmp_gt_u32:
      return compare<u32, u32, greater>(i);
    case Op::s_cmp_ge_u32:
      return compare<u32, u32, greater_equal>(i);
    case Op::s_cmp_lt_u32:
      return compare<u32, u32, less>(i);
    case Op::s_cmp_le_u32:
      return compare<u32, u32, less_equal>(i);
    case Op::s_cmp_eq_u64:
      return compare<u64, u64, equal>(i);
    case Op::s_cmp_lg_u64:
      return compare<u64, u64, different>(i);
    case Op::s_bitcmp0_b32:
      return compare<u32, u32, ([](u32 a, u32 b) { return (a >> (b & 31) & 1) == 0; })>(i);
    case Op::s_bitcmp1_b32:
      return compare<u32, u32, ([](u32 a, u32 b) { return (a >> (b & 31) & 1) != 0; })>(i);
    case Op::s_bitcmp0_b64:
      return compare<u64, u32, ([](u64 a, u32 b) { return (a >> (b & 63) & 1) == 0; })>(i);
    case Op::s_bitcmp1_b64:
      return compare<u64, u32, ([](u64 a, u32 b) { return (a >> (b & 63) & 1) != 0; })>(i);
    default:
      return nullptr;
  }
}

Handler sopk(const Instruction& i) {
  switch (i.op) {
    case Op::s_movk_i32:
      return [](Wave& w, const Instruction& n) { w.sgpr[n.dst] = static_cast<u32>(n.imm); };
    case Op::s_cmovk_i32:
      return [](Wave& w, const Instruction& n) {
        if (w.scc != 0) w.sgpr[n.dst] = static_cast<u32>(n.imm);
      };
    case Op::s_addk_i32:
      return [](Wave& w, const Instruction& n) {
        const u32 a = w.sgpr[n.dst], b = static_cast<u32>(n.imm), r = a + b;
        w.sgpr[n.dst] = r;
        w.scc = ((a ^ r) & (b ^ r)) >> 31;
      };
    case Op::s_mulk_i32:
      return [](Wave& w, const Instruction& n) { w.sgpr[n.dst] *= static_cast<u32>(n.imm); };
    case Op::s_cmpk_eq_i32:
      return compare_k<i32, equal>(i);
    case Op::s_cmpk_lg_i32:
      return compare_k<i32, different>(i);
    case Op::s_cmpk_gt_i32:
      return compare_k<i32, greater>(i);
    case Op::s_cmpk_ge_i32:
      return compare_k<i32, greater_equal>(i);
    case Op::s_cmpk_lt_i32:
      return compare_k<i32, less>(i);
    case Op::s_cmpk_le_i32:
      return compare_k<i32, less_equal>(i);
    case Op::s_cmpk_eq_u32:
      return compare_k<u32, equal>(i);
    case Op::s_cmpk_lg_u32:
      return compare_k<u32, different>(i);
    case Op::s_cmpk_gt_u32:
      return compare_k<u32, greater>(i);
    case Op::s_cmpk_ge_u32:
      return compare_k<u32, greater_equal>(i);
    case Op::s_cmpk_lt_u32:
      return compare_k<u32, less>(i);
    case Op::s_cmpk_le_u32:
      return compare_k<u32, less_equal>(i);
    default:
      return nullptr;
  }
}

}  // namespace

Handler arithmetic_handler(const Instruction& i) {
  switch (i.encoding) {
    case Encoding::sop1:
      return sop1(i);
    case Encoding::sop2:
      return sop2(i);
    case Encoding::sopc:
      return sopc(i);
    case Encoding::sopk:
      return sopk(i);
    default:
      return nullptr;
  }
}

}  // namespace attest::device::sim::scalar
