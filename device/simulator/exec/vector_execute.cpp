// SPDX-License-Identifier: MIT
//
// Everything around a kernel, see vector_entry.h: the general path, the plain path, and the few instructions
// that move data between lanes.
//
// Rules used below, with their sources. Sections are those of the "AMD Instinct MI300 Instruction Set
// Architecture" manual (VOP3, VOP3P, SDWA, DPP chapters), LLVM is the AMDGPU backend.
//   abs before neg; both act on the sign bit whatever the type (also of v_mov_b32, v_cndmask_b32).
//   omod works only with IEEE mode off and output denormals flushed.
//   clamp: to [0, 1], NaN to 0 if DX10_CLAMP; integer operations saturate.
//   DPP moves source 0 only. A lane whose source is outside the row, or disabled by EXEC, reads 0 with
//   bound_ctrl, else its destination is left alone; so is a lane outside row_mask and bank_mask. VCC results
//   are not masked by those. SDWA selects, extends, then applies abs and neg; the destination field is
//   zero-filled, sign-extended or merged. 16-bit results clear the high half, except those of the
//   instructions GFX9 added and op_sel[3] forms (LLVM, GCNSubtarget::zeroesHigh16BitsOfDest).
#include <emmintrin.h>

#include "device/simulator/exec/vector_half.h"

namespace attest::device::sim::ATTEST_SIMD_NAMESPACE {

namespace {

constexpr u32 inline_f32[9] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                               0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
constexpr u32 inline_f16[9] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118};
constexpr u64 inline_f64[9] = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
                               0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
                               0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};

bool is_float16(Slot slot) {
  return slot == Slot::f16 || slot == Slot::v2f16;
}

/// A scalar or constant operand as the slot reads it, low dword first.
u64 scalar64(const Wave& wave, const Instruction& instruction, u16 code, Slot slot) {
  const bool pair = dwords(slot) >= 2;
  if (code < 128) return pair ? wave.sgpr[code] | u64{wave.sgpr[(code + 1) & 127]} << 32 : wave.sgpr[code];
  const bool twice = slot == Slot::v2f32 || slot == Slot::v2b32;
  u64 value = 0;
  if (code <= 208) {
    value = static_cast<u64>(code <= 192 ? i64{code} - 128 : 192 - i64{code});
  } else if (code >= 240 && code <= 248) {
    const auto k = code - 240;
    value = is_float16(slot) ? inline_f16[k] : (pair && !twice) ? inline_f64[k] : inline_f32[k];
  } else if (code == operand::literal) {
    value = slot == Slot::f64 ? u64{instruction.literal} << 32 : instruction.literal;
  } else if (code == 251) {
    value = (wave.sgpr[106] | wave.sgpr[107]) == 0;
  } else if (code == 252) {
    value = exec_of(wave) == 0;
  } else if (code == operand::scc) {
    value = wave.scc;
  } else if (code >= 235 && code <= 238) {
    value =
        (code <= 236 ? aperture::shared_base : aperture::private_base) + (code % 2 == 0 ? 0xffffffffu : 0u);
    if (!pair) value >>= 32;
  } else {
    vector::unmodelled_operand(instruction, code);
  }
  if (twice) value = (value & 0xffffffff) | value << 32;
  return pair ? value : value & 0xffffffff;
}

u32 gpr_index(const Wave& wave, unsigned source) {
  if ((wave.mode & mode::gpr_idx_en) == 0) return 0;
  const u32 m0 = wave.sgpr[operand::m0];
  return (m0 >> (12 + source) & 1) != 0 ? m0 & 0xff : 0;
}

u32* vector_rows(Wave& wave, const Instruction& instruction, u16 code, unsigned count, unsigned source) {
  const u32 row = code - u32{operand::vgpr0} + gpr_index(wave, source);
  if (row + count > wave.vgpr_count) [[unlikely]]
    vector::register_outside(instruction, row + count - 1, wave.vgpr_count);
  return wave.vgpr + std::size_t{row} * lanes;
}

