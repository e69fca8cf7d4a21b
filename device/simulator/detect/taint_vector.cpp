// SPDX-License-Identifier: MIT
#include "device/simulator/detect/taint_vector.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "device/simulator/detect/lane_map.h"
#include "device/simulator/detect/taint_scalar.h"
#include "device/simulator/exec/scalar_operands.h"
#include "device/simulator/matrix/forms.h"

namespace attest::device::sim::detect {
namespace {

using u64 = std::uint64_t;

constexpr u64 all_lanes = ~u64{0};

/// Copies the origins of `from` to `to`, which holds some of its taint.
void name_origins(LaneTaint& to, const LaneTaint& from) {
  to.undefined_from = from.undefined_from;
  to.inexact_from = from.inexact_from;
}

/// A lane mask in an SGPR pair, as taint of lanes.
LaneTaint lanes_of(const BitTaint& mask) {
  LaneTaint t;
  t.all_bytes(mask.undefined);
  t.inexact = mask.inexact;
  t.undefined_from = mask.undefined_from;
  t.inexact_from = mask.inexact_from;
  return t;
}

/// A scalar operand, the same in all lanes.
LaneTaint broadcast(const BitTaint& scalar32) {
  LaneTaint t;
  for (unsigned b = 0; b < 4; ++b)
    t.undefined[b] = (scalar32.undefined >> (8 * b) & 0xff) != 0 ? all_lanes : 0;
  t.inexact = scalar32.inexact != 0 ? all_lanes : 0;
  t.undefined_from = scalar32.undefined_from;
  t.inexact_from = scalar32.inexact_from;
  return t;
}

/// A scalar put away in a lane, as compilers spill them: lane masks above all, in which the bits of lanes
/// that are off are garbage. A byte of a vector register is never-written or it is not, so a byte of which
/// some bit was written counts as written: the mask comes back and is combined with EXEC bit by bit, and a
/// bit of garbage must not spoil its seven neighbours.
LaneTaint spilled(const BitTaint& scalar32) {
  LaneTaint t = broadcast(scalar32);
  for (unsigned b = 0; b < 4; ++b)
    if ((scalar32.undefined >> (8 * b) & 0xff) != 0xff) t.undefined[b] = 0;
  return t;
}

/// All bytes by any byte.
LaneTaint smeared(LaneTaint t) {
  t.all_bytes(t.undefined_lanes());
  return t;
}

/// Bytes from the lowest tainted one up, as carries go.
LaneTaint upwards(LaneTaint t) {
  for (unsigned b = 1; b < 4; ++b) t.undefined[b] |= t.undefined[b - 1];
  return t;
}

/// Bytes of a value of any width that a shift by `bits` (positive: to the left) puts together; a byte that
/// mixes two has the taint of both. `fill` comes in at the top of right shifts.
template <std::size_t n>
std::array<u64, n> shifted(const std::array<u64, n>& in, int bits, u64 fill) {
  std::array<u64, n> out{};
  const int whole = bits >= 0 ? bits / 8 : -((-bits + 7) / 8);
  const bool mixed = bits % 8 != 0;
  const auto at = [&](int b) -> u64 {
    if (b < 0) return 0;
    return b < static_cast<int>(n) ? in[static_cast<std::size_t>(b)] : fill;
  };
  for (int b = 0; b < static_cast<int>(n); ++b) {
    out[static_cast<std::size_t>(b)] = at(b - whole) | (mixed ? at(b - whole - 1) : 0);
  }
  return out;
}

bool is_row(std::uint16_t code) {
  return code >= operand::vgpr0 && code != operand::none;
}

float float_operand(const Wave& wave, const Instruction& i, int s, int lane) {
  std::uint32_t bits =
      is_row(i.src[s]) ? wave.v(i.src[s] - operand::vgpr0)[lane] : sim::scalar::read32<true>(wave, i, s);
  if ((i.abs >> s & 1) != 0) bits &= 0x7fffffffu;
  if ((i.neg >> s & 1) != 0) bits ^= 0x80000000u;
  return std::bit_cast<float>(bits);
}

/// Lanes of `mask` whose comparison comes out the same whatever the last bits of its operands are.
u64 clear_cut(const Wave& wave, const Instruction& i, u64 mask) {
  const OpInfo& op = info(i.op);
  if (mask == 0 || i.extension != Extension::none || !op.name.ends_with("_f32")) return 0;
  if (op.name.find("_class_") != std::string_view::npos || i.op == Op::v_cmp_u_f32 ||
      i.op == Op::v_cmp_o_f32) {
    return mask;
  }
  u64 clear = 0;
  for (u64 m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const float a = float_operand(wave, i, 0, l), b = float_operand(wave, i, 1, l);
    const bool special = !std::isfinite(a) || !std::isfinite(b) || a == 0 || b == 0;
    if (special || std::fabs(a - b) > 0x1p-10F * std::max(std::fabs(a), std::fabs(b))) clear |= u64{1} << l;
  }
  return clear;
}

class Transfer {
 public:
  Transfer(WaveTaint& taint, const Step& step, bool approximate)
      : taint_(taint),
        step_(step),
        i_(step.instruction),
        op_(info(i_.op)),
        wave_(step.wave),
        exec_(step.wave.exec()),
        writes_(step.effects.exec_masked ? exec_ : all_lanes),
        approximate_(approximate) {}

