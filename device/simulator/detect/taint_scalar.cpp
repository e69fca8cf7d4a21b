// SPDX-License-Identifier: MIT
#include "device/simulator/detect/taint_scalar.h"

#include "device/simulator/exec/scalar_operands.h"

namespace attest::device::sim::detect {
namespace {

using u64 = std::uint64_t;

/// A source: its value and its taint.
struct Source {
  u64 value = 0;
  BitTaint taint;
};

constexpr u64 upwards(u64 tainted) {
  return tainted == 0 ? 0 : ~((tainted & (~tainted + 1)) - 1);
}

/// One rule, for each colour: combine(tainted bits of a, of b) -> tainted bits of the result.
template <typename F>
BitTaint per_colour(const Source& a, const Source& b, F&& combine) {
  BitTaint result;
  result.undefined = combine(a.taint.undefined, b.taint.undefined);
  result.inexact = combine(a.taint.inexact, b.taint.inexact);
  if (result.undefined != 0) {
    result.undefined_from = a.taint.undefined != 0 ? a.taint.undefined_from : b.taint.undefined_from;
  }
  if (result.inexact != 0)
    result.inexact_from = a.taint.inexact != 0 ? a.taint.inexact_from : b.taint.inexact_from;
  return result;
}

BitTaint and_taint(const Source& a, const Source& b) {
  return per_colour(a, b, [&](u64 x, u64 y) { return (x | y) & (x | a.value) & (y | b.value); });
}

Source inverted(Source s) {
  s.value = ~s.value;
  return s;
}

/// a | b is not (not a and not b).
BitTaint or_taint(const Source& a, const Source& b) {
  return and_taint(inverted(a), inverted(b));
}

class Transfer {
 public:
  Transfer(WaveTaint& taint, const Step& step)
      : taint_(taint), step_(step), i_(step.instruction), op_(info(i_.op)) {}

  void run() {
    switch (i_.op) {
      case Op::s_mov_b32:
      case Op::s_mov_b64:
        return write_dst(source(0).taint);
      case Op::s_not_b32:
      case Op::s_not_b64: {
        const Source a = source(0);
        return write_logic(a.taint, ~a.value);
      }
      case Op::s_and_b32:
      case Op::s_and_b64:
        return logic(source(0), source(1), Logic::conjunction);
      case Op::s_nand_b32:
      case Op::s_nand_b64:
        return logic(source(0), source(1), Logic::conjunction, true);
      case Op::s_andn2_b32:
      case Op::s_andn2_b64:
        return logic(source(0), inverted(source(1)), Logic::conjunction);
      case Op::s_or_b32:
      case Op::s_or_b64:
        return logic(source(0), source(1), Logic::disjunction);
      case Op::s_nor_b32:
      case Op::s_nor_b64:
        return logic(source(0), source(1), Logic::disjunction, true);
      case Op::s_orn2_b32:
      case Op::s_orn2_b64:
        return logic(source(0), inverted(source(1)), Logic::disjunction);
      case Op::s_xor_b32:
      case Op::s_xor_b64:
        return logic(source(0), source(1), Logic::exclusive);
      case Op::s_xnor_b32:
      case Op::s_xnor_b64:
        return logic(source(0), source(1), Logic::exclusive, true);

      case Op::s_and_saveexec_b64:
        return save_exec(source(0), exec(), Logic::conjunction);
      case Op::s_or_saveexec_b64:
        return save_exec(source(0), exec(), Logic::disjunction);
      case Op::s_xor_saveexec_b64:
        return save_exec(source(0), exec(), Logic::exclusive);
      case Op::s_xnor_saveexec_b64:
        return save_exec(source(0), exec(), Logic::exclusive, true);
      case Op::s_nand_saveexec_b64:
        return save_exec(source(0), exec(), Logic::conjunction, true);
      case Op::s_nor_saveexec_b64:
        return save_exec(source(0), exec(), Logic::disjunction, true);
      case Op::s_andn2_saveexec_b64:
        return save_exec(source(0), inverted(exec()), Logic::conjunction);
      case Op::s_orn2_saveexec_b64:
        return save_exec(source(0), inverted(exec()), Logic::disjunction);
      case Op::s_andn1_saveexec_b64:
        return save_exec(inverted(source(0)), exec(), Logic::conjunction);
      case Op::s_orn1_saveexec_b64:
        return save_exec(inverted(source(0)), exec(), Logic::disjunction);

      case Op::s_cselect_b32:
      case Op::s_cselect_b64:
        return select(source(0).taint, source(1).taint);
      case Op::s_cmov_b32:
      case Op::s_cmov_b64:
        return select(source(0).taint, old_dst());
      case Op::s_cmovk_i32:
        return select(BitTaint(), old_dst());

      case Op::s_lshl_b32:
      case Op::s_lshl_b64:
        return shift([](u64 x, unsigned n, unsigned) { return x << n; });
      case Op::s_lshr_b32:
      case Op::s_lshr_b64:
        return shift([](u64 x, unsigned n, unsigned) { return x >> n; });
      case Op::s_ashr_i32:
      case Op::s_ashr_i64:
        return shift([](u64 x, unsigned n, unsigned bits) {
          return static_cast<u64>(static_cast<std::int64_t>(x << (64 - bits)) >> (64 - bits) >> n);
        });

      case Op::s_add_u32:
      case Op::s_add_i32:
      case Op::s_sub_u32:
      case Op::s_sub_i32:
      case Op::s_mul_i32:
        return sum(source(0).taint, source(1).taint, 0);
      case Op::s_addc_u32:
      case Op::s_subb_u32: {
        BitTaint carried = source(1).taint;
        carried |= taint_.scalar32(scalar::scc);
        return sum(source(0).taint, carried, 0);
      }
      case Op::s_addk_i32:
      case Op::s_mulk_i32:
        return sum(old_dst(), BitTaint(), 0);
      case Op::s_lshl1_add_u32:
        return sum(source(0).taint, source(1).taint, 1);
      case Op::s_lshl2_add_u32:
        return sum(source(0).taint, source(1).taint, 2);
      case Op::s_lshl3_add_u32:
        return sum(source(0).taint, source(1).taint, 3);
      case Op::s_lshl4_add_u32:
        return sum(source(0).taint, source(1).taint, 4);

      case Op::s_cmp_eq_i32:
      case Op::s_cmp_lg_i32:
      case Op::s_cmp_eq_u32:
      case Op::s_cmp_lg_u32:
      case Op::s_cmp_eq_u64:
      case Op::s_cmp_lg_u64:
        return equality(source(0), source(1));
      case Op::s_cmpk_eq_i32:
      case Op::s_cmpk_lg_i32:
      case Op::s_cmpk_eq_u32:
      case Op::s_cmpk_lg_u32:
        return equality(
            source(0),
            {static_cast<std::uint32_t>(
                 i_.op == Op::s_cmpk_eq_u32 || i_.op == Op::s_cmpk_lg_u32 ? i_.imm & 0xffff : i_.imm),
             BitTaint()});
      case Op::s_bitcmp0_b32:
      case Op::s_bitcmp1_b32:
        return bit_test(31);
      case Op::s_bitcmp0_b64:
      case Op::s_bitcmp1_b64:
        return bit_test(63);
      case Op::s_bitset0_b32:
      case Op::s_bitset1_b32:
      case Op::s_bitset0_b64:
      case Op::s_bitset1_b64: {
        const Source place = source(0);
        if (!place.taint.clean()) return anything();
        BitTaint kept = old_dst();
        const u64 bit = u64{1} << (place.value & (dwords(op_.dst) == 2 ? 63 : 31));
        kept.undefined &= ~bit;
        kept.inexact &= ~bit;
        return write_dst(kept);
      }
      case Op::s_pack_ll_b32_b16:
        return pack(0, 0);
      case Op::s_pack_lh_b32_b16:
        return pack(0, 16);
      case Op::s_pack_hh_b32_b16:
        return pack(16, 16);
      default:
        return anything();
    }
  }