void broadcast(u32* rows, u64 value, unsigned count) {
  const U low = splat(static_cast<u32>(value)), high = splat(static_cast<u32>(value >> 32));
  for (u32 at = 0; at < lanes; at += 16) store(rows + at, low);
  if (count >= 2)
    for (u32 at = 0; at < lanes; at += 16) store(rows + lanes + at, high);
}

/// The lane DPP reads for `lane`, or -1.
int dpp_lane(u32 control, int lane) {
  const int row = lane & ~15, in_row = lane & 15;
  const int n = static_cast<int>(control & 15);
  if (control <= 0xff) return (lane & ~3) + static_cast<int>(control >> (2 * (lane & 3)) & 3);
  if (control > 0x100 && control <= 0x10f) return in_row + n < 16 ? lane + n : -1;
  if (control > 0x110 && control <= 0x11f) return in_row - n >= 0 ? lane - n : -1;
  if (control > 0x120 && control <= 0x12f) return row + ((in_row - n) & 15);
  if (control >= 0x150 && control <= 0x15f) return row + n;
  switch (control) {
    case 0x130:
      return lane < 63 ? lane + 1 : -1;
    case 0x134:
      return (lane + 1) & 63;
    case 0x138:
      return lane - 1;
    case 0x13c:
      return (lane - 1) & 63;
    case 0x140:
      return row + 15 - in_row;
    case 0x141:
      return (lane & ~7) + 7 - (lane & 7);
    case 0x142:
      return row - 1;  // -1 in row 0
    case 0x143:
      return lane >= 32 ? 31 : -1;
    default:
      return -2;
  }
}

/// Where DPP takes each lane from, worked out once per control.
struct LaneMove {
  std::uint8_t source[lanes];  ///< of lanes not in `inside`: 0
  u64 inside;                  ///< lanes whose source exists
  bool exists;
};
struct LaneMoves {
  LaneMove of[512];
  LaneMoves() noexcept {
    for (u32 control = 0; control < 512; ++control) {
      LaneMove& move = of[control];
      move.inside = 0;
      move.exists = dpp_lane(control, 0) != -2;
      for (int lane = 0; lane < lanes; ++lane) {
        const int k = dpp_lane(control, lane);
        move.source[lane] = static_cast<std::uint8_t>(k < 0 ? 0 : k);
        if (k >= 0) move.inside |= u64{1} << lane;
      }
    }
  }
};

/// Rows moved between lanes; returns the lanes that may be written.
u64 apply_dpp(const Instruction& instruction, u64 exec, const u32* from, u32* to, unsigned count) {
  static const LaneMoves moves;
  const LaneMove& move = moves.of[instruction.dpp_ctrl & 511];
  if (!move.exists) vector::unknown_dpp_control(instruction);
  u64 valid = move.inside;
  if (exec != ~u64{0})
    for (u32 lane = 0; lane < lanes; ++lane) valid &= ~((~exec >> move.source[lane] & 1) << lane);
  for (unsigned row = 0; row < count; ++row) {
    for (u32 lane = 0; lane < lanes; ++lane) to[row * lanes + lane] = from[row * lanes + move.source[lane]];
    if (valid == ~u64{0}) continue;
    for (u32 at = 0; at < lanes; at += 16) {
      u32* const p = to + row * lanes + at;
      store(p, select(lane_mask(static_cast<u32>(valid >> at) & 0xffffu), load(p), U{}));
    }
  }
  // Bit k of a mask for each four lanes of bank k, and for each sixteen of row k.
  u64 selected = 0;
  for (u32 bank = 0; bank < 16; ++bank)
    if ((instruction.bank_mask >> (bank % 4) & 1) != 0 && (instruction.row_mask >> (bank / 4) & 1) != 0)
      selected |= u64{15} << (4 * bank);
  return selected & (instruction.bound_ctrl ? ~u64{0} : valid);
}

template <class Fn>
ATTEST_INLINE void each(u32* to, const u32* from, Fn fn) {
  for (u32 at = 0; at < lanes; at += 16) store(to + at, fn(load(from + at)));
}

U flush_f16(const U& x, u32 shift) {  // one half, at bit `shift`
  const U exponent = x & (0x7c00u << shift);
  return select(exponent == 0, x & ~(0x3ffu << shift), x);
}