  void run() {
    if (i_.extension == Extension::dpp) {
      dpp_ = dpp_map(i_, exec_);
      writes_ &= dpp_->written();
    }
    if ((wave_.mode & mode::gpr_idx_en) != 0) return anything();
    if (const matrix::Form* form = matrix::form_of(i_.op); form != nullptr) return multiply(*form);
    if (op_.dst == Slot::mask) return compare();
    switch (i_.op) {
      case Op::v_readfirstlane_b32:
        return read_lane(exec_ == 0 ? 0 : std::countr_zero(exec_));
      case Op::v_readlane_b32: {
        if (!scalar_source(1).clean()) return anything();
        return read_lane(static_cast<int>(scalar_value(1) & 63));
      }
      case Op::v_writelane_b32:
        return write_lane();
      case Op::v_swap_b32: {
        const LaneTaint a = source(0), b = taint_.row(dst_row(0));
        commit(dst_row(0), a, 0xf);
        return commit(static_cast<std::uint32_t>(i_.src[0] - operand::vgpr0), b, 0xf);
      }
      case Op::ds_bpermute_b32:
      case Op::ds_permute_b32:
      case Op::ds_swizzle_b32:
        return exchange();
      default:
        break;
    }
    LaneTaint result[8];
    const unsigned count = std::min(dwords(op_.dst), 8u);
    for (unsigned d = 0; d < count; ++d) result[d] = value(d);
    const LaneTaint carry = op_.sdst == Slot::mask ? every_source() : LaneTaint();
    for (unsigned d = 0; d < count; ++d) place(d, result[d]);
    if (op_.sdst == Slot::mask) write_mask(i_.sdst, carry);
  }

 private:
  // --- operands

  [[nodiscard]] std::uint32_t dst_row(unsigned d) const {
    return static_cast<std::uint32_t>(i_.dst - operand::vgpr0 + d);
  }
  [[nodiscard]] BitTaint scalar_taint(unsigned code) const {
    if (code < 128) return taint_.scalar32(code);
    if (code == operand::scc) return taint_.scalar32(scalar::scc);
    if (code == 251 || code == 252) {
      BitTaint t = taint_.scalar64(code == 251 ? operand::vcc : operand::exec);
      const u64 bits = wave_.s64(code == 251 ? operand::vcc : operand::exec);
      t.undefined = undecided(bits, t.undefined) ? 1 : 0;
      t.inexact = undecided(bits, t.inexact) ? 1 : 0;
      return t;
    }
    return {};
  }
  [[nodiscard]] BitTaint scalar_source(int s) const { return scalar_taint(i_.src[s]); }
  [[nodiscard]] std::uint32_t scalar_value(int s) const { return sim::scalar::read32<true>(wave_, i_, s); }
  /// The value of source s when it is the same in all lanes and untainted.
  [[nodiscard]] std::optional<std::uint32_t> constant(int s) const {
    if (is_row(i_.src[s]) || i_.src[s] == operand::none || i_.extension == Extension::sdwa)
      return std::nullopt;
    if (!scalar_source(s).clean()) return std::nullopt;
    return scalar_value(s);
  }

  /// Dword d of source s as its register holds it, DPP and SDWA applied.
  [[nodiscard]] LaneTaint source(int s, unsigned d = 0) const {
    const std::uint16_t code = i_.src[s];
    if (code == operand::none) return {};
    LaneTaint t = is_row(code) ? taint_.row(static_cast<std::uint32_t>(code - operand::vgpr0) + d)
                               : broadcast(scalar_taint(code < 128 ? code + d : code));
    if (s == 0 && dpp_) {
      for (u64& b : t.undefined) b = dpp_->move(b);
      t.inexact = dpp_->move(t.inexact);
    } else if (step_.effects.exec_masked) {
      for (u64& b : t.undefined) b &= writes_;
      t.inexact &= writes_;
    }
    if (i_.extension == Extension::sdwa && s < 2) t = select_sdwa(t, i_.src_sel[s], (i_.sext >> s & 1) != 0);
    return t;
  }

  static LaneTaint select_sdwa(const LaneTaint& t, unsigned select, bool sign) {
    if (select > 5) return t;
    LaneTaint out;
    name_origins(out, t);
    out.inexact = t.inexact;
    if (select <= 3) {
      out.undefined[0] = t.undefined[select];
      if (sign) out.all_bytes(t.undefined[select]);
      return out;
    }
    const unsigned low = select == 4 ? 0 : 2;
    out.undefined[0] = t.undefined[low];
    out.undefined[1] = t.undefined[low + 1];
    if (sign) out.undefined[2] = out.undefined[3] = t.undefined[low + 1];
    return out;
  }

  /// The half of a register that a 16-bit operand is; its bytes in 0 and 1.
  [[nodiscard]] LaneTaint half(int s, bool high) const {
    LaneTaint t = source(s);
    LaneTaint out;
    name_origins(out, t);
    out.inexact = t.inexact;
    out.undefined[0] = t.undefined[high ? 2 : 0];
    out.undefined[1] = t.undefined[high ? 3 : 1];
    return out;
  }

  /// All that source s contributes, every byte of every dword that counts, in all bytes.
  [[nodiscard]] LaneTaint whole_source(int s) const {
    switch (op_.src[s]) {
      case Slot::none:
        return {};
      case Slot::mask:
        return lanes_of(mask_source(s));
      case Slot::b16:
      case Slot::f16:
      case Slot::bf16:
        if (i_.extension == Extension::sdwa) return smeared(source(s));
        if (i_.encoding == Encoding::vop3p) {  // v_fma_mix: op_sel_hi says whether it is a half at all
          if ((i_.op_sel_hi >> s & 1) == 0) return smeared(source(s));
        }
        return smeared(half(s, (i_.encoding == Encoding::vop3 || i_.encoding == Encoding::vop3p) &&
                                   (i_.op_sel >> s & 1) != 0));
      default: {
        LaneTaint t;
        for (unsigned d = 0; d < dwords(op_.src[s]); ++d) t |= source(s, d);
        return smeared(t);
      }
    }
  }
  [[nodiscard]] BitTaint mask_source(int s) const {
    const std::uint16_t code = i_.src[s];
    return code < 128 ? taint_.scalar64(code) : BitTaint();
  }

