// SPDX-License-Identifier: MIT
//
// f32 arithmetic, and the packed f32 pairs of gfx90a.
#include "device/simulator/exec/vector_float.h"

namespace attest::device::sim::ATTEST_SIMD_NAMESPACE {
namespace {

// Where the manual's text cannot be meant (it scales a denominator near the top of the range further up) or
// measurements differ from it (tinygrad's hardware tests), the rule is the one with which LLVM's expansion of
// a division rounds correctly for all operands; the tests hold it to that.
//
// Division in steps: v_div_scale brings numerator and denominator where neither the reciprocal nor the
// quotient over- or underflows, v_div_fmas undoes it on the last refinement, v_div_fixup handles the special
// cases. Sources: 0 is whichever of the two is wanted (div_scale) or the quotient, 1 the denominator, 2 the
// numerator.
struct Scaled {
  F value;
  I flag;
};
ATTEST_INLINE I biased_exponent(const F& x) {
  return i((u(x) >> 23) & 0xffu);
}
ATTEST_INLINE I denormal(const F& x) {
  return (biased_exponent(x) == 0) & ((u(x) & 0x7fffffu) != 0);
}
ATTEST_INLINE I tiny_quotient(const F& numerator, const F& denominator) {
  // |n / d| < 2^-126, decided in double, which holds every such quotient
  const D low = abs(to_double(lower(numerator)) / to_double(lower(denominator)));
  const D high = abs(to_double(upper(numerator)) / to_double(upper(denominator)));
  const D limit = splatd(0x1p-126);
  const u32 mask = mask_bits(low < limit) | mask_bits(high < limit) << 8;
  return lane_mask(mask);
}
ATTEST_INLINE Scaled div_scale(u32 mode_bits, const F& s0, const F& s1, const F& s2) {
  const F up = propagate(s0 * splatf(0x1p64f), mode_bits, s0, F{}, F{});
  const F down = propagate(s0 * splatf(0x1p-64f), mode_bits, s0, F{}, F{});
  const I zero = (s1 == 0.0f) | (s2 == 0.0f);
  const I gap = (biased_exponent(s2) - biased_exponent(s1)) >= 96;
  const I reciprocal_tiny = (abs(s1) > splatf(0x1p126f)) & (abs(s1) < splatf(__builtin_inff()));
  const I quotient_tiny = tiny_quotient(s2, s1);
  const I is_denominator = u(s0) == u(s1), is_numerator = u(s0) == u(s2);
  Scaled r{s0, I{}};
  // From the last rule of the manual to the first: earlier ones override.
  r.value = select(biased_exponent(s2) <= 23, up, r.value);
  r.value = select(quotient_tiny, select(is_numerator, up, s0), r.value);
  r.flag = quotient_tiny;
  r.value = select(reciprocal_tiny, down, r.value);
  r.flag = select(reciprocal_tiny, I{}, r.flag);
  const I both = reciprocal_tiny & quotient_tiny;
  r.value = select(both, select(is_denominator, down, s0), r.value);
  r.flag |= both;
  r.value = select(denormal(s1), up, r.value);
  r.flag = select(denormal(s1), I{}, r.flag);
  r.value = select(gap, select(is_denominator, up, s0), r.value);
  r.flag |= gap;
  r.value = select(zero, f(splat(0x7fc00000u)), r.value);
  r.flag = select(zero, I{}, r.flag);
  return r;
}
void div_scale_kernel(Rows& rows) {
  u64 mask = 0;
  for (u32 at = 0; at < lanes; at += 16) {
    const Scaled r =
        div_scale(rows.mode, f(load(rows.at(0, at))), f(load(rows.at(1, at))), f(load(rows.at(2, at))));
    store(rows.dst + at, u(r.value));
    mask |= u64{mask_bits(r.flag)} << at;
  }
  rows.mask_out = mask;
}

ATTEST_INLINE U quieted(const F& x) {
  return u(x) | 0x00400000u;
}

// Two results per lane, each from its own dword of the sources: pairs of rows.
template <class Fn, bool flushed, int sources>
void pair_kernel(Rows& rows) {
  const Context context{rows.mode, 0, 0};
  using Run = Float32<Fn, flushed>;
  for (u32 at = 0; at < lanes; at += 16) {
    U r[2];
    for (u32 half = 0; half < 2; ++half) {
      if constexpr (sources == 2)
        r[half] = Run::run(context, load(rows.at(0, at) + half * lanes), load(rows.at(1, at) + half * lanes));
      else
        r[half] = Run::run(context, load(rows.at(0, at) + half * lanes), load(rows.at(1, at) + half * lanes),
                           load(rows.at(2, at) + half * lanes));
    }
    store(rows.dst + at, r[0]);
    store(rows.dst + lanes + at, r[1]);
  }
}

/// A source of a packed instruction read in place: op_sel and op_sel_hi choose the rows, neg and neg_hi flip
/// signs.
struct PairSource {
  const u32* row[2] = {};
  U value[2] = {}, flip[2] = {};
  bool vector;