/// What modifiers turn a source into.
class SourceReader {
 public:
  SourceReader(Wave& wave, const Instruction& instruction, const vector::Entry& entry)
      : wave_(wave), instruction_(instruction), entry_(entry) {}

  u64 writes = ~u64{0};

  const u32* read(unsigned index, u16 code, Slot slot, u32* scratch) {
    const unsigned count = dwords(slot);
    const u32* rows = scratch;
    const bool mix = entry_.mixes;
    const bool half_of_mix = mix && (instruction_.op_sel_hi >> index & 1) != 0;
    if (mix && !half_of_mix) slot = Slot::f32;
    if (code >= operand::vgpr0) {
      rows = vector_rows(wave_, instruction_, code, count, index);
    } else if (count > 2) {
      for (unsigned k = 0; k < count; ++k) broadcast(scratch + k * lanes, wave_.sgpr[(code + k) & 127], 1);
    } else {
      broadcast(scratch, scalar64(wave_, instruction_, code, slot), count);
    }
    if (index == 0 && instruction_.extension == Extension::dpp) {
      writes = apply_dpp(instruction_, exec_of(wave_), rows, scratch, count);
      rows = scratch;
    }
    const auto change = [&](u32 row, auto fn) { each(scratch + row * lanes, rows + row * lanes, fn); };
    const auto adopt = [&](u32 done) {  // rows not changed yet, when moving to scratch
      if (rows == scratch) return;
      for (u32 row = 0; row < count; ++row)
        if ((done >> row & 1) == 0) change(row, [](U x) { return x; });
      rows = scratch;
    };
    const u32 neg = instruction_.neg >> index & 1, abs = instruction_.abs >> index & 1;

    if (instruction_.extension == Extension::sdwa && index < 2 && instruction_.src_sel[index] != 6) {
      const u32 select_field = instruction_.src_sel[index];
      const bool byte = select_field < 4, extend = (instruction_.sext >> index & 1) != 0;
      const u32 width = byte ? 8 : 16, at = byte ? 8 * select_field : 16 * (select_field - 4);
      const u32 up = 32 - width - at, down = 32 - width;
      change(0, [&](U x) { return extend ? u(i(x << up) >> down) : (x << up) >> down; });
      adopt(1);
    }
    if (instruction_.encoding == Encoding::vop3p) {
      const u32 pick_low = instruction_.op_sel >> index & 1, pick_high = instruction_.op_sel_hi >> index & 1;
      if (slot == Slot::v2f32 || slot == Slot::v2b32) {
        const bool moves = slot == Slot::v2b32;
        if (pick_low != 0 || (!moves && pick_high == 0)) {
          U low[4], high[4];
          for (u32 at = 0; at < 4; ++at) {
            low[at] = load(rows + pick_low * lanes + 16 * at);
            high[at] = load(rows + pick_high * lanes + 16 * at);
          }
          for (u32 at = 0; at < 4; ++at) {
            store(scratch + 16 * at, low[at]);
            store(scratch + lanes + 16 * at, high[at]);
          }
          rows = scratch;
        }
        if (!moves && (neg | abs) != 0) {
          change(0, [&](U x) { return x ^ (neg << 31); });
          change(1, [&](U x) { return x ^ (abs << 31); });
          rows = scratch;
        }
      } else if (mix) {
        const u32 shift = 16 * pick_low;
        if (half_of_mix) {
          const bool flushes = (wave_.mode & mode::denorm64_in) == 0;
          change(0, [&](U x) {
            const U half = (x >> shift) & 0xffffu;
            return u(half_to_float(flushes ? flush_f16(half, 0) : half));
          });
          adopt(1);
        }
        if (abs != 0) {
          change(0, [](U x) { return x & 0x7fffffffu; });
          adopt(1);
        }
        if (neg != 0) {
          change(0, [](U x) { return x ^ 0x80000000u; });
          adopt(1);
        }
        slot = Slot::f32;
      } else if (slot == Slot::v2f16 || slot == Slot::v2b16) {
        const u32 flip = slot == Slot::v2f16 ? neg << 15 | abs << 31 : 0;
        if (pick_low != 0 || pick_high == 0 || flip != 0) {
          change(0, [&](U x) {
            return (((x >> (16 * pick_low)) & 0xffffu) | ((x >> (16 * pick_high)) << 16)) ^ flip;
          });
          adopt(1);
        }
      } else if (neg != 0 && slot == Slot::f32) {
        change(0, [](U x) { return x ^ 0x80000000u; });
        adopt(1);
      }
    } else {
      const bool half = slot == Slot::f16 || slot == Slot::b16;
      if (half && instruction_.encoding == Encoding::vop3 && (instruction_.op_sel >> index & 1) != 0) {
        change(0, [](U x) { return x >> 16; });
        adopt(1);
      }
      if ((neg | abs) != 0) {
        const u32 row = count - 1, sign = half ? 0x8000u : 0x80000000u;
        const u32 keep = abs != 0 ? ~sign : ~0u, flip = neg != 0 ? sign : 0u;
        change(row, [&](U x) { return (x & keep) ^ flip; });
        adopt(1u << row);
      }
    }
    if (entry_.flushes) {
      const bool flush32 = (wave_.mode & mode::denorm32_in) == 0,
                 flush64 = (wave_.mode & mode::denorm64_in) == 0;
      if (flush32 && (slot == Slot::f32 || slot == Slot::v2f32)) {
        for (u32 row = 0; row < count; ++row) change(row, [](U x) { return u(flush(f(x))); });
        rows = scratch;
      } else if (flush64 && (slot == Slot::f16 || slot == Slot::v2f16)) {
        const bool both = slot == Slot::v2f16;
        change(0, [&](U x) { return both ? flush_f16(flush_f16(x, 0), 16) : flush_f16(x, 0); });
        rows = scratch;
      } else if (flush64 && slot == Slot::f64) {
        for (u32 at = 0; at < lanes; at += 8) store64(scratch + at, l(flush(d(load64(rows + at)))));
        rows = scratch;
      }
    }
    return rows;
  }