  [[nodiscard]] LaneTaint every_source() const {
    LaneTaint t;
    for (int s = 0; s < 3; ++s) t |= whole_source(s);
    if (op_.has(op_flag::reads_vcc) && op_.src[2] != Slot::mask) t |= lanes_of(taint_.scalar64(operand::vcc));
    if (op_.has(op_flag::reads_dst) && step_.effects.vector_writes.size() != 0 &&
        step_.effects.vector_writes[0].bytes == 0xf && i_.op != Op::v_writelane_b32) {
      for (unsigned d = 0; d < dwords(op_.dst); ++d) t |= smeared(taint_.row(dst_row(d)));
    }
    return t;
  }

  // --- results

  /// Dword d of the result.
  [[nodiscard]] LaneTaint value(unsigned d) const {
    switch (i_.op) {
      case Op::v_mov_b32:
      case Op::v_mov_b64:
      case Op::v_not_b32:
      case Op::v_accvgpr_read_b32:
      case Op::v_accvgpr_write_b32:
      case Op::v_accvgpr_mov_b32:
        return source(0, d);
      case Op::v_cndmask_b32:
        return chosen();
      case Op::v_and_b32:
        return conjunction(0, 1);
      case Op::v_or_b32:
      case Op::v_xor_b32:
      case Op::v_xnor_b32:
      case Op::v_or3_b32: {
        LaneTaint t = source(0);
        t |= source(1);
        if (i_.op == Op::v_or3_b32) t |= source(2);
        return t;
      }
      case Op::v_and_or_b32: {
        LaneTaint t = conjunction(0, 1);
        t |= source(2);
        return t;
      }
      case Op::v_bfi_b32:
        return insertion();
      case Op::v_lshlrev_b32:
      case Op::v_lshrrev_b32:
      case Op::v_ashrrev_i32:
        if (const auto n = constant(0)) return shift32(source(1), static_cast<int>(*n & 31));
        return smeared(either(source(0), source(1)));
      case Op::v_lshlrev_b64:
      case Op::v_lshrrev_b64:
      case Op::v_ashrrev_i64:
        if (const auto n = constant(0)) return shift64(1, static_cast<int>(*n & 63), d);
        return every_source();
      case Op::v_lshl_or_b32:
        if (const auto n = constant(1))
          return either(left32(source(0), static_cast<int>(*n & 31)), source(2));
        return every_source();
      case Op::v_lshl_add_u32:
        if (const auto n = constant(1))
          return upwards(either(left32(source(0), static_cast<int>(*n & 31)), source(2)));
        return every_source();
      case Op::v_add_lshl_u32:
        if (const auto n = constant(2))
          return left32(upwards(either(source(0), source(1))), static_cast<int>(*n & 31));
        return every_source();
      case Op::v_add_u32:
      case Op::v_sub_u32:
      case Op::v_subrev_u32:
      case Op::v_add_i32:
      case Op::v_sub_i32:
      case Op::v_add_co_u32:
      case Op::v_sub_co_u32:
      case Op::v_subrev_co_u32:
      case Op::v_mul_lo_u32:
        return upwards(either(source(0), source(1)));
      case Op::v_add3_u32:
      case Op::v_xad_u32:
        return upwards(either(either(source(0), source(1)), source(2)));
      case Op::v_mul_u32_u24:
      case Op::v_mul_i32_i24:
      case Op::v_mad_u32_u24:
      case Op::v_mad_i32_i24: {
        LaneTaint t = either(source(0), source(1));
        t.undefined[3] = 0;
        if (op_.src[2] != Slot::none) t |= source(2);
        return upwards(t);
      }
      case Op::v_bfe_u32:
      case Op::v_bfe_i32:
        return field();
      case Op::v_perm_b32:
        return permuted();
      case Op::v_alignbit_b32:
      case Op::v_alignbyte_b32:
        return aligned();
      case Op::v_cvt_f32_ubyte0:
      case Op::v_cvt_f32_ubyte1:
      case Op::v_cvt_f32_ubyte2:
      case Op::v_cvt_f32_ubyte3: {
        LaneTaint t = source(0);
        t.all_bytes(
            t.undefined[static_cast<std::size_t>(i_.op) - static_cast<std::size_t>(Op::v_cvt_f32_ubyte0)]);
        return t;
      }
      case Op::v_cvt_f32_fp8:
      case Op::v_cvt_f32_bf8:
        if (i_.encoding == Encoding::vop1) {
          LaneTaint t = source(0);
          t.all_bytes(t.undefined[0]);
          return t;
        }
        return every_source();
      case Op::v_cvt_pk_f32_fp8:
      case Op::v_cvt_pk_f32_bf8:
        if (i_.encoding == Encoding::vop1) {
          LaneTaint t = source(0);
          t.all_bytes(t.undefined[d]);
          return t;
        }
        return every_source();
      case Op::v_cvt_pkrtz_f16_f32:
      case Op::v_cvt_pknorm_i16_f32:
      case Op::v_cvt_pknorm_u16_f32:
      case Op::v_cvt_pknorm_i16_f16:
      case Op::v_cvt_pknorm_u16_f16:
      case Op::v_cvt_pk_u16_u32:
      case Op::v_cvt_pk_i16_i32:
      case Op::v_pack_b32_f16:
        return joined(whole_source(0), whole_source(1), 2);
      case Op::v_cvt_pk_fp8_f32:
      case Op::v_cvt_pk_bf8_f32:
        return joined(whole_source(0), whole_source(1), 1);
      case Op::v_pk_mov_b32:
        return source(static_cast<int>(d), (d == 0 ? i_.op_sel >> 0 : i_.op_sel >> 1) & 1);
      case Op::v_lshl_add_u64:
        return every_source_up_to(d);
      case Op::v_mad_u64_u32:
      case Op::v_mad_i64_i32:
        // The low half is a sum of low halves; programs use it alone with garbage in the upper half of src2.
        if (d == 0) return upwards(either(either(source(0), source(1)), source(2)));
        return every_source();
      case Op::v_pk_fma_f32:
      case Op::v_pk_mul_f32:
      case Op::v_pk_add_f32: {
        LaneTaint t;
        for (int s = 0; s < 3; ++s) {
          if (op_.src[s] == Slot::none) continue;
          const unsigned pick = (d == 0 ? i_.op_sel : i_.op_sel_hi) >> s & 1;
          t |= source(s, is_row(i_.src[s]) || i_.src[s] < 128 ? pick : 0);
        }
        return smeared(t);
      }
      default:
        return packed16() ? packed_halves() : every_source();
    }
  }

