// SPDX-License-Identifier: MIT
//
// Every scalar instruction, one at a time, against a second model.
//
// The handlers compute with the machine's integers; the model knows integers without bounds (__int128, wide
// enough for anything two 64-bit operands give) and single bits, and gets each result from the definition: a
// sum is the sum, the carry is "does it fit". Operands are read by the model's own rules as well.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/simulator/core/fault.h"
#include "device/simulator/core/memory.h"
#include "device/simulator/core/program.h"
#include "device/simulator/core/workgroup.h"
#include "device/simulator/exec/handlers.h"
#include "device/simulator/isa/decode.h"
#include "device/simulator/isa/encodings.h"

namespace attest::device::sim {
namespace {

using Wide = __int128;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct Random {
  u64 state;
  u64 operator()() {
    u64 z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  u32 below(u32 n) { return static_cast<u32>((*this)() >> 33) % n; }
};

// ---- the model ----

Wide power(int n) {
  return Wide{1} << n;
}
Wide modulo(Wide x, int bits) {
  return ((x % power(bits)) + power(bits)) % power(bits);
}
Wide as_signed(Wide pattern, int bits) {
  return pattern >= power(bits - 1) ? pattern - power(bits) : pattern;
}
int bit(Wide pattern, int position) {
  return static_cast<int>(pattern / power(position) % 2);
}

/// The pattern whose bit k is f(k).
template <typename F>
Wide build(int bits, F f) {
  Wide result = 0;
  for (int k = 0; k < bits; ++k)
    if (f(k)) result += power(k);
  return result;
}

/// What goes in: operands as bit patterns (numbers from 0 up), what comes out likewise.
struct In {
  Wide a = 0, b = 0, old = 0, exec = 0;
  int scc = 0;
};
struct Out {
  std::optional<Wide> d;  ///< nothing: the destination keeps its value
  int scc = 0;
  std::optional<Wide> exec = std::nullopt;
};
using Model = std::function<Out(const In&)>;

Out keeping(const In& in, Wide d) {
  return {d, in.scc};
}
Out nonzero(Wide d) {
  return {d, d != 0};
}

Model logic(int bits, bool (*f)(int, int)) {
  return [=](const In& in) {
    return nonzero(build(bits, [&](int k) { return f(bit(in.a, k), bit(in.b, k)); }));
  };
}
Model compare(int bits, bool is_signed, bool (*f)(Wide, Wide)) {
  return [=](const In& in) {
    const Wide a = is_signed ? as_signed(in.a, bits) : in.a, b = is_signed ? as_signed(in.b, bits) : in.b;
    return Out{std::nullopt, f(a, b)};
  };
}
/// Bit k of an unbounded two's complement number.
int endless_bit(Wide pattern, int bits, bool is_signed, int k) {
  return k < bits ? bit(pattern, k) : is_signed ? bit(pattern, bits - 1) : 0;
}
Model field(int bits, bool is_signed) {
  return [=](const In& in) {
    const int offset = static_cast<int>(in.b % (bits == 64 ? 64 : 32)),
              width = static_cast<int>(in.b / power(16) % 128);
    if (width == 0) return nonzero(0);
    return nonzero(build(bits, [&](int k) {
      const int from = k < width ? k : is_signed ? width - 1 : -1;
      return from >= 0 && endless_bit(in.a, bits, is_signed, offset + from) != 0;
    }));
  };
}
Model shift_add(int n) {
  return [=](const In& in) {
    const Wide sum = in.a * power(n) + in.b;
    return Out{modulo(sum, 32), sum >= power(32)};
  };
}
Model search(int bits, int wanted, bool from_top) {
  return [=](const In& in) {
    for (int k = 0; k < bits; ++k)
      if (bit(in.a, from_top ? bits - 1 - k : k) == wanted) return keeping(in, k);
    return keeping(in, modulo(-1, 32));
  };
}
Model sign_run(int bits) {
  return [=](const In& in) {
    for (int k = 1; k < bits; ++k)
      if (bit(in.a, bits - 1 - k) != bit(in.a, bits - 1)) return keeping(in, k);
    return keeping(in, modulo(-1, 32));
  };
}
Model count(int bits, int wanted) {
  return [=](const In& in) {
    int n = 0;
    for (int k = 0; k < bits; ++k) n += bit(in.a, k) == wanted;
    return nonzero(n);
  };
}
Model set_bit(int bits, bool value) {
  return [=](const In& in) {
    const int at = static_cast<int>(in.a % bits);
    return keeping(in, build(bits, [&](int k) { return k == at ? value : bit(in.old, k) != 0; }));
  };
}
Model test_bit(int bits, int wanted) {
  return [=](const In& in) { return Out{std::nullopt, bit(in.a, static_cast<int>(in.b % bits)) == wanted}; };
}
Model shift(int bits, bool left, bool is_signed) {
  return [=](const In& in) {
    const int n = static_cast<int>(in.b % bits);
    if (left) return nonzero(modulo(in.a * power(n) % power(bits), bits));
    return nonzero(build(bits, [&](int k) { return endless_bit(in.a, bits, is_signed, k + n) != 0; }));
  };
}
Model mask(int bits) {
  return [=](const In& in) {
    const int width = static_cast<int>(in.a % bits), offset = static_cast<int>(in.b % bits);
    return keeping(in, build(bits, [&](int k) { return k >= offset && k < offset + width; }));
  };
}
Model pack(int low_from, int high_from) {
  return [=](const In& in) {
    return keeping(in, in.a / power(low_from) % power(16) + in.b / power(high_from) % power(16) * power(16));
  };
}
Model extend(int bits) {
  return [=](const In& in) { return keeping(in, modulo(as_signed(in.a % power(bits), bits), 32)); };
}
bool any_in_quad(Wide a, int quad) {
  for (int k = 0; k < 4; ++k)
    if (bit(a, quad * 4 + k) != 0) return true;
  return false;
}
Model save_exec(bool (*f)(int s, int exec), bool keep_old) {
  return [=](const In& in) {
    const Wide next = build(64, [&](int k) { return f(bit(in.a, k), bit(in.exec, k)); });
    return Out{keep_old ? in.exec : next, next != 0, next};
  };
}
Model pick(bool is_signed, bool (*first)(Wide, Wide)) {
  return [=](const In& in) {
    const bool take = is_signed ? first(as_signed(in.a, 32), as_signed(in.b, 32)) : first(in.a, in.b);
    return Out{take ? in.a : in.b, take};
  };
}
/// A result that counts as a signed 32-bit number; SCC: it does not fit.
Out overflowing(Wide exact) {
  return {modulo(exact, 32), exact < -power(31) || exact >= power(31)};
}

const std::map<Op, Model>& models() {
  const auto eq = [](Wide a, Wide b) { return a == b; };
  const auto ne = [](Wide a, Wide b) { return a != b; };
  const auto gt = [](Wide a, Wide b) { return a > b; };
  const auto ge = [](Wide a, Wide b) { return a >= b; };
  const auto lt = [](Wide a, Wide b) { return a < b; };
  const auto le = [](Wide a, Wide b) { return a <= b; };
  const auto s32 = [](Wide x) { return as_signed(x, 32); };
  static const std::map<Op, Model> all = {
      {Op::s_mov_b32, [](const In& in) { return keeping(in, in.a); }},
      {Op::s_mov_b64, [](const In& in) { return keeping(in, in.a); }},
      {Op::s_cmov_b32, [](const In& in) { return keeping(in, in.scc != 0 ? in.a : in.old); }},
      {Op::s_cmov_b64, [](const In& in) { return keeping(in, in.scc != 0 ? in.a : in.old); }},
      {Op::s_not_b32, [](const In& in) { return nonzero(power(32) - 1 - in.a); }},
      {Op::s_not_b64, [](const In& in) { return nonzero(power(64) - 1 - in.a); }},
      {Op::s_wqm_b32, [](const In& in) { return nonzero(build(32, [&](int k) { return any_in_quad(in.a, k / 4); })); }},
      {Op::s_wqm_b64, [](const In& in) { return nonzero(build(64, [&](int k) { return any_in_quad(in.a, k / 4); })); }},
      {Op::s_quadmask_b32, [](const In& in) { return nonzero(build(8, [&](int k) { return any_in_quad(in.a, k); })); }},
      {Op::s_quadmask_b64, [](const In& in) { return nonzero(build(16, [&](int k) { return any_in_quad(in.a, k); })); }},
      {Op::s_brev_b32, [](const In& in) { return keeping(in, build(32, [&](int k) { return bit(in.a, 31 - k) != 0; })); }},
      {Op::s_brev_b64, [](const In& in) { return keeping(in, build(64, [&](int k) { return bit(in.a, 63 - k) != 0; })); }},
      {Op::s_bitreplicate_b64_b32, [](const In& in) { return keeping(in, build(64, [&](int k) { return bit(in.a, k / 2) != 0; })); }},
      {Op::s_bcnt0_i32_b32, count(32, 0)},
      {Op::s_bcnt0_i32_b64, count(64, 0)},
      {Op::s_bcnt1_i32_b32, count(32, 1)},
      {Op::s_bcnt1_i32_b64, count(64, 1)},
      {Op::s_ff0_i32_b32, search(32, 0, false)},
      {Op::s_ff0_i32_b64, search(64, 0, false)},
      {Op::s_ff1_i32_b32, search(32, 1, false)},
      {Op::s_ff1_i32_b64, search(64, 1, false)},
      {Op::s_flbit_i32_b32, search(32, 1, true)},
      {Op::s_flbit_i32_b64, search(64, 1, true)},
      {Op::s_flbit_i32, sign_run(32)},
      {Op::s_flbit_i32_i64, sign_run(64)},
      {Op::s_sext_i32_i8, extend(8)},
      {Op::s_sext_i32_i16, extend(16)},
      {Op::s_bitset0_b32, set_bit(32, false)},
      {Op::s_bitset0_b64, set_bit(64, false)},
      {Op::s_bitset1_b32, set_bit(32, true)},
      {Op::s_bitset1_b64, set_bit(64, true)},
      {Op::s_abs_i32, [=](const In& in) { return nonzero(modulo(s32(in.a) < 0 ? -s32(in.a) : s32(in.a), 32)); }},
      {Op::s_and_saveexec_b64, save_exec([](int s, int e) { return s == 1 && e == 1; }, true)},
      {Op::s_or_saveexec_b64, save_exec([](int s, int e) { return s == 1 || e == 1; }, true)},
      {Op::s_xor_saveexec_b64, save_exec([](int s, int e) { return s != e; }, true)},
      {Op::s_andn2_saveexec_b64, save_exec([](int s, int e) { return s == 1 && e == 0; }, true)},
      {Op::s_orn2_saveexec_b64, save_exec([](int s, int e) { return s == 1 || e == 0; }, true)},
      {Op::s_nand_saveexec_b64, save_exec([](int s, int e) { return s == 0 || e == 0; }, true)},
      {Op::s_nor_saveexec_b64, save_exec([](int s, int e) { return s == 0 && e == 0; }, true)},
      {Op::s_xnor_saveexec_b64, save_exec([](int s, int e) { return s == e; }, true)},
      {Op::s_andn1_saveexec_b64, save_exec([](int s, int e) { return s == 0 && e == 1; }, true)},
      {Op::s_orn1_saveexec_b64, save_exec([](int s, int e) { return s == 0 || e == 1; }, true)},
      {Op::s_andn1_wrexec_b64, save_exec([](int s, int e) { return s == 0 && e == 1; }, false)},
      {Op::s_andn2_wrexec_b64, save_exec([](int s, int e) { return s == 1 && e == 0; }, false)},

      {Op::s_add_u32, [](const In& in) { return Out{modulo(in.a + in.b, 32), in.a + in.b >= power(32)}; }},
      {Op::s_sub_u32, [](const In& in) { return Out{modulo(in.a - in.b, 32), in.a - in.b < 0}; }},
      {Op::s_addc_u32, [](const In& in) { return Out{modulo(in.a + in.b + in.scc, 32), in.a + in.b + in.scc >= power(32)}; }},
      {Op::s_subb_u32, [](const In& in) { return Out{modulo(in.a - in.b - in.scc, 32), in.a - in.b - in.scc < 0}; }},
      {Op::s_add_i32, [=](const In& in) { return overflowing(s32(in.a) + s32(in.b)); }},
      {Op::s_sub_i32, [=](const In& in) { return overflowing(s32(in.a) - s32(in.b)); }},
      {Op::s_min_i32, pick(true, lt)},
      {Op::s_min_u32, pick(false, lt)},
      {Op::s_max_i32, pick(true, ge)},
      {Op::s_max_u32, pick(false, ge)},
      {Op::s_cselect_b32, [](const In& in) { return keeping(in, in.scc != 0 ? in.a : in.b); }},
      {Op::s_cselect_b64, [](const In& in) { return keeping(in, in.scc != 0 ? in.a : in.b); }},
      {Op::s_and_b32, logic(32, [](int a, int b) { return a == 1 && b == 1; })},
      {Op::s_and_b64, logic(64, [](int a, int b) { return a == 1 && b == 1; })},
      {Op::s_or_b32, logic(32, [](int a, int b) { return a == 1 || b == 1; })},
      {Op::s_or_b64, logic(64, [](int a, int b) { return a == 1 || b == 1; })},
      {Op::s_xor_b32, logic(32, [](int a, int b) { return a != b; })},
      {Op::s_xor_b64, logic(64, [](int a, int b) { return a != b; })},
      {Op::s_andn2_b32, logic(32, [](int a, int b) { return a == 1 && b == 0; })},
      {Op::s_andn2_b64, logic(64, [](int a, int b) { return a == 1 && b == 0; })},
      {Op::s_orn2_b32, logic(32, [](int a, int b) { return a == 1 || b == 0; })},
      {Op::s_orn2_b64, logic(64, [](int a, int b) { return a == 1 || b == 0; })},
      {Op::s_nand_b32, logic(32, [](int a, int b) { return a == 0 || b == 0; })},
      {Op::s_nand_b64, logic(64, [](int a, int b) { return a == 0 || b == 0; })},
      {Op::s_nor_b32, logic(32, [](int a, int b) { return a == 0 && b == 0; })},
      {Op::s_nor_b64, logic(64, [](int a, int b) { return a == 0 && b == 0; })},
      {Op::s_xnor_b32, logic(32, [](int a, int b) { return a == b; })},
      {Op::s_xnor_b64, logic(64, [](int a, int b) { return a == b; })},
      {Op::s_lshl_b32, shift(32, true, false)},
      {Op::s_lshl_b64, shift(64, true, false)},
      {Op::s_lshr_b32, shift(32, false, false)},
      {Op::s_lshr_b64, shift(64, false, false)},
      {Op::s_ashr_i32, shift(32, false, true)},
      {Op::s_ashr_i64, shift(64, false, true)},
      {Op::s_bfm_b32, mask(32)},
      {Op::s_bfm_b64, mask(64)},
      {Op::s_mul_i32, [](const In& in) { return keeping(in, in.a * in.b % power(32)); }},
      {Op::s_mul_hi_u32, [](const In& in) { return keeping(in, in.a * in.b / power(32)); }},
      {Op::s_mul_hi_i32, [=](const In& in) { const Wide p = s32(in.a) * s32(in.b); return keeping(in, modulo((p - modulo(p, 32)) / power(32), 32)); }},
      {Op::s_bfe_u32, field(32, false)},
      {Op::s_bfe_i32, field(32, true)},
      {Op::s_bfe_u64, field(64, false)},
      {Op::s_bfe_i64, field(64, true)},
      // The difference wraps before its sign is looked at.
      {Op::s_absdiff_i32, [=](const In& in) { const Wide d = s32(modulo(in.a - in.b, 32)); return nonzero(modulo(d < 0 ? -d : d, 32)); }},
      {Op::s_lshl1_add_u32, shift_add(1)},
      {Op::s_lshl2_add_u32, shift_add(2)},
      {Op::s_lshl3_add_u32, shift_add(3)},
      {Op::s_lshl4_add_u32, shift_add(4)},
      {Op::s_pack_ll_b32_b16, pack(0, 0)},
      {Op::s_pack_lh_b32_b16, pack(0, 16)},
      {Op::s_pack_hh_b32_b16, pack(16, 16)},

      {Op::s_cmp_eq_i32, compare(32, true, eq)},
      {Op::s_cmp_lg_i32, compare(32, true, ne)},
      {Op::s_cmp_gt_i32, compare(32, true, gt)},
      {Op::s_cmp_ge_i32, compare(32, true, ge)},
      {Op::s_cmp_lt_i32, compare(32, true, lt)},
      {Op::s_cmp_le_i32, compare(32, true, le)},
      {Op::s_cmp_eq_u32, compare(32, false, eq)},
      {Op::s_cmp_lg_u32, compare(32, false, ne)},
      {Op::s_cmp_gt_u32, compare(32, false, gt)},
      {Op::s_cmp_ge_u32, compare(32, false, ge)},
      {Op::s_cmp_lt_u32, compare(32, false, lt)},
      {Op::s_cmp_le_u32, compare(32, false, le)},
      {Op::s_cmp_eq_u64, compare(64, false, eq)},
      {Op::s_cmp_lg_u64, compare(64, false, ne)},
      {Op::s_bitcmp0_b32, test_bit(32, 0)},
      {Op::s_bitcmp1_b32, test_bit(32, 1)},
      {Op::s_bitcmp0_b64, test_bit(64, 0)},
      {Op::s_bitcmp1_b64, test_bit(64, 1)},

      // SOPK: b is the 16-bit field, extended by each as it says.
      {Op::s_movk_i32, [](const In& in) { return keeping(in, modulo(as_signed(in.b, 16), 32)); }},
      {Op::s_cmovk_i32, [](const In& in) { return keeping(in, in.scc != 0 ? modulo(as_signed(in.b, 16), 32) : in.old); }},
      {Op::s_addk_i32, [=](const In& in) { return overflowing(s32(in.old) + as_signed(in.b, 16)); }},
      {Op::s_mulk_i32, [=](const In& in) { return keeping(in, modulo(in.old * as_signed(in.b, 16), 32)); }},
      {Op::s_cmpk_eq_i32, [=](const In& in) { return Out{std::nullopt, s32(in.a) == as_signed(in.b, 16)}; }},
      {Op::s_cmpk_lg_i32, [=](const In& in) { return Out{std::nullopt, s32(in.a) != as_signed(in.b, 16)}; }},
      {Op::s_cmpk_gt_i32, [=](const In& in) { return Out{std::nullopt, s32(in.a) > as_signed(in.b, 16)}; }},
      {Op::s_cmpk_ge_i32, [=](const In& in) { return Out{std::nullopt, s32(in.a) >= as_signed(in.b, 16)}; }},
      {Op::s_cmpk_lt_i32, [=](const In& in) { return Out{std::nullopt, s32(in.a) < as_signed(in.b, 16)}; }},
      {Op::s_cmpk_le_i32, [=](const In& in) { return Out{std::nullopt, s32(in.a) <= as_signed(in.b, 16)}; }},
      {Op::s_cmpk_eq_u32, [](const In& in) { return Out{std::nullopt, in.a == in.b}; }},
      {Op::s_cmpk_lg_u32, [](const In& in) { return Out{std::nullopt, in.a != in.b}; }},
      {Op::s_cmpk_gt_u32, [](const In& in) { return Out{std::nullopt, in.a > in.b}; }},
      {Op::s_cmpk_ge_u32, [](const In& in) { return Out{std::nullopt, in.a >= in.b}; }},
      {Op::s_cmpk_lt_u32, [](const In& in) { return Out{std::nullopt, in.a < in.b}; }},
      {Op::s_cmpk_le_u32, [](const In& in) { return Out{std::nullopt, in.a <= in.b}; }},
  };
  return all;
}

/// Executed, but not by a model of values: each has a test case of its own below.
const std::vector<Op>& tested_by_hand() {
  static const std::vector<Op> list = {Op::s_getpc_b64,       Op::s_setpc_b64,   Op::s_swappc_b64,
                                       Op::s_call_b64,        Op::s_movrels_b32, Op::s_movrels_b64,
                                       Op::s_movreld_b32,     Op::s_movreld_b64, Op::s_set_gpr_idx_idx,
                                       Op::s_set_gpr_idx_on,  Op::s_getreg_b32,  Op::s_setreg_b32,
                                       Op::s_setreg_imm32_b32};
  return list;
}

/// In the ISA, not executed; the program loader says so when a wave gets there.
const std::vector<Op>& not_executed() {
  static const std::vector<Op> list = {Op::s_rfe_b64,        Op::s_rfe_restore_b64, Op::s_cbranch_join,
                                       Op::s_cbranch_g_fork, Op::s_cbranch_i_fork,  Op::s_setvskip};
  return list;
}

bool contains(const std::vector<Op>& list, Op op) {
  return std::find(list.begin(), list.end(), op) != list.end();
}

// ---- machine words and a wave ----

u32 word(Op op, u32 dst, u32 src0, u32 src1) {
  for (const Encoding e : {Encoding::sop1, Encoding::sop2, Encoding::sopc, Encoding::sopk, Encoding::sopp}) {
    const EncodingInfo* row = find_encoding(e, op);
    if (row == nullptr) continue;
    const u32 n = row->number;
    switch (e) {
      case Encoding::sop1:
        return 0xbe800000u | dst << 16 | n << 8 | src0;
      case Encoding::sop2:
        return 0x80000000u | n << 23 | dst << 16 | src1 << 8 | src0;
      case Encoding::sopc:
        return 0xbf000000u | n << 16 | src1 << 8 | src0;
      case Encoding::sopk:
        return 0xb0000000u | n << 23 | dst << 16 | (src1 & 0xffff);
      default:
        return 0xbf800000u | n << 16 | (src1 & 0xffff);
    }
  }
  return 0;
}

Instruction decoded(std::vector<u32> words) {
  const Decoded d = decode(words);
  INFO(d.why);
  REQUIRE(d);
  return d.instruction;
}
Instruction decoded(Op op, u32 dst, u32 src0, u32 src1, u32 literal = 0) {
  const Instruction i = decoded({word(op, dst, src0, src1), literal});
  REQUIRE(i.op == op);
  return i;
}

void execute(Wave& w, const Instruction& i) {
  const Handler handler = scalar_handler(i);
  REQUIRE(handler != nullptr);
  handler(w, i);
}

u64 corner(Random& random) {
  constexpr u64 values[] = {0,
                            1,
                            2,
                            31,
                            32,
                            63,
                            0x7f,
                            0x80,
                            0xff,
                            0x7fff,
                            0x8000,
                            0xffff,
                            0x7fffffff,
                            0x80000000,
                            0xffffffff,
                            0x100000000,
                            0x7fffffffffffffff,
                            0x8000000000000000,
                            0xffffffffffffffff,
                            0x200000,
                            0x400000,
                            0x1f0003,
                            0x3f0001,
                            0x7f0000,
                            0x8000000080000000};
  return values[random.below(static_cast<u32>(std::size(values)))];
}
u64 operand_value(Random& random) {
  switch (random.below(4)) {
    case 0:
      return corner(random);
    case 1:
      return random() & random() & random();
    case 2:
      return (random() >> random.below(64)) | u64{random.below(64)} << 16;
    default:
      return random();
  }
}

/// A source code worth testing: registers, constants, literal, the odd ones.
u32 source_code(Random& random) {
  switch (random.below(10)) {
    case 0:
      return 128 + random.below(81);
    case 1:
      return 240 + random.below(9);
    case 2:
      return 255;
    case 3:
      return 251 + random.below(3);
    case 4:
      return 106;
    case 5:
      return 235 + random.below(4);
    default:
      return random.below(46) * 2;
  }
}

/// The model's own reading of an operand.
Wide operand_of(const Wave& w, u32 code, unsigned size, u32 literal, bool is_signed) {
  if (code < 128)
    return size == 1 ? Wide{w.sgpr[code]} : Wide{w.sgpr[code]} + Wide{w.sgpr[code + 1]} * power(32);
  const int bits = static_cast<int>(size) * 32;
  if (code <= 192) return static_cast<int>(code) - 128;
  if (code <= 208) return modulo(192 - static_cast<int>(code), bits);
  const bool vcc_zero = w.sgpr[106] == 0 && w.sgpr[107] == 0,
             exec_zero = w.sgpr[126] == 0 && w.sgpr[127] == 0;
  switch (code) {
    case 235:
      return size == 1 ? aperture::shared_base / (1ull << 32) : aperture::shared_base;
    case 236:
      return size == 1 ? aperture::shared_base / (1ull << 32) : aperture::shared_base + 0xffffffff;
    case 237:
      return size == 1 ? aperture::private_base / (1ull << 32) : aperture::private_base;
    case 238:
      return size == 1 ? aperture::private_base / (1ull << 32) : aperture::private_base + 0xffffffff;
    case 251:
      return vcc_zero;
    case 252:
      return exec_zero;
    case 253:
      return w.scc;
    case 255:
      return size == 2 && is_signed ? modulo(as_signed(literal, 32), 64) : Wide{literal};
    default:
      break;
  }
  // 0.5, 1, 2, 4 by hand: sign, exponent; 1/(2 pi) rounded to each format.
  if (code == 248) return size == 1 ? Wide{0x3e22f983} : Wide{0x3fc45f306dc9c882};
  const int k = static_cast<int>(code - 240), exponent = k / 2 - 1;
  const Wide sign = k % 2;
  return size == 1 ? sign * power(31) + (exponent + 127) * power(23)
                   : sign * power(63) + (exponent + 1023) * power(52);
}

struct Bench {
  explicit Bench(u64 seed) : random{seed} {
    for (u32& r : wave.sgpr) r = static_cast<u32>(operand_value(random));
    if (random.below(4) == 0) wave.set_s64(106, 0);
    if (random.below(4) == 0) wave.set_s64(126, 0);
    wave.scc = random.below(2);
  }
  Random random;
  Wave wave;
};

/// One trial of op; a description of what differs, empty when nothing does.
std::string trial(Op op, u64 seed, const Model& model) {
  Bench bench(seed);
  Random& random = bench.random;
  const OpInfo& shape = info(op);
  const bool k = find_encoding(Encoding::sopk, op) != nullptr;
  const u32 dst = k && shape.dst == Slot::none ? random.below(50) * 2
                  : random.below(8) == 0       ? 106
                                               : random.below(50) * 2;
  const u32 literal = static_cast<u32>(operand_value(random));
  u32 codes[2] = {source_code(random), source_code(random)};
  if (k) codes[0] = dst, codes[1] = static_cast<u32>(operand_value(random)) & 0xffff;
  const unsigned sizes[2] = {dwords(shape.src[0]), dwords(shape.src[1])};
  const Instruction i = decoded(op, dst, codes[0], codes[1], literal);

  const bool is_signed = op == Op::s_ashr_i64 || op == Op::s_bfe_i64;
  const Wave before = bench.wave;
  In in;
  if (sizes[0] != 0) in.a = operand_of(before, codes[0], sizes[0], literal, is_signed);
  if (sizes[1] != 0) in.b = operand_of(before, codes[1], sizes[1], literal, is_signed);
  if (k) in.b = codes[1];
  const unsigned size = dwords(shape.dst);
  if (size != 0) in.old = operand_of(before, dst, size, 0, false);
  in.exec = operand_of(before, 126, 2, 0, false);
  in.scc = static_cast<int>(before.scc);
  const Out out = model(in);

  execute(bench.wave, i);
  Wave expected = before;
  expected.scc = static_cast<u32>(out.scc);
  if (out.exec) {
    expected.sgpr[126] = static_cast<u32>(*out.exec % power(32));
    expected.sgpr[127] = static_cast<u32>(*out.exec / power(32));
  }
  if (out.d) {
    expected.sgpr[dst] = static_cast<u32>(*out.d % power(32));
    if (size == 2) expected.sgpr[dst + 1] = static_cast<u32>(*out.d / power(32));
  }
  std::string wrong;
  for (int r = 0; r < 128; ++r)
    if (bench.wave.sgpr[r] != expected.sgpr[r])
      wrong += " s" + std::to_string(r) + " is " + std::to_string(bench.wave.sgpr[r]) + ", model " +
               std::to_string(expected.sgpr[r]);
  if (bench.wave.scc != expected.scc) wrong += " scc is " + std::to_string(bench.wave.scc);
  if (bench.wave.pc != before.pc || bench.wave.mode != before.mode || bench.wave.state != before.state)
    wrong += " pc, mode or state";
  return wrong;
}

}  // namespace

TEST_CASE("Scalar arithmetic is what the model says") {
  for (std::size_t n = 1; n < op_count; ++n) {
    const Op op = static_cast<Op>(n);
    const bool scalar =
        find_encoding(Encoding::sop1, op) != nullptr || find_encoding(Encoding::sop2, op) != nullptr ||
        find_encoding(Encoding::sopc, op) != nullptr || find_encoding(Encoding::sopk, op) != nullptr;
    if (!scalar) continue;
    INFO(info(op).name);
    const auto model = models().find(op);
    const int lists =
        (model != models().end()) + contains(tested_by_hand(), op) + contains(not_executed(), op);
    CHECK(lists == 1);
    if (contains(not_executed(), op)) CHECK(scalar_handler(decoded(op, 0, 0, 0)) == nullptr);
    if (model == models().end()) continue;
    std::string wrong;
    for (u64 seed = 0; seed < 3000 && wrong.empty(); ++seed)
      wrong = trial(op, seed * op_count + n, model->second);
    INFO(wrong);
    CHECK(wrong.empty());
  }
}

TEST_CASE("The scalar model notices wrong arithmetic") {
  // Neighbours that are easily confused, judged with each other's model.
  const std::pair<Op, Op> pairs[] = {{Op::s_add_u32, Op::s_add_i32},
                                     {Op::s_sub_u32, Op::s_subb_u32},
                                     {Op::s_max_i32, Op::s_max_u32},
                                     {Op::s_mul_hi_u32, Op::s_mul_hi_i32},
                                     {Op::s_bfe_u32, Op::s_bfe_i32},
                                     {Op::s_ashr_i32, Op::s_lshr_b32},
                                     {Op::s_ff0_i32_b32, Op::s_ff1_i32_b32},
                                     {Op::s_flbit_i32, Op::s_flbit_i32_b32},
                                     {Op::s_cmp_lt_i32, Op::s_cmp_lt_u32},
                                     {Op::s_cmpk_eq_i32, Op::s_cmpk_eq_u32},
                                     {Op::s_andn2_saveexec_b64, Op::s_andn1_saveexec_b64},
                                     {Op::s_pack_lh_b32_b16, Op::s_pack_ll_b32_b16},
                                     {Op::s_mov_b32, Op::s_cmov_b32},
                                     {Op::s_orn2_b64, Op::s_or_b64}};
  for (const auto& [op, other] : pairs) {
    INFO(info(op).name);
    bool noticed = false;
    for (u64 seed = 0; seed < 3000 && !noticed; ++seed)
      noticed = !trial(op, seed, models().at(other)).empty();
    CHECK(noticed);
  }
}

TEST_CASE("Scalar registers move relative to m0") {
  Wave w;
  for (u32 r = 0; r < 104; ++r) w.sgpr[r] = 1000 + r;
  w.sgpr[124] = 6;
  execute(w, decoded(Op::s_movrels_b32, 50, 3, 0));
  CHECK(w.sgpr[50] == 1009);
  execute(w, decoded(Op::s_movrels_b64, 52, 4, 0));
  CHECK(w.sgpr[52] == 1010);
  CHECK(w.sgpr[53] == 1011);
  execute(w, decoded(Op::s_movreld_b32, 60, 2, 0));
  CHECK(w.sgpr[66] == 1002);
  CHECK(w.sgpr[60] == 1060);
  execute(w, decoded(Op::s_movreld_b64, 70, 8, 0));
  CHECK(w.s64(76) == (u64{1009} << 32 | 1008));
  w.sgpr[124] = 99;
  for (const Op op : {Op::s_movrels_b32, Op::s_movreld_b32})
    CHECK_THROWS_AS(execute(w, decoded(op, 50, 50, 0)), Fault);
  w.sgpr[124] = 0xffffffff;
  CHECK_THROWS_AS(execute(w, decoded(Op::s_movrels_b64, 50, 2, 0)), Fault);
}

TEST_CASE("GPR indexing leaves its settings in m0 and MODE") {
  Wave w;
  w.sgpr[124] = 0xabcdef12;
  w.sgpr[4] = 0x12345678;
  w.mode = mode::ieee;
  execute(w, decoded({0xbf110904}));  // s_set_gpr_idx_on s4, gpr_idx(SRC0,DST)
  CHECK(w.sgpr[124] == 0xabcd9f78);
  CHECK(w.mode == (mode::ieee | mode::gpr_idx_en));
  w.sgpr[5] = 0xff31;
  execute(w, decoded(Op::s_set_gpr_idx_idx, 0, 5, 0));
  CHECK(w.sgpr[124] == 0xabcd9f31);
  execute(w, decoded({0xbf9d0002}));  // s_set_gpr_idx_mode gpr_idx(SRC1)
  CHECK(w.sgpr[124] == 0xabcd2f31);
  execute(w, decoded({0xbf9c0000}));  // s_set_gpr_idx_off
  CHECK(w.mode == mode::ieee);
  CHECK(w.sgpr[124] == 0xabcd2f31);
}

TEST_CASE("Hardware registers are read and written by field") {
  Wave w;
  Workgroup group;
  group.wave_count = 2;
  group.lds_bytes = 65536;
  w.group = &group;
  w.mode = 0x2f0;
  w.vgpr_count = 512;
  w.sgpr[106] = w.sgpr[107] = 0;
  w.sgpr[126] = 1;
  w.scc = 1;
  const auto hwreg = [](u32 id, u32 offset, u32 width) { return id | offset << 6 | (width - 1) << 11; };
  const auto get = [&](u32 id, u32 offset, u32 width) {
    execute(w, decoded(Op::s_getreg_b32, 8, 0, hwreg(id, offset, width)));
    return w.sgpr[8];
  };
  CHECK(get(1, 0, 32) == 0x2f0);
  CHECK(get(1, 4, 4) == 0xf);
  CHECK(get(1, 9, 1) == 1);
  CHECK(get(2, 0, 1) == 1);   // scc
  CHECK(get(2, 9, 1) == 0);   // execz
  CHECK(get(2, 10, 1) == 1);  // vccz
  CHECK(get(15, 16, 16) == aperture::shared_base >> 48);
  CHECK(get(15, 0, 16) == aperture::private_base >> 48);
  CHECK(get(3, 0, 32) == 0);
  CHECK_THROWS_AS(get(40, 0, 32), Fault);

  w.sgpr[9] = 0xfffffff5;
  execute(w, decoded(Op::s_setreg_b32, 9, 0, hwreg(1, 0, 4)));
  CHECK(w.mode == 0x2f5);
  execute(w, decoded({word(Op::s_setreg_imm32_b32, 0, 0, hwreg(1, 4, 2)), 0}));
  CHECK(w.mode == 0x2c5);
  execute(w, decoded({word(Op::s_setreg_imm32_b32, 0, 0, hwreg(1, 0, 32)), 0x80000001}));
  CHECK(w.mode == 0x80000001);
  execute(w, decoded(Op::s_setreg_b32, 9, 0, hwreg(3, 0, 32)));  // clearing exception flags is allowed
  CHECK_THROWS_AS(execute(w, decoded(Op::s_setreg_b32, 9, 0, hwreg(2, 0, 32))), Fault);
}

TEST_CASE("Jumps") {
  // 0: s_getpc_b64 s[0:1]   1: s_mov_b32 s2, 0x12345678 (8 bytes)   2: s_swappc_b64 s[4:5], s[6:7]
  // 3: s_call_b64 s[8:9], index 1   4: s_setpc_b64 s[6:7]   5: s_endpgm
  const std::vector<u32> code = {word(Op::s_getpc_b64, 0, 0, 0),
                                 word(Op::s_mov_b32, 2, 255, 0),
                                 0x12345678,
                                 word(Op::s_swappc_b64, 4, 6, 0),
                                 word(Op::s_call_b64, 8, 0, 0xfffc),
                                 word(Op::s_setpc_b64, 0, 6, 0),
                                 0xbf810000};
  constexpr u64 base = 0x200000001000;
  ProgramSource source;
  source.text = std::as_bytes(std::span(code));
  source.address = source.entry = base;
  const Program program(source, SimdLevel::baseline);
  REQUIRE(program.size() == 6);

  Wave w;
  w.program = &program;
  const auto step = [&](u32 index) {
    const Bound& bound = program.code()[index];
    w.pc = index + 1;
    bound.handler(w, bound.instruction);
  };
  step(0);
  CHECK(w.s64(0) == base + 4);
  CHECK(w.pc == 1);
  w.set_s64(6, base + 16);
  step(2);
  CHECK(w.s64(4) == base + 16);
  CHECK(w.pc == 3);
  step(3);
  CHECK(w.s64(8) == base + 20);
  CHECK(w.pc == 1);
  w.set_s64(6, base + 24);
  step(4);
  CHECK(w.pc == 5);
  w.set_s64(6, base + 8);  // into the literal
  CHECK_THROWS_AS(step(4), Fault);
  w.set_s64(6, base + 4000);
  CHECK_THROWS_AS(step(2), Fault);
  // A register pair that is source and destination of s_swappc: the old value is the target.
  CHECK(w.s64(4) == base + 16);
}

TEST_CASE("Branches follow scc, vcc and exec") {
  struct Line {
    Op op;
    u32 scc;
    u64 vcc, exec;
    bool taken;
  };
  const Line lines[] = {{Op::s_branch, 0, 0, 0, true},
                        {Op::s_cbranch_scc0, 0, 0, 0, true},
                        {Op::s_cbranch_scc0, 1, 0, 0, false},
                        {Op::s_cbranch_scc1, 0, 0, 0, false},
                        {Op::s_cbranch_scc1, 1, 0, 0, true},
                        {Op::s_cbranch_vccz, 0, 0, 1, true},
                        {Op::s_cbranch_vccz, 0, u64{1} << 63, 1, false},
                        {Op::s_cbranch_vccnz, 0, 0, 1, false},
                        {Op::s_cbranch_vccnz, 0, u64{1} << 40, 1, true},
                        {Op::s_cbranch_execz, 0, 1, 0, true},
                        {Op::s_cbranch_execz, 0, 1, u64{1} << 32, false},
                        {Op::s_cbranch_execnz, 0, 1, 0, false},
                        {Op::s_cbranch_execnz, 0, 1, 1, true},
                        {Op::s_cbranch_cdbgsys, 1, 1, 1, false},
                        {Op::s_cbranch_cdbguser, 1, 1, 1, false},
                        {Op::s_cbranch_cdbgsys_or_user, 1, 1, 1, false},
                        {Op::s_cbranch_cdbgsys_and_user, 1, 1, 1, false}};
  for (const Line& line : lines) {
    INFO(info(line.op).name);
    Wave w;
    w.scc = line.scc;
    w.set_s64(106, line.vcc);
    w.set_s64(126, line.exec);
    w.pc = 11;
    execute(w, decoded({word(line.op, 0, 0, 77)}));
    CHECK(w.pc == (line.taken ? 77u : 11u));
  }
}

TEST_CASE("Waiting, ending, and the rest of SOPP") {
  Wave w;
  const auto run = [&](Op op, u32 imm) { execute(w, decoded({word(op, 0, 0, imm)})); };
  for (const Op op :
       {Op::s_nop, Op::s_waitcnt, Op::s_sleep, Op::s_setprio, Op::s_incperflevel, Op::s_decperflevel}) {
    run(op, 3);
    CHECK(w.state == WaveState::running);
  }
  for (const Op op : {Op::s_wakeup, Op::s_icache_inv, Op::s_ttracedata, Op::s_sethalt}) run(op, 0);
  run(Op::s_sendmsg, 1);
  CHECK(w.pc == 0);
  CHECK(w.state == WaveState::running);
  run(Op::s_barrier, 0);
  CHECK(w.state == WaveState::at_barrier);
  w.state = WaveState::running;
  run(Op::s_endpgm, 0);
  CHECK(w.state == WaveState::ended);

  const auto fault_of = [&](Op op, u32 imm) {
    try {
      run(op, imm);
    } catch (const Fault& fault) {
      return std::string(name(fault.kind)) + ": " + fault.what();
    }
    return std::string();
  };
  CHECK(fault_of(Op::s_trap, 2) == std::string(name(FaultKind::trap)) + ": s_trap 2 (abort)");
  CHECK_FALSE(fault_of(Op::s_sethalt, 1).empty());
  for (const Op op : {Op::s_sendmsghalt, Op::s_endpgm_ordered_ps_done})
    CHECK(scalar_handler(decoded({word(op, 0, 0, 0)})) == nullptr);
  CHECK(scalar_handler(decoded({word(Op::s_sendmsg, 0, 0, 10)})) == nullptr);
}

Instruction smem(Op op, u32 sdata, u32 sbase, std::optional<std::int32_t> imm, std::optional<u32> soffset) {
  const u32 number = find_encoding(Encoding::smem, op)->number;
  u32 w0 = 0xc0000000u | number << 18 | sdata << 6 | sbase / 2, w1 = 0;
  if (imm) {
    w0 |= 1u << 17;
    w1 |= static_cast<u32>(*imm) & 0x1fffff;
  }
  if (soffset) {
    w0 |= 1u << 14;
    w1 |= *soffset << 25;
  }
  return decoded({w0, w1});
}

TEST_CASE("Scalar loads") {
  Memory memory(0);
  const u64 base = memory.allocate(256, "table").value();
  std::vector<u32> table(64);
  for (u32 n = 0; n < 64; ++n) table[n] = 0x5eed0000 + n;
  std::memcpy(memory.translate(base, 256), table.data(), 256);
  Wave w;
  w.memory = &memory;

  const std::pair<Op, u32> loads[] = {{Op::s_load_dword, 1},
                                      {Op::s_load_dwordx2, 2},
                                      {Op::s_load_dwordx4, 4},
                                      {Op::s_load_dwordx8, 8},
                                      {Op::s_load_dwordx16, 16}};
  for (const auto& [op, count] : loads) {
    for (const auto& [imm, soffset, first] :
         std::vector<std::tuple<std::optional<std::int32_t>, std::optional<u32>, u32>>{
             {0, std::nullopt, 16},
             {8, std::nullopt, 18},
             {-64, std::nullopt, 0},
             {std::nullopt, 90, 17},
             {-4, 90, 16},
             {6, std::nullopt, 17}}) {
      for (u32 r = 20; r < 60; ++r) w.sgpr[r] = 7;
      w.set_s64(4, base + 64);
      w.sgpr[90] = 4;
      execute(w, smem(op, 20, 4, imm, soffset));
      for (u32 n = 0; n < 20; ++n) CHECK(w.sgpr[20 + n] == (n < count ? table[first + n] : 7));
    }
    CHECK_THROWS_AS(execute(w, smem(op, 20, 4, 192, std::nullopt)), Fault);
    w.set_s64(4, base + 256 - count * 4);
    execute(w, smem(op, 20, 4, 0, std::nullopt));
    CHECK(w.sgpr[20 + count - 1] == table[63]);
    CHECK_THROWS_AS(execute(w, smem(op, 20, 4, 4, std::nullopt)), Fault);
    w.set_s64(4, 0);
    CHECK_THROWS_AS(execute(w, smem(op, 20, 4, 0, std::nullopt)), Fault);
  }

  const std::pair<Op, u32> buffers[] = {{Op::s_buffer_load_dword, 1},
                                        {Op::s_buffer_load_dwordx2, 2},
                                        {Op::s_buffer_load_dwordx4, 4},
                                        {Op::s_buffer_load_dwordx8, 8},
                                        {Op::s_buffer_load_dwordx16, 16}};
  for (const auto& [op, count] : buffers) {
    for (const u32 stride : {0u, 4u}) {
      for (const u32 offset : {0u, 40u, 90u, 96u, 100u, 1000u}) {
        w.set_s64(8, (base + 16) | u64{stride} << 48);
        w.sgpr[10] = stride == 0 ? 100 : 25;  // bytes, records
        w.sgpr[11] = 0x27000;
        w.sgpr[90] = offset;
        execute(w, smem(op, 20, 8, std::nullopt, 90));
        for (u32 n = 0; n < count; ++n) {
          const u32 at = (offset & ~3u) + n * 4;
          CHECK(w.sgpr[20 + n] == (at + 4 <= 100 ? table[4 + at / 4] : 0));
        }
      }
    }
    w.sgpr[10] = 0xffffffff;  // no bound of its own: memory has the last word
    w.set_s64(8, base);
    w.sgpr[90] = 256;
    CHECK_THROWS_AS(execute(w, smem(op, 20, 8, std::nullopt, 90)), Fault);
  }

  w.instructions = 2100;
  execute(w, smem(Op::s_memtime, 30, 0, std::nullopt, std::nullopt));
  CHECK(w.s64(30) == 8400);
  execute(w, smem(Op::s_memrealtime, 30, 0, std::nullopt, std::nullopt));
  CHECK(w.s64(30) == 400);
  for (const Op op : {Op::s_dcache_inv, Op::s_dcache_inv_vol, Op::s_dcache_wb, Op::s_dcache_wb_vol})
    execute(w, smem(op, 0, 0, std::nullopt, std::nullopt));
}

TEST_CASE("Scalar stores, atomics and scratch accesses") {
  Memory memory(0);
  const u64 base = memory.allocate(256, "table").value();
  const auto at = [&](u64 offset) {
    u32 value = 0;
    std::memcpy(&value, memory.translate(base + offset, 4), 4);
    return value;
  };
  const auto put = [&](u64 offset, u64 value) { std::memcpy(memory.translate(base + offset, 8), &value, 8); };
  Wave w;
  w.memory = &memory;
  for (u32 r = 0; r < 4; ++r) w.sgpr[20 + r] = 0xa0 + r;

  const std::pair<Op, u32> stores[] = {
      {Op::s_store_dword, 1}, {Op::s_store_dwordx2, 2}, {Op::s_store_dwordx4, 4}};
  for (const auto& [op, count] : stores) {
    std::memset(memory.translate(base, 256), 0, 256);
    w.set_s64(4, base + 64);
    execute(w, smem(op, 20, 4, 8, std::nullopt));
    for (u32 n = 0; n < 5; ++n) CHECK(at(72 + 4 * n) == (n < count ? 0xa0 + n : 0));
    CHECK(at(68) == 0);
    CHECK_THROWS_AS(execute(w, smem(op, 20, 4, 192, std::nullopt)), Fault);
  }

  // Ten dwords of buffer: what lies behind them is dropped.
  std::memset(memory.translate(base, 256), 0, 256);
  w.set_s64(8, base);
  w.sgpr[10] = 40;
  w.sgpr[11] = 0x27000;
  execute(w, smem(Op::s_buffer_store_dwordx4, 20, 8, 32, std::nullopt));
  for (u32 n = 0; n < 4; ++n) CHECK(at(32 + 4 * n) == (n < 2 ? 0xa0 + n : 0));

  // The SGPR offset of scratch counts 64 bytes.
  w.set_s64(4, base);
  w.sgpr[90] = 2;
  execute(w, smem(Op::s_scratch_store_dword, 21, 4, std::nullopt, 90));
  CHECK(at(128) == 0xa1);
  execute(w, smem(Op::s_scratch_load_dword, 30, 4, 128, std::nullopt));
  CHECK(w.sgpr[30] == 0xa1);

  const auto returning = [&](Op op, u32 sdata) {
    Instruction i = smem(op, sdata, 4, 16, std::nullopt);
    i.sc0 = true;
    return i;
  };
  const struct {
    Op op, wide;
    u64 old, data, result;
  } operations[] = {
      {Op::s_atomic_swap, Op::s_atomic_swap_x2, 5, 9, 9}, {Op::s_atomic_add, Op::s_atomic_add_x2, 5, 9, 14},
      {Op::s_atomic_sub, Op::s_atomic_sub_x2, 9, 5, 4},   {Op::s_atomic_smin, Op::s_atomic_smin_x2, 5, 3, 3},
      {Op::s_atomic_smax, Op::s_atomic_smax_x2, 5, 3, 5}, {Op::s_atomic_umin, Op::s_atomic_umin_x2, 5, 7, 5},
      {Op::s_atomic_umax, Op::s_atomic_umax_x2, 5, 7, 7}, {Op::s_atomic_and, Op::s_atomic_and_x2, 12, 10, 8},
      {Op::s_atomic_or, Op::s_atomic_or_x2, 12, 10, 14},  {Op::s_atomic_xor, Op::s_atomic_xor_x2, 12, 10, 6},
      {Op::s_atomic_inc, Op::s_atomic_inc_x2, 9, 9, 0},   {Op::s_atomic_dec, Op::s_atomic_dec_x2, 0, 9, 9}};
  for (const auto& o : operations) {
    for (const bool wide : {false, true}) {
      put(16, o.old);
      w.set_s64(24, o.data);
      execute(w, returning(wide ? o.wide : o.op, 24));
      CHECK(at(16) == o.result);
      CHECK(w.sgpr[24] == o.old);
    }
  }
  // min and max know their sign.
  put(16, 0xffffffffU);
  w.sgpr[24] = 1;
  execute(w, smem(Op::s_atomic_smax, 24, 4, 16, std::nullopt));
  CHECK(at(16) == 1);
  CHECK(w.sgpr[24] == 1);  // nothing comes back without GLC

  // The new value is the first, what is compared with the second.
  for (const u32 compared : {7u, 8u}) {
    put(16, 7);
    w.sgpr[24] = 99;
    w.sgpr[25] = compared;
    execute(w, returning(Op::s_atomic_cmpswap, 24));
    CHECK(at(16) == (compared == 7 ? 99 : 7));
    CHECK(w.sgpr[24] == 7);
  }
  w.set_s64(4, base + 4);
  w.set_s64(24, 1);
  CHECK_THROWS_AS(execute(w, smem(Op::s_atomic_add_x2, 24, 4, 16, std::nullopt)), Fault);
}

}  // namespace attest::device::sim