 private:
  Wave& wave_;
  const Instruction& instruction_;
  const vector::Entry& entry_;
};

Slot accumulator_slot(const vector::Entry& entry) {
  switch (entry.result) {
    case Result::f32:
      return Slot::f32;
    case Result::f64:
      return Slot::f64;
    case Result::f16:
      return Slot::f16;
    case Result::v2f16:
      return Slot::v2f16;
    default:
      return Slot::b32;
  }
}

/// The host rounds like the guest while a kernel runs.
class HostRounding {
 public:
  explicit HostRounding(u32 guest) : saved_(_mm_getcsr()) {
    constexpr u32 direction[4] = {0, 2, 1,
                                  3};  // guest: nearest, +inf, -inf, zero; MXCSR: nearest, -inf, +inf, zero
    _mm_setcsr((saved_ & ~0x6000u) | direction[guest] << 13);
  }
  ~HostRounding() { _mm_setcsr(saved_); }
  HostRounding(const HostRounding&) = delete;
  HostRounding& operator=(const HostRounding&) = delete;

 private:
  u32 saved_;
};

void run_kernel(Kernel kernel, const vector::Entry& entry, Rows& rows) {
  if (entry.rounds) {
    const bool single = entry.result == Result::f32 || entry.result == Result::v2f32;
    const u32 rounding = single ? rows.mode & round32 : (rows.mode & round64) >> 2;
    if (rounding != 0) {
      const HostRounding scope(rounding);
      return kernel(rows);
    }
  }
  kernel(rows);
}

ATTEST_INLINE F clamp01(const F& x, bool nan_to_zero) {
  F r = select(x > 0.0f, x, F{});
  r = select(r > 1.0f, splatf(1.0f), r);
  return nan_to_zero ? r : select(x != x, x, r);
}
ATTEST_INLINE D clamp01(const D& x, bool nan_to_zero) {
  D r = select(x > 0.0, x, D{});
  r = select(r > 1.0, splatd(1.0), r);
  return nan_to_zero ? r : select(x != x, x, r);
}
/// One half, in the low 16 bits.
U clamp01_f16(const U& x, bool nan_to_zero) {
  const I negative = (x & 0x8000u) != 0, nan = (x & 0x7fffu) > 0x7c00u;
  const U r = select(negative, U{}, select(x > 0x3c00u, splat(0x3c00), x));
  return select(nan, nan_to_zero ? U{} : x, r);
}