  static LaneTaint either(LaneTaint a, const LaneTaint& b) {
    a |= b;
    return a;
  }

  [[nodiscard]] LaneTaint chosen() const {
    const std::uint16_t code = i_.src[2] == operand::none ? std::uint16_t{operand::vcc} : i_.src[2];
    const u64 mask = code < 128 ? wave_.s64(code) : 0;
    const LaneTaint if_clear = source(0), if_set = source(1),
                    condition = lanes_of(code < 128 ? taint_.scalar64(code) : BitTaint());
    LaneTaint t;
    for (std::size_t b = 0; b < 4; ++b)
      t.undefined[b] = (mask & if_set.undefined[b]) | (~mask & if_clear.undefined[b]);
    t.inexact = (mask & if_set.inexact) | (~mask & if_clear.inexact);
    const u64 from_set = t.undefined_lanes() & mask;
    t.undefined_from = from_set != 0 ? if_set.undefined_from : if_clear.undefined_from;
    t.inexact_from = (t.inexact & mask) != 0 ? if_set.inexact_from : if_clear.inexact_from;
    if (t.undefined_lanes() == 0) t.undefined_from = origin::none;
    if (t.inexact == 0) t.inexact_from = origin::none;
    t |= condition;
    return t;
  }

  /// A byte that the other side masks to 0 in a lane is known there.
  [[nodiscard]] LaneTaint conjunction(int a, int b) const {
    LaneTaint ta = source(a), tb = source(b);
    LaneTaint t = either(ta, tb);
    if (i_.extension == Extension::sdwa) return t;
    for (unsigned k = 0; k < 4; ++k) {
      t.undefined[k] &= ~(zero_bytes(b, k) & ~tb.undefined[k]) & ~(zero_bytes(a, k) & ~ta.undefined[k]);
    }
    return t;
  }
  /// Lanes in which byte k of source s is 0; only lanes that are written are looked at.
  [[nodiscard]] u64 zero_bytes(int s, unsigned k) const {
    const std::uint16_t code = i_.src[s];
    if (!is_row(code)) return (scalar_value(s) >> (8 * k) & 0xff) == 0 ? all_lanes : 0;
    if (s == 0 && dpp_) return 0;
    const std::uint32_t* row = wave_.v(code - operand::vgpr0);
    u64 zero = 0;
    for (u64 m = writes_; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      if ((row[l] >> (8 * k) & 0xff) == 0) zero |= u64{1} << l;
    }
    return zero;
  }

  /// v_bfi: bits of source 1 where source 0 is set, of source 2 elsewhere.
  [[nodiscard]] LaneTaint insertion() const {
    const LaneTaint a = source(1), b = source(2);
    LaneTaint t = either(either(a, b), source(0));
    if (const auto mask = constant(0)) {
      for (unsigned k = 0; k < 4; ++k) {
        const std::uint32_t byte = *mask >> (8 * k) & 0xff;
        if (byte == 0xff) t.undefined[k] = a.undefined[k];
        if (byte == 0) t.undefined[k] = b.undefined[k];
      }
    }
    return t;
  }

  static LaneTaint left32(LaneTaint t, int n) {
    t.undefined = shifted(t.undefined, n, 0);
    return t;
  }
  [[nodiscard]] LaneTaint shift32(LaneTaint t, int n) const {
    if (i_.op == Op::v_lshlrev_b32) return left32(t, n);
    t.undefined = shifted(t.undefined, -n, i_.op == Op::v_ashrrev_i32 ? t.undefined[3] : 0);
    return t;
  }
  [[nodiscard]] LaneTaint shift64(int s, int n, unsigned d) const {
    const LaneTaint low = source(s, 0), high = source(s, 1);
    std::array<u64, 8> bytes;
    for (std::size_t k = 0; k < 4; ++k) bytes[k] = low.undefined[k], bytes[k + 4] = high.undefined[k];
    const bool left = i_.op == Op::v_lshlrev_b64;
    bytes = shifted(bytes, left ? n : -n, i_.op == Op::v_ashrrev_i64 ? bytes[7] : 0);
    LaneTaint t = either(low, high);
    for (std::size_t k = 0; k < 4; ++k) t.undefined[k] = bytes[k + 4 * d];
    return t;
  }
  [[nodiscard]] LaneTaint field() const {
    const auto start = constant(1), width = constant(2);
    if (!start || !width) return every_source();
    LaneTaint t = source(0);
    const unsigned from = *start & 31, bits = *width & 31;
    if (bits == 0) return LaneTaint();
    t.undefined = shifted(t.undefined, -static_cast<int>(from), 0);
    const unsigned last = (bits - 1) / 8;
    for (unsigned k = last + 1; k < 4; ++k) t.undefined[k] = i_.op == Op::v_bfe_i32 ? t.undefined[last] : 0;
    return t;
  }
  [[nodiscard]] LaneTaint permuted() const {
    const auto selector = constant(2);
    if (!selector) return every_source();
    const LaneTaint high = source(0), low = source(1);
    LaneTaint t = either(high, low);
    const auto byte = [&](unsigned n) { return n < 4 ? low.undefined[n] : high.undefined[n - 4]; };
    for (unsigned k = 0; k < 4; ++k) {
      const std::uint32_t n = *selector >> (8 * k) & 0xff;
      t.undefined[k] = n < 8 ? byte(n) : n < 12 ? byte(2 * (n - 8) + 1) : 0;
    }
    return t;
  }
  [[nodiscard]] LaneTaint aligned() const {
    const auto amount = constant(2);
    if (!amount) return every_source();
    const int n =
        i_.op == Op::v_alignbit_b32 ? static_cast<int>(*amount & 31) : 8 * static_cast<int>(*amount & 3);
    const LaneTaint high = source(0), low = source(1);
    std::array<u64, 8> bytes;
    for (std::size_t k = 0; k < 4; ++k) bytes[k] = low.undefined[k], bytes[k + 4] = high.undefined[k];
    bytes = shifted(bytes, -n, 0);
    LaneTaint t = either(high, low);
    std::copy_n(bytes.begin(), 4, t.undefined.begin());
    return t;
  }
  /// Two results next to each other from byte 0 on, `bytes` wide each.
  static LaneTaint joined(const LaneTaint& low, const LaneTaint& high, unsigned bytes) {
    LaneTaint t = either(low, high);
    for (unsigned k = 0; k < 4; ++k)
      t.undefined[k] = k < bytes ? low.undefined[0] : k < 2 * bytes ? high.undefined[0] : 0;
    return t;
  }
  [[nodiscard]] LaneTaint every_source_up_to(unsigned dword) const {
    // v_lshl_add_u64: the low half of a sum does not see the high halves.
    if (dword != 0) return every_source();
    const auto n = constant(1);
    if (!n) return every_source();
    return upwards(either(left32(source(0), static_cast<int>(*n & 7)), source(2)));
  }