 private:
  enum class Logic { conjunction, disjunction, exclusive };

  [[nodiscard]] unsigned bits() const { return dwords(op_.dst) == 2 ? 64 : 32; }
  [[nodiscard]] u64 all() const { return bits() == 64 ? ~u64{0} : 0xffffffffu; }

  [[nodiscard]] Source source(int s) const {
    const std::uint16_t code = i_.src[s];
    const bool wide = dwords(op_.src[s]) == 2;
    Source result;
    result.value =
        wide ? sim::scalar::read64<true>(step_.wave, i_, s) : sim::scalar::read32<true>(step_.wave, i_, s);
    if (code < 128) {
      result.taint = wide ? taint_.scalar64(code) : taint_.scalar32(code);
    } else if (code == operand::scc) {
      result.taint = taint_.scalar32(scalar::scc);
    } else if (code == 251 || code == 252) {
      const std::uint16_t mask = code == 251 ? operand::vcc : operand::exec;
      const BitTaint whole = taint_.scalar64(mask);
      const u64 value = step_.wave.s64(mask);
      result.taint = whole;
      result.taint.undefined = undecided(value, whole.undefined) ? 1 : 0;
      result.taint.inexact = undecided(value, whole.inexact) ? 1 : 0;
    }
    return result;
  }
  [[nodiscard]] Source exec() const { return {step_.wave.exec(), taint_.scalar64(operand::exec)}; }
  [[nodiscard]] BitTaint old_dst() const {
    return dwords(op_.dst) == 2 ? taint_.scalar64(i_.dst) : taint_.scalar32(i_.dst);
  }