/// omod, flushing and clamp, in place.
void finish(const vector::Entry& entry, const Instruction& instruction, u32 mode_bits, u32* result) {
  const bool dx10 = (mode_bits & mode::dx10_clamp) != 0, ieee = (mode_bits & mode::ieee) != 0;
  constexpr float factors[4] = {1.0f, 2.0f, 4.0f, 0.5f};
  switch (entry.result) {
    case Result::f32:
    case Result::v2f32: {
      const bool flushes = entry.flushes && (mode_bits & mode::denorm32_out) == 0;
      const bool scales = instruction.omod != 0 && !ieee && (mode_bits & mode::denorm32_out) == 0;
      if (!flushes && !scales && !instruction.clamp) return;
      for (u32 row = 0; row < (entry.result == Result::v2f32 ? 2u : 1u); ++row)
        each(result + row * lanes, result + row * lanes, [&](U x) {
          F r = f(x);
          if (flushes) r = flush(r);
          if (scales) r = flush(select(r != r, r, r * splatf(factors[instruction.omod])));
          if (instruction.clamp) r = clamp01(r, dx10);
          return u(r);
        });
      return;
    }
    case Result::f64: {
      const bool flushes = entry.flushes && (mode_bits & mode::denorm64_out) == 0;
      const bool scales = instruction.omod != 0 && !ieee && (mode_bits & mode::denorm64_out) == 0;
      if (!flushes && !scales && !instruction.clamp) return;
      for (u32 at = 0; at < lanes; at += 8) {
        D r = d(load64(result + at));
        if (flushes) r = flush(r);
        if (scales) r = flush(select(r != r, r, r * splatd(static_cast<double>(factors[instruction.omod]))));
        if (instruction.clamp) r = clamp01(r, dx10);
        store64(result + at, l(r));
      }
      return;
    }
    case Result::f16:
    case Result::v2f16: {
      const bool both = entry.result == Result::v2f16;
      const bool flushes = entry.flushes && (mode_bits & mode::denorm64_out) == 0;
      const bool scales = instruction.omod != 0 && !ieee && (mode_bits & mode::denorm64_out) == 0;
      const auto half = [&](U x) {
        if (flushes) x = flush_f16(x, 0);
        if (scales) {
          // Denormals are flushed, so scaling moves the exponent; past the largest one lies infinity.
          const I step = I{} + (instruction.omod == 3 ? -1 : instruction.omod);
          const I exponent = i((x >> 10) & 31u), moved = exponent + step;
          const I special = (exponent == 0) | (exponent == 31);
          const U scaled = (x & 0x83ffu) | (u(moved) << 10);
          x = select(special, x,
                     select(moved <= 0, x & 0x8000u, select(moved >= 31, (x & 0x8000u) | 0x7c00u, scaled)));
        }
        return instruction.clamp ? clamp01_f16(x, dx10) : x;
      };
      if (!flushes && !scales && !instruction.clamp) return;
      each(result, result, [&](U x) {
        const U low = half(x & 0xffffu);
        return both ? low | (half(x >> 16) << 16) : low;
      });
      return;
    }
    default:
      return;
  }
}