  [[nodiscard]] bool packed16() const {
    return i_.encoding == Encoding::vop3p && dwords(op_.dst) == 1 &&
           (op_.src[0] == Slot::v2b16 || op_.src[0] == Slot::v2f16) && op_.name.starts_with("v_pk_");
  }
  [[nodiscard]] LaneTaint packed_halves() const {
    LaneTaint low, high;
    for (int s = 0; s < 3; ++s) {
      if (op_.src[s] == Slot::none) continue;
      low |= smeared(half(s, (i_.op_sel >> s & 1) != 0));
      high |= smeared(half(s, (i_.op_sel_hi >> s & 1) != 0));
    }
    if (op_.has(op_flag::reads_dst)) {
      low |= smeared(taint_.row(dst_row(0)));
      high |= smeared(taint_.row(dst_row(0)));
    }
    return joined(low, high, 2);
  }

  /// Puts dword d of the result where SDWA, op_sel or the operation itself says.
  void place(unsigned d, LaneTaint t) {
    unsigned bytes = 0xf;
    for (const Registers& r : step_.effects.vector_writes)
      if (dst_row(d) - r.first < r.count) bytes = r.bytes;
    if (i_.extension == Extension::sdwa && i_.dst_sel < 6) {
      LaneTaint moved = t;
      const unsigned first = i_.dst_sel <= 3 ? i_.dst_sel : i_.dst_sel == 4 ? 0u : 2u;
      const unsigned width = i_.dst_sel <= 3 ? 1 : 2;
      const u64 sign = i_.dst_unused == 1 ? t.undefined[width - 1] : 0;
      for (unsigned k = 0; k < 4; ++k)
        moved.undefined[k] = k - first < width ? t.undefined[k - first] : k > first ? sign : 0;
      t = moved;
    } else if (bytes == 0xc) {
      t.undefined[2] = t.undefined[0];
      t.undefined[3] = t.undefined[1];
    } else if (bytes != 0xf && bytes != 0x3) {
      t = smeared(t);
    } else if (op_.dst == Slot::b32 && is_half_operation()) {
      t.undefined[2] = t.undefined[3] = 0;  // the upper half becomes 0
    }
    commit(dst_row(d), t, bytes);
  }
  /// An operation on 16-bit operands whose result is 16 bits too.
  [[nodiscard]] bool is_half_operation() const {
    const auto is_half = [](Slot s) { return s == Slot::b16 || s == Slot::f16; };
    return is_half(op_.src[0]) && i_.encoding != Encoding::vop3p &&
           (op_.name.ends_with("_f16") || op_.name.ends_with("16")) && i_.op != Op::v_pack_b32_f16 &&
           op_.name.find("f32") == std::string_view::npos && op_.name.find("32_") == std::string_view::npos &&
           op_.name.find("_i32_f16") == std::string_view::npos;
  }

  /// Merges a row's result into it under the lanes that are written.
  void commit(std::uint32_t row, const LaneTaint& t, unsigned bytes) {
    LaneTaint now = taint_.row(row);
    LaneTaint result = t;
    if (approximate_) {
      result.inexact = all_lanes;
      if (t.inexact == 0) result.inexact_from = origin::instruction(step_.index);
    }
    for (std::size_t b = 0; b < 4; ++b) {
      if ((bytes >> b & 1) != 0)
        now.undefined[b] = (now.undefined[b] & ~writes_) | (result.undefined[b] & writes_);
    }
    now.inexact = bytes == 0xf ? (now.inexact & ~writes_) | (result.inexact & writes_)
                               : now.inexact | (result.inexact & writes_);
    if ((result.undefined_lanes() & writes_) != 0) now.undefined_from = result.undefined_from;
    if ((result.inexact & writes_) != 0) now.inexact_from = result.inexact_from;
    if (step_.effects.exec_masked && taint_.dirty_exec()) now |= lanes_of(taint_.scalar64(operand::exec));
    taint_.set_row(row, now);
  }