  ATTEST_INLINE PairSource(const Wave& wave, const Instruction& instruction, unsigned index) {
    const u16 code = instruction.src[index];
    const u32 pick[2] = {u32{instruction.op_sel} >> index & 1, u32{instruction.op_sel_hi} >> index & 1};
    vector = code >= operand::vgpr0;
    flip[0] = splat((u32{instruction.neg} >> index & 1) << 31);
    flip[1] = splat((u32{instruction.abs} >> index & 1) << 31);
    for (u32 k = 0; k < 2; ++k) {
      if (vector)
        row[k] = wave.vgpr + (code - u32{operand::vgpr0} + pick[k]) * lanes;
      else
        value[k] = splat(code < 128 ? wave.sgpr[(code + pick[k]) & 127] : scalar32(wave, instruction, code));
    }
  }
  ATTEST_INLINE U get(u32 half, u32 at) const {
    return (vector ? load(row[half] + at) : value[half]) ^ flip[half];
  }
};

template <class Fn, bool flushed, int sources>
ATTEST_INLINE void run_pair(Wave& wave, const Instruction& instruction) {
  using Run = Float32<Fn, flushed>;
  const Context context{wave.mode, 0, 0};
  u32* const dst = wave.vgpr + (instruction.dst - u32{operand::vgpr0}) * lanes;
  const PairSource a(wave, instruction, 0), b(wave, instruction, 1), c(wave, instruction, sources - 1);
  const u64 exec = exec_of(wave);
  for (u32 at = 0; at < lanes; at += 16) {
    U r[2];
    for (u32 half = 0; half < 2; ++half) {
      if constexpr (sources == 2)
        r[half] = Run::run(context, a.get(half, at), b.get(half, at));
      else
        r[half] = Run::run(context, a.get(half, at), b.get(half, at), c.get(half, at));
    }
    if (exec != ~0ull) [[unlikely]] {
      const I active = lane_mask(static_cast<u32>(exec >> at) & 0xffffu);
      r[0] = select(active, r[0], load(dst + at));
      r[1] = select(active, r[1], load(dst + lanes + at));
    }
    store(dst + at, r[0]);
    store(dst + lanes + at, r[1]);
  }
}
template <class Fn, int sources>
void fast_pair(Wave& wave, const Instruction& instruction) {
  const u32 now = wave.mode & (round32 | denorm32 | mode::gpr_idx_en);
  if (now == denorm32) return run_pair<Fn, false, sources>(wave, instruction);
  if (now == 0) return run_pair<Fn, true, sources>(wave, instruction);
  execute(wave, instruction);
}
template <int sources, class Fn>
Entry float32_pair(Fn) {
  Entry e;
  e.kernel = &pair_kernel<Fn, false, sources>;
  e.flush = &pair_kernel<Fn, true, sources>;
  e.result = Result::v2f32;
  e.rounds = e.flushes = true;
  e.mode_mask = round32 | denorm32;
  e.mode_keep = denorm32;
  e.direct = &fast_pair<Fn, sources>;
  e.direct_takes_op_sel = true;
  return e;
}

void pair_move(Rows& rows) {
  for (u32 at = 0; at < lanes; at += 16) {
    const U low = load(rows.at(0, at)), high = load(rows.at(1, at));
    store(rows.dst + at, low);
    store(rows.dst + lanes + at, high);
  }
}

}  // namespace

void register_float32(Table& table) {
  const auto at = [&](Op op) -> Entry& { return table[op]; };
  const auto add = [](F a, F b) { return a + b; };
  const auto mul = [](F a, F b) { return a * b; };
  const auto fused = [](F a, F b, F c) { return fma(a, b, c); };
  at(Op::v_add_f32) = float32<2, hot>(add);
  at(Op::v_sub_f32) = float32<2, hot>([](F a, F b) { return a - b; });
  at(Op::v_subrev_f32) = float32<2, hot>([](F a, F b) { return b - a; });
  at(Op::v_mul_f32) = float32<2, hot>(mul);
  at(Op::v_mul_legacy_f32) =
      float32<2>([](F a, F b) { return select((a == 0.0f) | (b == 0.0f), F{}, a * b); });
  at(Op::v_fma_f32) = float32<3, hot>(fused);
  at(Op::v_fmac_f32) = float32<3, hot, accumulate>(fused);
  at(Op::v_fmamk_f32) = float32<3, hot>(fused);
  at(Op::v_fmaak_f32) = at(Op::v_fmamk_f32);
  at(Op::v_pk_add_f32) = float32_pair<2>(add);
  at(Op::v_pk_mul_f32) = float32_pair<2>(mul);
  at(Op::v_pk_fma_f32) = float32_pair<3>(fused);
  at(Op::v_pk_mov_b32).kernel = &pair_move;
  at(Op::v_pk_mov_b32).simple = false;

  at(Op::v_min_f32) = exact32<2, hot>([](const Context& c, F a, F b) { return minimum(c, a, b); });
  at(Op::v_max_f32) = exact32<2, hot>([](const Context& c, F a, F b) { return maximum(c, a, b); });
  at(Op::v_min3_f32) =
      exact32<3>([](const Context& x, F a, F b, F c) { return minimum(x, minimum(x, a, b), c); });
  at(Op::v_max3_f32) =
      exact32<3, hot>([](const Context& x, F a, F b, F c) { return maximum(x, maximum(x, a, b), c); });
  at(Op::v_med3_f32) = exact32<3, hot>([](const Context& x, F a, F b, F c) { return median(x, a, b, c); });

  at(Op::v_trunc_f32) = rounded_to_integer32<1>([](F a) { return trunc(a); });
  at(Op::v_ceil_f32) = rounded_to_integer32<1>([](F a) { return ceil(a); });
  at(Op::v_floor_f32) = rounded_to_integer32<1>([](F a) { return floor(a); });
  at(Op::v_rndne_f32) = rounded_to_integer32<1>([](F a) { return rint(a); });
  // Below 1 even where x - floor(x) rounds to it: LLVM folds min(x - floor(x), 1 - 2^-24) to this
  // instruction.
  at(Op::v_fract_f32) = rounded_to_integer32<1>([](F a) {
    const F r = a - floor(a), limit = splatf(0x1.fffffep-1f);
    return select(r > limit, limit, r);
  });
  at(Op::v_frexp_mant_f32) = rounded_to_integer32<1>([](F a) {
    const F normal = select(denormal(a), a * splatf(0x1p32f), a);
    const U mantissa = (u(normal) & 0x807fffffu) | 0x3f000000u;
    const I unchanged = ~(abs(a) < __builtin_inff()) | (a == 0.0f);
    return select(unchanged, a, f(mantissa));
  });
  at(Op::v_frexp_exp_i32_f32) = exact32<1>([](F a) {
    const I tiny = denormal(a);
    const F normal = select(tiny, a * splatf(0x1p32f), a);
    const I exponent = biased_exponent(normal) - 126 - (tiny & 32);
    return u(select(~(abs(a) < __builtin_inff()) | (a == 0.0f), I{}, exponent));
  });
  at(Op::v_frexp_exp_i32_f32).result = Result::bits;
  at(Op::v_ldexp_f32).kernel = &kernel32<Ldexp32, 2>;
  at(Op::v_ldexp_f32).result = Result::f32;
  at(Op::v_ldexp_f32).rounds = at(Op::v_ldexp_f32).flushes = true;
  at(Op::v_ldexp_f32).mode_mask = round32 | denorm32;
  at(Op::v_ldexp_f32).mode_keep = denorm32;

  Entry& scale = at(Op::v_div_scale_f32);
  scale = indirect(float32<3>(fused));
  scale.kernel = &div_scale_kernel;
  scale.flush = nullptr;
  // The scale follows the numerator: v_div_scale made it large or left it small. (The manual writes a
  // constant 2^32; measured hardware behaves this way, see tinygrad's emulator and its hardware tests.)
  at(Op::v_div_fmas_f32) = indirect(float32<3>([](const Context& context, F a, F b, F c) {
    const I scaled = lane_mask(static_cast<u32>(context.mask_in >> context.first_lane) & 0xffffu);
    const F factor = select(biased_exponent(c) > 127, splatf(0x1p64f), splatf(0x1p-64f));
    // One rounding: scale the exact sum by scaling a and c, in double.
    const F r = fma(a, b, c);
    return select(scaled, scale_fused(a, b, c, factor), r);
  }));
  at(Op::v_div_fixup_f32) = exact32<3>([](F quotient, F denominator, F numerator) {
    const U sign = (u(denominator) ^ u(numerator)) & 0x80000000u;
    const F inf = splatf(__builtin_inff());
    const F mn = abs(numerator), md = abs(denominator);
    // A NaN here comes from an infinity the refinement met on the way: the quotient overflows.
    U r = select(quotient != quotient, splat(0x7f800000u), u(quotient) & 0x7fffffffu) | sign;
    const I far_below = (biased_exponent(numerator) - biased_exponent(denominator)) < -150;
    r = select(far_below, sign, r);
    r = select((md == inf) | (mn == 0.0f), sign, r);
    r = select((md == 0.0f) | (mn == inf), sign | 0x7f800000u, r);
    r = select(((md == 0.0f) & (mn == 0.0f)) | ((md == inf) & (mn == inf)), splat(default_nan), r);
    r = select(denominator != denominator, quieted(denominator), r);
    r = select(numerator != numerator, quieted(numerator), r);
    return f(r);
  });

  // Cube maps.
  at(Op::v_cubeid_f32) = exact32<3>([](F x, F y, F z) {
    const I major_z = (abs(z) >= abs(x)) & (abs(z) >= abs(y)), major_y = abs(y) >= abs(x);
    const F fz = select(z < 0.0f, splatf(5), splatf(4)), fy = select(y < 0.0f, splatf(3), splatf(2));
    const F fx = select(x < 0.0f, splatf(1), F{});
    return select(major_z, fz, select(major_y, fy, fx));
  });
  at(Op::v_cubesc_f32) = exact32<3>([](F x, F y, F z) {
    const I major_z = (abs(z) >= abs(x)) & (abs(z) >= abs(y)), major_y = abs(y) >= abs(x);
    return select(major_z, select(z < 0.0f, -x, x), select(major_y, x, select(x < 0.0f, z, -z)));
  });
  at(Op::v_cubetc_f32) = exact32<3>([](F x, F y, F z) {
    const I major_z = (abs(z) >= abs(x)) & (abs(z) >= abs(y)), major_y = abs(y) >= abs(x);
    return select(major_z, -y, select(major_y, select(y < 0.0f, -z, z), -y));
  });
  at(Op::v_cubema_f32) = float32<3>([](F x, F y, F z) {
    const I major_z = (abs(z) >= abs(x)) & (abs(z) >= abs(y)), major_y = abs(y) >= abs(x);
    return select(major_z, z, select(major_y, y, x)) * splatf(2);
  });
}

}  // namespace attest::device::sim::ATTEST_SIMD_NAMESPACE