/// The part of the destination that is written, and what happens to the rest.
struct Field {
  u32 at = 0, width = 32;
  enum Rest { zero, sign, keep } rest = zero;
};
Field field_of(const vector::Entry& entry, const Instruction& instruction) {
  if (entry.bytes_written == 2) return {(instruction.op_sel >> 3 & 1) * 16u, 16, Field::keep};
  if (entry.bytes_written == 1) return {(instruction.op_sel >> 2 & 3) * 8u, 8, Field::keep};
  if (entry.mixes && entry.result == Result::f16) return {entry.high_half ? 16u : 0u, 16, Field::keep};
  if (instruction.extension == Extension::sdwa && instruction.dst_sel != 6) {
    const auto rest = static_cast<Field::Rest>(instruction.dst_unused);
    if (instruction.dst_sel < 4) return {8u * instruction.dst_sel, 8, rest};
    return {16u * (instruction.dst_sel - 4u), 16, rest};
  }
  const bool half = entry.result == Result::b16 || entry.result == Result::f16;
  if (half && instruction.encoding == Encoding::vop3 && (instruction.op_sel >> 3 & 1) != 0)
    return {16, 16, Field::keep};
  if (half && entry.keeps_half && instruction.extension != Extension::sdwa) return {0, 16, Field::keep};
  return {};
}

}  // namespace

void merge(u32* dst, const u32* result, u64 mask, unsigned count) {
  for (unsigned row = 0; row < count; ++row)
    for (u32 at = 0; at < lanes; at += 16) {
      u32* const p = dst + row * lanes + at;
      store(p, select(lane_mask(static_cast<u32>(mask >> at) & 0xffffu), load(result + row * lanes + at),
                      load(p)));
    }
}

namespace {

void write_masks(Wave& wave, const Instruction& instruction, const OpInfo& shape, u64 mask) {
  const u64 active = mask & exec_of(wave);
  const u16 code = shape.dst == Slot::mask ? instruction.dst : instruction.sdst;
  if (shape.has(op_flag::writes_exec)) write_mask(wave, operand::exec, active);
  write_mask(wave, code == operand::none ? operand::vcc : code, active);
}

u64 mask_source(const Wave& wave, const Instruction& instruction, const OpInfo& shape) {
  if (shape.src[2] == Slot::mask && instruction.src[2] != operand::none)
    return scalar64(wave, instruction, instruction.src[2], Slot::b64);
  return wave.sgpr[106] | u64{wave.sgpr[107]} << 32;
}

}  // namespace

u64 constant(const Wave& wave, const Instruction& instruction, unsigned index) {
  const Slot slot = info(instruction.op).src[index];
  return scalar64(wave, instruction, instruction.src[index], slot == Slot::mask ? Slot::b64 : slot);
}

u32 special_scalar(const Wave& wave, const Instruction& instruction, u16 code) {
  return static_cast<u32>(scalar64(wave, instruction, code, Slot::b32));
}

void execute(Wave& wave, const Instruction& instruction) {
  const vector::Entry& entry = table()[instruction.op];
  const OpInfo& shape = info(instruction.op);
  alignas(64) u32 scratch[3][4 * lanes];
  alignas(64) u32 result[4 * lanes];

  Rows rows;
  rows.mode = wave.mode;
  rows.instruction = &instruction;
  rows.dst = result;
  SourceReader reader(wave, instruction, entry);
  for (unsigned k = 0; k < 3; ++k) {
    const Slot slot = shape.src[k];
    if (slot == Slot::none || slot == Slot::mask) continue;
    rows.src[k] = reader.read(k, instruction.src[k], slot, scratch[k]);
  }
  const unsigned count = shape.dst == Slot::mask ? 0 : dwords(shape.dst);
  u32* const dst = count == 0 ? nullptr : vector_rows(wave, instruction, instruction.dst, count, 3);
  if ((shape.has(op_flag::reads_dst) || entry.reads_old) && shape.src[2] == Slot::none) {
    rows.src[2] = dst;
    if (entry.flushes && entry.bytes_written == 0) {
      const Slot slot = accumulator_slot(entry);
      const bool single = slot == Slot::f32;
      if ((wave.mode & (single ? mode::denorm32_in : mode::denorm64_in)) == 0) {
        for (unsigned row = 0; row < count; ++row)
          for (u32 at = row * lanes; at < (row + 1) * lanes; at += 16) store(scratch[2] + at, load(dst + at));
        if (single)
          each(scratch[2], scratch[2], [](U x) { return u(flush(f(x))); });
        else if (slot == Slot::f16 || slot == Slot::v2f16)
          each(scratch[2], scratch[2],
               [&](U x) { return flush_f16(flush_f16(x, 0), slot == Slot::f16 ? 0 : 16); });
        else if (slot == Slot::f64)
          for (u32 at = 0; at < lanes; at += 8)
            store64(scratch[2] + at, l(flush(d(load64(scratch[2] + at)))));
        rows.src[2] = scratch[2];
      }
    }
  }
  rows.mask_in = mask_source(wave, instruction, shape);

  const bool saturates = instruction.clamp && entry.clamped != nullptr;
  run_kernel(saturates ? entry.clamped : entry.kernel, entry, rows);
  if (entry.result == Result::mask) return write_masks(wave, instruction, shape, rows.mask_out);

  finish(entry, instruction, wave.mode, result);
  const Field field = field_of(entry, instruction);
  if (field.width < 32) {
    const u32 mask = ((1u << field.width) - 1u) << field.at;
    for (u32 at = 0; at < lanes; at += 16) {
      const U value = load(result + at);
      U r = (value << field.at) & mask;
      if (field.rest == Field::keep) {
        r |= load(dst + at) & ~mask;
      } else if (field.rest == Field::sign) {
        const u32 down = 32 - field.width;
        r = u(i(value << down) >> i32(down)) << field.at;
      }
      store(result + at, r);
    }
  }
  merge(dst, result, exec_of(wave) & reader.writes, count);
  if (shape.sdst == Slot::mask) write_masks(wave, instruction, shape, rows.mask_out);
}