  void write_mask(std::uint16_t code, const LaneTaint& t) {
    if (code >= 128) return;
    BitTaint bits{t.undefined_lanes() & writes_, t.inexact & writes_, t.undefined_from, t.inexact_from};
    if (step_.effects.exec_masked && taint_.dirty_exec()) bits |= taint_.scalar64(operand::exec);
    if (bits.undefined == 0) bits.undefined_from = origin::none;
    if (bits.inexact == 0) bits.inexact_from = origin::none;
    taint_.set_scalar64(code, bits);
  }

  void compare() {
    LaneTaint t = every_source();
    t.inexact &= ~clear_cut(wave_, i_, t.inexact & writes_);
    const std::uint16_t target = i_.dst == operand::none ? std::uint16_t{operand::vcc} : i_.dst;
    const bool also_exec = op_.has(op_flag::writes_exec);
    write_mask(target, t);
    if (also_exec && target < 128) taint_.set_scalar64(operand::exec, taint_.scalar64(target));
  }

  void read_lane(int lane) {
    const LaneTaint t = source(0);
    BitTaint bits;
    for (unsigned b = 0; b < 4; ++b)
      if ((t.undefined[b] >> lane & 1) != 0) bits.undefined |= u64{0xff} << (8 * b);
    if ((t.inexact >> lane & 1) != 0) bits.inexact = 0xffffffffu;
    if (bits.undefined != 0) bits.undefined_from = t.undefined_from;
    if (bits.inexact != 0) bits.inexact_from = t.inexact_from;
    if (i_.dst < 128) taint_.set_scalar32(i_.dst, bits);
  }

  void write_lane() {
    if (!scalar_source(1).clean()) {
      writes_ = all_lanes;
      return commit(dst_row(0), either(taint_.row(dst_row(0)), broadcast(scalar_source(1))), 0xf);
    }
    writes_ = u64{1} << (scalar_value(1) & 63);
    commit(dst_row(0), spilled(scalar_source(0)), 0xf);
  }

  void exchange() {
    const LaneMap map = exchange_map(i_, wave_);
    const bool swizzle = i_.op == Op::ds_swizzle_b32;
    const std::uint16_t data = swizzle ? i_.addr : i_.data[0];
    const LaneTaint in = taint_.row(static_cast<std::uint32_t>(data - operand::vgpr0));
    LaneTaint t = in;
    for (u64& b : t.undefined) b = map.move(b & exec_);
    t.inexact = map.move(in.inexact & exec_);
    if (!swizzle) t |= smeared(taint_.row(static_cast<std::uint32_t>(i_.addr - operand::vgpr0)));
    commit(dst_row(0), t, 0xf);
  }

  void multiply(const matrix::Form& form) {
    const unsigned registers_a = dwords(op_.src[0]), registers_b = dwords(op_.src[1]);
    if (multiply_inexact(form, registers_a, registers_b)) return;
    LaneTaint a, b;
    for (unsigned d = 0; d < registers_a; ++d) a |= source(0, d);
    for (unsigned d = 0; d < registers_b; ++d) b |= source(1, d);
    const LaneTaint spread = products(form, a, b);
    LaneTaint result[32];
    const unsigned count = dwords(op_.dst);
    for (unsigned d = 0; d < count; ++d) {
      const bool accumulates_dst = op_.has(op_flag::reads_dst);
      result[d] = accumulates_dst     ? taint_.row(dst_row(d))
                  : is_row(i_.src[2]) ? source(2, d)
                  : i_.src[2] < 128   ? source(2, 0)
                                      : LaneTaint();
      if (form.sparse) result[d] |= smeared(source(2));  // the indices
      result[d] = smeared(result[d]);
      LaneTaint element = spread;
      if (spread.undefined_lanes() != 0)
        element.all_bytes(elements(form, d, a.undefined_lanes(), b.undefined_lanes()));
      if (spread.inexact != 0) element.inexact = elements(form, d, a.inexact, b.inexact);
      result[d] |= element;
    }
    for (unsigned d = 0; d < count; ++d) commit(dst_row(d), result[d], 0xf);
  }

  /// The same where every byte of the operands was written.
  bool multiply_inexact(const matrix::Form& form, unsigned registers_a, unsigned registers_b) {
    const bool accumulates = i_.src[2] >= operand::vgpr0;
    if (form.sparse || !is_row(i_.src[0]) || !is_row(i_.src[1]) || (!accumulates && i_.src[2] < 128))
      return false;
    for (const Registers& r : step_.effects.vector_reads)
      if (taint_.undefined_rows(r)) return false;
    for (const Registers& r : step_.effects.vector_writes)
      if (taint_.undefined_rows(r)) return false;
    u64 a = 0, b = 0, spread = 0;
    Origin from = origin::none;
    const auto gather = [&](u64& all, unsigned code, unsigned count) {
      for (unsigned d = 0; d < count; ++d) {
        const LaneTaint& t = taint_.row(code - operand::vgpr0 + d);
        if (spread == 0) from = t.inexact_from;
        spread |= t.inexact;
        all |= t.inexact;
      }
    };
    gather(a, i_.src[0], registers_a);
    gather(b, i_.src[1], registers_b);
    const unsigned count = dwords(op_.dst);
    u64 result[32];
    Origin origins[32];
    for (unsigned d = 0; d < count; ++d) {
      result[d] = 0;
      if (accumulates) {
        const LaneTaint& c = taint_.row(static_cast<std::uint32_t>(i_.src[2] - operand::vgpr0) + d);
        result[d] = c.inexact;
        origins[d] = c.inexact_from;
      }
      if (result[d] == 0) origins[d] = from;
      if (spread != 0) result[d] |= elements(form, d, a, b);
    }
    for (unsigned d = 0; d < count; ++d) taint_.set_inexact(dst_row(d), result[d], origins[d]);
    return true;
  }