  void write(std::uint16_t code, BitTaint t, unsigned width) {
    if (code >= 128) return;
    if (width == 64) return taint_.set_scalar64(code, t);
    t.undefined &= 0xffffffffu;
    t.inexact &= 0xffffffffu;
    taint_.set_scalar32(code, t);
  }
  void write_scc(bool undefined, bool inexact, const BitTaint& like) {
    taint_.set_scalar32(
        scalar::scc, {undefined ? 1u : 0u, inexact ? 1u : 0u, undefined ? like.undefined_from : origin::none,
                      inexact ? like.inexact_from : origin::none});
  }
  /// The destination, and scc where the operation sets it to something about all bits.
  void write_dst(const BitTaint& t) {
    write(i_.dst, t, bits());
    if (op_.has(op_flag::writes_scc)) write_scc(t.undefined != 0, t.inexact != 0, t);
  }
  /// scc is "not zero".
  void write_logic(const BitTaint& t, u64 value) {
    value &= all();
    BitTaint masked = t;
    masked.undefined &= all();
    masked.inexact &= all();
    write(i_.dst, masked, bits());
    write_scc(undecided(value, masked.undefined), undecided(value, masked.inexact), masked);
  }

  static std::pair<BitTaint, u64> combine(const Source& a, const Source& b, Logic how, bool negate) {
    BitTaint t;
    u64 value = 0;
    switch (how) {
      case Logic::conjunction:
        t = and_taint(a, b);
        value = a.value & b.value;
        break;
      case Logic::disjunction:
        t = or_taint(a, b);
        value = a.value | b.value;
        break;
      case Logic::exclusive:
        t = a.taint;
        t |= b.taint;
        value = a.value ^ b.value;
    }
    return {t, negate ? ~value : value};
  }
  void logic(const Source& a, const Source& b, Logic how, bool negate = false) {
    const auto [t, value] = combine(a, b, how, negate);
    write_logic(t, value);
  }
  void save_exec(const Source& a, const Source& b, Logic how, bool negate = false) {
    const BitTaint before = taint_.scalar64(operand::exec);
    const auto [t, value] = combine(a, b, how, negate);
    write(i_.dst, before, 64);
    write(operand::exec, t, 64);
    write_scc(undecided(value, t.undefined), undecided(value, t.inexact), t);
  }

  void select(const BitTaint& if_set, const BitTaint& if_clear) {
    const BitTaint condition = taint_.scalar32(scalar::scc);
    BitTaint chosen = step_.wave.scc != 0 ? if_set : if_clear;
    chosen.adopt_origins(condition);
    if (condition.undefined != 0) chosen.undefined = all();
    if (condition.inexact != 0) chosen.inexact = all();
    write(i_.dst, chosen, bits());
  }

  template <typename F>
  void shift(F&& apply) {
    const Source a = source(0), amount = source(1);
    if (!amount.taint.clean()) return anything();
    const unsigned n = static_cast<unsigned>(amount.value) & (bits() - 1);
    BitTaint t = a.taint;
    t.undefined = apply(a.taint.undefined, n, bits());
    t.inexact = apply(a.taint.inexact, n, bits());
    write_logic(t, apply(a.value, n, bits()));
  }

  void sum(const BitTaint& a, const BitTaint& b, unsigned shifted) {
    BitTaint t = a;
    t.undefined <<= shifted;
    t.inexact <<= shifted;
    t |= b;
    t.undefined = upwards(t.undefined) & 0xffffffffu;
    t.inexact = upwards(t.inexact) & 0xffffffffu;
    write_dst(t);
  }

  /// A pair of bits that differ, both known, decides.
  void equality(const Source& a, const Source& b) {
    BitTaint t = a.taint;
    t |= b.taint;
    const u64 differ = a.value ^ b.value;
    write_scc(undecided(differ, t.undefined), undecided(differ, t.inexact), t);
  }

  void bit_test(u64 mask) {
    const Source a = source(0), place = source(1);
    if (!place.taint.clean()) return anything();
    const u64 n = place.value & mask;
    write_scc((a.taint.undefined >> n & 1) != 0, (a.taint.inexact >> n & 1) != 0, a.taint);
  }

  void pack(unsigned low_from, unsigned high_from) {
    const BitTaint a = source(0).taint, b = source(1).taint;
    BitTaint t = a;
    t |= b;
    const auto join = [&](u64 x, u64 y) {
      return (x >> low_from & 0xffff) | (y >> high_from & 0xffff) << 16;
    };
    t.undefined = join(a.undefined, b.undefined);
    t.inexact = join(a.inexact, b.inexact);
    write(i_.dst, t, 32);
  }

  void anything() {
    BitTaint t;
    for (const Registers& r : step_.effects.scalar_reads)
      for (unsigned k = 0; k < r.count; ++k)
        if (r.first + k <= scalar::scc) t |= taint_.scalar32(r.first + k);
    if (t.undefined != 0) t.undefined = 0xffffffffu;
    if (t.inexact != 0) t.inexact = 0xffffffffu;
    for (const Registers& r : step_.effects.scalar_writes) {
      for (unsigned k = 0; k < r.count; ++k) {
        const unsigned code = r.first + k;
        if (code < 128) taint_.set_scalar32(code, t);
        if (code == scalar::scc) write_scc(t.undefined != 0, t.inexact != 0, t);
      }
    }
  }

  WaveTaint& taint_;
  const Step& step_;
  const Instruction& i_;
  const OpInfo& op_;
};

}  // namespace

void transfer_scalar(WaveTaint& taint, const Step& step) {
  Transfer(taint, step).run();
}

}  // namespace attest::device::sim::detect