namespace {

/// @tparam moves source 0 comes from other lanes (DPP, a single row)
template <bool moves>
ATTEST_INLINE void unmodified(Wave& wave, const Instruction& instruction) {
  const vector::Entry& entry = table()[instruction.op];
  const u32 now = wave.mode & (entry.mode_mask | mode::gpr_idx_en);
  Kernel kernel = entry.kernel;
  if (now != entry.mode_keep) [[unlikely]] {
    if (now != 0 || entry.flush == nullptr) return execute(wave, instruction);
    kernel = entry.flush;
  }
  const OpInfo& shape = info(instruction.op);
  Uniform storage[3];
  alignas(64) u32 moved[lanes];
  alignas(64) u32 result[2 * lanes];
  const u64 active = exec_of(wave);
  u64 written = active;
  Rows rows;
  rows.mode = wave.mode;
  rows.instruction = &instruction;
  for (unsigned k = 0; k < 3; ++k) {
    const u16 code = instruction.src[k];
    const Slot slot = shape.src[k];
    if (slot == Slot::none || slot == Slot::mask) continue;
    if (code >= operand::vgpr0) {
      rows.src[k] = rows_of(wave, code);
      if (moves && k == 0) {
        written &= apply_dpp(instruction, active, rows.src[0], moved, 1);
        rows.src[0] = moved;
      }
    } else {
      const u64 value = scalar64(wave, instruction, code, slot);
      store(storage[k].low, splat(static_cast<u32>(value)));
      store(storage[k].high, splat(static_cast<u32>(value >> 32)));
      rows.src[k] = storage[k].low;
      rows.step[k] = 0;
    }
  }
  rows.mask_in = mask_source(wave, instruction, shape);
  if (shape.dst == Slot::mask) {
    kernel(rows);
    return write_masks(wave, instruction, shape, rows.mask_out);
  }
  u32* const dst = wave.vgpr + (instruction.dst - u32{operand::vgpr0}) * lanes;
  if ((shape.has(op_flag::reads_dst) || entry.reads_old) && shape.src[2] == Slot::none) rows.src[2] = dst;
  if (written == ~0ull) [[likely]] {
    // In place even when pairs overlap: a kernel reads all of a lane before it writes the lane.
    rows.dst = dst;
    kernel(rows);
  } else {
    rows.dst = result;
    kernel(rows);
    merge(dst, result, written, dwords(shape.dst));
  }
  if (shape.sdst == Slot::mask) write_masks(wave, instruction, shape, rows.mask_out);
}

}  // namespace

void plain(Wave& wave, const Instruction& instruction) {
  unmodified<false>(wave, instruction);
}