  /// Whether there is anything to spread, and from where.
  static LaneTaint products(const matrix::Form&, const LaneTaint& a, const LaneTaint& b) {
    LaneTaint t;
    t |= a;
    t |= b;
    return t;
  }

  /// Lanes whose element in register d of D has a tainted row of A or column of B.
  [[nodiscard]] u64 elements(const matrix::Form& form, unsigned d, u64 a, u64 b) const {
    if ((a | b) == 0) return 0;
    if (a == all_lanes || b == all_lanes || i_.cbsz != 0 || i_.blgp != 0 || form.sparse) return all_lanes;
    // Bit block * m + i, block * n + j.
    u64 rows = 0, columns = 0;
    for (u64 m = a; m != 0; m &= m - 1) rows |= u64{1} << (std::countr_zero(m) % (form.m * form.blocks));
    for (u64 m = b; m != 0; m &= m - 1) columns |= u64{1} << (std::countr_zero(m) % (form.n * form.blocks));
    const int item = static_cast<int>(d) / (form.a == matrix::Element::f64 ? 2 : 1);
    u64 tainted = 0;
    for (int block = 0; block < form.blocks; ++block) {
      for (int i = 0; i < form.m; ++i) {
        const bool row = (rows >> (block * form.m + i) & 1) != 0;
        for (int j = 0; j < form.n; ++j) {
          if (!row && (columns >> (block * form.n + j) & 1) == 0) continue;
          const matrix::Place at = matrix::place_d(form, block, i, j);
          if (at.item == item) tainted |= u64{1} << at.lane;
        }
      }
    }
    return tainted;
  }

  /// Any register read taints all that are written.
  void anything() {
    LaneTaint t;
    for (const Registers& r : step_.effects.vector_reads)
      for (unsigned k = 0; k < r.count; ++k) t |= taint_.row(r.first + k);
    for (const Registers& r : step_.effects.scalar_reads)
      for (unsigned k = 0; k < r.count; ++k)
        if (r.first + k <= scalar::scc) t |= broadcast(taint_.scalar32(r.first + k));
    t = smeared(t);
    for (const Registers& r : step_.effects.vector_writes)
      for (unsigned k = 0; k < r.count; ++k) commit(r.first + k, t, r.bytes);
    const BitTaint bits{t.undefined_lanes() != 0 ? 0xffffffffu : 0u, t.inexact != 0 ? 0xffffffffu : 0u,
                        t.undefined_from, t.inexact_from};
    for (const Registers& r : step_.effects.scalar_writes)
      for (unsigned k = 0; k < r.count; ++k)
        if (r.first + k < 128) taint_.set_scalar32(r.first + k, bits);
  }