namespace {

void moving(Wave& wave, const Instruction& instruction) {
  unmodified<true>(wave, instruction);
}

void readfirstlane(Wave& wave, const Instruction& instruction) {
  const u64 exec = exec_of(wave);
  const u32 lane = exec == 0 ? 0 : static_cast<u32>(__builtin_ctzll(exec));
  const u16 code = instruction.src[0];
  wave.sgpr[instruction.dst] = code >= operand::vgpr0 ? vector_rows(wave, instruction, code, 1, 0)[lane]
                                                      : scalar32(wave, instruction, code);
}
void readlane(Wave& wave, const Instruction& instruction) {
  const u32 lane = scalar32(wave, instruction, instruction.src[1]) & 63;
  wave.sgpr[instruction.dst] = vector_rows(wave, instruction, instruction.src[0], 1, 0)[lane];
}
void writelane(Wave& wave, const Instruction& instruction) {
  const u32 lane = scalar32(wave, instruction, instruction.src[1]) & 63;
  vector_rows(wave, instruction, instruction.dst, 1, 3)[lane] =
      scalar32(wave, instruction, instruction.src[0]);
}
void swap(Wave& wave, const Instruction& instruction) {
  u32* const a = vector_rows(wave, instruction, instruction.dst, 1, 3);
  u32* const b = vector_rows(wave, instruction, instruction.src[0], 1, 0);
  const u64 exec = exec_of(wave);
  for (u32 at = 0; at < lanes; at += 16) {
    const I active = lane_mask(static_cast<u32>(exec >> at) & 0xffffu);
    const U x = load(a + at), y = load(b + at);
    store(a + at, select(active, y, x));
    store(b + at, select(active, x, y));
  }
}
void nothing(Wave&, const Instruction&) {}

bool has_modifiers(const Instruction& instruction, const OpInfo& shape) {
  if (instruction.neg != 0 || instruction.abs != 0 || instruction.omod != 0 || instruction.clamp ||
      instruction.op_sel != 0)
    return true;
  if (instruction.encoding != Encoding::vop3p) return false;
  for (unsigned k = 0; k < 3; ++k) {
    const Slot slot = shape.src[k];
    const bool pair = slot == Slot::v2f16 || slot == Slot::v2b16 || slot == Slot::v2f32;
    if (pair && (instruction.op_sel_hi >> k & 1) == 0) return true;
  }
  return false;
}

struct Made {
  Table table;
  Made() noexcept;
};
Made::Made() noexcept {
  Table& made = table;
  register_integer(made);
  register_integer64(made);
  register_packed(made);
  register_float32(made);
  register_transcendental(made);
  register_float64(made);
  register_float16(made);
  register_convert(made);
  register_compare(made);
}

}  // namespace

const Table& table() {
  static const Made made;
  return made.table;
}

Handler bind(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::v_readfirstlane_b32:
      return readfirstlane;
    case Op::v_readlane_b32:
      return readlane;
    case Op::v_writelane_b32:
      return writelane;
    case Op::v_swap_b32:
      return swap;
    case Op::v_nop:
    case Op::v_clrexcp:
      return nothing;
    default:
      break;
  }
  const vector::Entry& entry = table()[instruction.op];
  if (entry.kernel == nullptr) return nullptr;
  const OpInfo& shape = info(instruction.op);
  if (entry.direct_takes_op_sel && instruction.encoding == Encoding::vop3p && !instruction.clamp &&
      instruction.omod == 0)
    return entry.direct;
  if (!entry.simple || instruction.extension == Extension::sdwa || has_modifiers(instruction, shape))
    return execute;
  if (instruction.extension == Extension::dpp) return dwords(shape.src[0]) == 1 ? moving : execute;
  bool vectors = true;
  for (unsigned k = 0; k < 3; ++k)
    if (shape.src[k] != Slot::none && shape.src[k] != Slot::mask)
      vectors = vectors && instruction.src[k] >= operand::vgpr0;
  if (vectors && entry.inlined != nullptr) return entry.inlined;
  return entry.direct != nullptr ? entry.direct : plain;
}

}  // namespace attest::device::sim::ATTEST_SIMD_NAMESPACE