  WaveTaint& taint_;
  const Step& step_;
  const Instruction& i_;
  const OpInfo& op_;
  const Wave& wave_;
  u64 exec_, writes_;
  bool approximate_;
  std::optional<LaneMap> dpp_;
};

/// A comparison's mask: no taint but that of its rows.
std::optional<Inflow> inflow_of_comparison(const Instruction& i, const OpInfo& op) {
  if (op.sdst != Slot::none || op.has(op_flag::reads_dst | op_flag::reads_vcc)) return std::nullopt;
  Inflow inflow;
  inflow.kind = Inflow::Kind::comparison;
  inflow.dst = i.dst == operand::none ? std::uint16_t{operand::vcc} : i.dst;
  inflow.dwords = 1;
  if (inflow.dst >= 128) return std::nullopt;
  for (unsigned s = 0; s < 3; ++s) {
    if (op.src[s] == Slot::mask || dwords(op.src[s]) > 2) return std::nullopt;
    if (op.src[s] == Slot::none || !is_row(i.src[s])) continue;
    for (unsigned k = 0; k < dwords(op.src[s]); ++k)
      inflow.rows[0][inflow.count[0]++] = static_cast<std::uint16_t>(i.src[s] - operand::vgpr0 + k);
  }
  return inflow;
}

std::optional<Inflow> inflow_of_selection(const Instruction& i) {
  if (!is_row(i.dst) || (i.src[2] >= 128 && i.src[2] != operand::none)) return std::nullopt;
  Inflow inflow;
  inflow.kind = Inflow::Kind::selection;
  inflow.dst = static_cast<std::uint16_t>(i.dst - operand::vgpr0);
  inflow.dwords = 1;
  for (unsigned s = 0; s < 2; ++s)
    if (is_row(i.src[s]))
      inflow.rows[s][inflow.count[s]++] = static_cast<std::uint16_t>(i.src[s] - operand::vgpr0);
  return inflow;
}

bool compare_inexact(WaveTaint& taint, const Step& step, const Inflow& inflow, u64 writes) {
  BitTaint bits;
  for (unsigned k = 0; k < inflow.count[0]; ++k) {
    if (taint.undefined_row(inflow.rows[0][k])) return false;
    const LaneTaint& t = taint.row(inflow.rows[0][k]);
    if (bits.inexact == 0) bits.inexact_from = t.inexact_from;
    bits.inexact |= t.inexact & writes;
  }
  bits.inexact &= ~clear_cut(step.wave, step.instruction, bits.inexact);
  if (bits.inexact == 0) bits.inexact_from = origin::none;
  taint.set_scalar64(inflow.dst, bits);
  if (info(step.instruction.op).has(op_flag::writes_exec)) taint.set_scalar64(operand::exec, bits);
  return true;
}

bool select_inexact(WaveTaint& taint, const Step& step, const Inflow& inflow, u64 writes) {
  const std::uint16_t condition = step.instruction.src[2];
  const u64 mask = step.wave.s64(condition == operand::none ? std::uint16_t{operand::vcc} : condition);
  if (taint.undefined_row(inflow.dst)) return false;
  u64 inexact[2] = {};
  Origin from[2] = {};
  for (unsigned s = 0; s < 2; ++s) {
    if (inflow.count[s] == 0) continue;
    if (taint.undefined_row(inflow.rows[s][0])) return false;
    const LaneTaint& t = taint.row(inflow.rows[s][0]);
    inexact[s] = t.inexact & writes & (s == 0 ? ~mask : mask);
    from[s] = t.inexact_from;
  }
  const LaneTaint& before = taint.row(inflow.dst);
  const u64 result = inexact[0] | inexact[1];
  taint.set_inexact(inflow.dst, (before.inexact & ~writes) | result,
                    inexact[1] != 0 ? from[1]
                    : result != 0   ? from[0]
                                    : before.inexact_from);
  return true;
}

}  // namespace

std::optional<Inflow> inflow_of(const Instruction& i, const Effects& effects) {
  const OpInfo& op = info(i.op);
  const bool arithmetic = i.encoding == Encoding::vop1 || i.encoding == Encoding::vop2 ||
                          i.encoding == Encoding::vop3 || i.encoding == Encoding::vop3p;
  const bool comparison = op.dst == Slot::mask && i.encoding != Encoding::vop3p;
  if ((!arithmetic && !comparison) || i.extension != Extension::none || matrix::form_of(i.op) != nullptr)
    return std::nullopt;
  if (comparison) return inflow_of_comparison(i, op);
  if (i.op == Op::v_cndmask_b32) return inflow_of_selection(i);
  if (op.dst == Slot::mask || op.sdst != Slot::none || op.has(op_flag::reads_dst | op_flag::reads_vcc))
    return std::nullopt;
  bool pick = false;  // each dword of the result chooses a dword of each source
  switch (i.op) {
    case Op::v_readfirstlane_b32:
    case Op::v_readlane_b32:
    case Op::v_writelane_b32:
    case Op::v_swap_b32:
    case Op::v_mov_b64:
    case Op::v_pk_mov_b32:
    case Op::v_bfi_b32:
    case Op::v_lshl_add_u64:
    case Op::v_mad_u64_u32:
    case Op::v_mad_i64_i32:
      return std::nullopt;
    case Op::v_bfe_u32:
    case Op::v_bfe_i32:
      // Constants 1 to 31; a field of no bits is exact.
      for (const unsigned code : {i.src[1], i.src[2]})
        if (code < 129 || code > 159) return std::nullopt;
      break;
    case Op::v_pk_fma_f32:
    case Op::v_pk_mul_f32:
    case Op::v_pk_add_f32:
      pick = true;
      break;
    default:
      break;
  }
  const unsigned count = dwords(op.dst);
  if (!is_row(i.dst) || count == 0 || count > 2 || effects.vector_writes.size() != 1 ||
      effects.vector_writes[0].bytes != 0xf)
    return std::nullopt;
  Inflow inflow;
  inflow.dst = static_cast<std::uint16_t>(i.dst - operand::vgpr0);
  inflow.dwords = static_cast<std::uint8_t>(count);
  for (unsigned d = 0; d < count; ++d) {
    for (unsigned s = 0; s < 3; ++s) {
      if (op.src[s] == Slot::mask || dwords(op.src[s]) > 2) return std::nullopt;
      if (op.src[s] == Slot::none || !is_row(i.src[s])) continue;
      const auto row = static_cast<std::uint16_t>(i.src[s] - operand::vgpr0);
      if (pick) {
        const unsigned chosen = (d == 0 ? i.op_sel : i.op_sel_hi) >> s & 1;
        inflow.rows[d][inflow.count[d]++] = static_cast<std::uint16_t>(row + chosen);
        continue;
      }
      for (unsigned k = 0; k < dwords(op.src[s]); ++k)
        inflow.rows[d][inflow.count[d]++] = static_cast<std::uint16_t>(row + k);
    }
  }
  return inflow;
}

bool transfer_inexact(WaveTaint& taint, const Step& step, const Inflow& inflow, bool approximate) {
  const u64 writes = step.effects.exec_masked ? step.wave.exec() : all_lanes;
  if (inflow.kind == Inflow::Kind::comparison) return compare_inexact(taint, step, inflow, writes);
  if (inflow.kind == Inflow::Kind::selection) return select_inexact(taint, step, inflow, writes);
  u64 inexact[2] = {};
  Origin from[2] = {};
  for (unsigned d = 0; d < inflow.dwords; ++d) {
    if (taint.undefined_row(inflow.dst + d)) return false;
    for (unsigned k = 0; k < inflow.count[d]; ++k) {
      if (taint.undefined_row(inflow.rows[d][k])) return false;
      const LaneTaint& t = taint.row(inflow.rows[d][k]);
      if (inexact[d] == 0) from[d] = t.inexact_from;
      inexact[d] |= t.inexact & writes;
    }
    if (!approximate) continue;
    if (inexact[d] == 0) from[d] = origin::instruction(step.index);
    inexact[d] = writes;
  }
  for (unsigned d = 0; d < inflow.dwords; ++d) {
    const LaneTaint& before = taint.row(inflow.dst + d);
    taint.set_inexact(inflow.dst + d, (before.inexact & ~writes) | inexact[d],
                      inexact[d] != 0 ? from[d] : before.inexact_from);
  }
  return true;
}

bool is_vector(const Instruction& i) {
  switch (i.encoding) {
    case Encoding::vop1:
    case Encoding::vop2:
    case Encoding::vopc:
    case Encoding::vop3:
    case Encoding::vop3p:
    case Encoding::mai:
      return true;
    default:
      return i.op == Op::ds_bpermute_b32 || i.op == Op::ds_permute_b32 || i.op == Op::ds_swizzle_b32;
  }
}

void transfer_vector(WaveTaint& taint, const Step& step, bool approximate) {
  Transfer(taint, step, approximate).run();
}

}  // namespace attest::device::sim::detect
