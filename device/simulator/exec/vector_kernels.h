// SPDX-License-Identifier: MIT
//
// From a function of lanes to kernels and fast handlers. An operation is a stateless lambda over vectors:
//
//   table[Op::v_xad_u32] = integer<3>([](U a, U b, U c) { return (a ^ b) + c; });
//   table[Op::v_add_f32] = float32<2, hot>([](F a, F b) { return a + b; });
//
// The builders wrap it (NaN rule, flushing), loop over the row, and for hot ones also make the handlers that
// read registers in place.
#pragma once

#include <utility>

#include "device/simulator/exec/vector_entry.h"
#include "device/simulator/exec/vector_simd.h"

namespace attest::device::sim::ATTEST_SIMD_NAMESPACE {

using vector::Entry;
using vector::Kernel;
using vector::Result;
using vector::Rows;
using vector::Table;

void execute(Wave& wave, const Instruction& instruction);  ///< the general path
void plain(Wave& wave, const Instruction& instruction);    ///< no modifiers

/// A scalar or constant operand, 32 bits wide, in a slot that reads inline floats as f32.
u32 special_scalar(const Wave& wave, const Instruction& instruction, u16 code);
u64 wide_scalar(const Wave& wave, const Instruction& instruction, u16 code);  ///< in a b64 slot
ATTEST_INLINE u32 scalar32(const Wave& wave, const Instruction& instruction, u16 code) {
  if (code < 128) [[likely]]
    return wave.sgpr[code];
  if (code == operand::literal) return instruction.literal;
  if (code <= 192) return code - 128u;
  return special_scalar(wave, instruction, code);
}

/// What a lane function may want besides its operands.
struct Context {
  u32 mode = 0;
  u64 mask_in = 0;
  u32 first_lane = 0;
};

enum Heat { cold, hot };
enum Accumulate { separate, accumulate };  ///< the third source is the destination

inline constexpr u32 round32 = mode::round32_mask, round64 = mode::round64_mask;
inline constexpr u32 denorm32 = mode::denorm32_in | mode::denorm32_out;
inline constexpr u32 denorm64 = mode::denorm64_in | mode::denorm64_out;

template <class Fn, class... X>
ATTEST_INLINE auto call(const Context& context, const X&... x) {
  if constexpr (requires { Fn{}(context, x...); })
    return Fn{}(context, x...);
  else
    return Fn{}(x...);
}

// Adapters: every one has a static run(context, U...) -> U.

template <class Fn>
struct Integer {
  template <class... X>
  static ATTEST_INLINE auto run(const Context& context, const X&... x) {
    return call<Fn>(context, x...);
  }
};

template <class Fn, bool flushed>
struct Float32 {
  template <class... X>
  static ATTEST_INLINE U run(const Context& context, const X&... x) {
    return finish(context, source(x)...);
  }
  static ATTEST_INLINE F source(const U& x) { return flushed ? flush(f(x)) : f(x); }
  static ATTEST_INLINE U finish(const Context& context, const F& a) {
    return result(propagate(call<Fn>(context, a), context.mode, a, F{}, F{}));
  }
  static ATTEST_INLINE U finish(const Context& context, const F& a, const F& b) {
    return result(propagate(call<Fn>(context, a, b), context.mode, a, b, F{}));
  }
  static ATTEST_INLINE U finish(const Context& context, const F& a, const F& b, const F& c) {
    return result(propagate(call<Fn>(context, a, b, c), context.mode, a, b, c));
  }
  static ATTEST_INLINE U result(const F& r) { return u(flushed ? flush(r) : r); }
};

/// Floats in, anything out, and no NaN rule: min, conversions to integer, comparisons.
template <class Fn, bool flushed>
struct FromFloat32 {
  template <class... X>
  static ATTEST_INLINE auto run(const Context& context, const X&... x) {
    const auto r = call<Fn>(context, (flushed ? flush(f(x)) : f(x))...);
    return bits_of(r);
  }
  static ATTEST_INLINE U bits_of(const F& r) { return u(r); }
  static ATTEST_INLINE U bits_of(const U& r) { return r; }
  static ATTEST_INLINE I bits_of(const I& r) { return r; }
};

template <class Fn>
struct Float64 {
  static ATTEST_INLINE L run(const Context& context, const L& a) {
    return l(propagate(call<Fn>(context, d(a)), context.mode, d(a), D{}, D{}));
  }
  static ATTEST_INLINE L run(const Context& context, const L& a, const L& b) {
    return l(propagate(call<Fn>(context, d(a), d(b)), context.mode, d(a), d(b), D{}));
  }
  static ATTEST_INLINE L run(const Context& context, const L& a, const L& b, const L& c) {
    return l(propagate(call<Fn>(context, d(a), d(b), d(c)), context.mode, d(a), d(b), d(c)));
  }
};

// Kernels.

template <class Adapter, int sources>
void kernel32(Rows& rows) {
  Context context{rows.mode, rows.mask_in, 0};
  for (u32 at = 0; at < lanes; at += 16) {
    context.first_lane = at;
    U r;
    if constexpr (sources == 1)
      r = Adapter::run(context, load(rows.src[0] + at));
    else if constexpr (sources == 2)
      r = Adapter::run(context, load(rows.src[0] + at), load(rows.src[1] + at));
    else
      r = Adapter::run(context, load(rows.src[0] + at), load(rows.src[1] + at), load(rows.src[2] + at));
    store(rows.dst + at, r);
  }
}

template <class Adapter>
void compare32(Rows& rows) {
  Context context{rows.mode, rows.mask_in, 0};
  u64 mask = 0;
  for (u32 at = 0; at < lanes; at += 16)
    mask |= u64{mask_bits(Adapter::run(context, load(rows.src[0] + at), load(rows.src[1] + at)))} << at;
  rows.mask_out = mask;
}

template <bool wide>
ATTEST_INLINE L source64(const u32* p) {
  if constexpr (wide)
    return load64(p);
  else
    return widen(load8(p));
}

/// Sources are 64-bit where bit i of `wide` is set, else 32-bit zero-extended; the result is 64-bit unless
/// `narrow`.
template <class Adapter, int sources, unsigned wide, bool narrow = false>
void kernel64(Rows& rows) {
  Context context{rows.mode, rows.mask_in, 0};
  for (u32 at = 0; at < lanes; at += 8) {
    context.first_lane = at;
    const L a = source64 < (wide & 1) != 0 > (rows.src[0] + at);
    L r;
    if constexpr (sources == 1) {
      r = Adapter::run(context, a);
    } else {
      const L b = source64 < (wide & 2) != 0 > (rows.src[1] + at);
      if constexpr (sources == 2)
        r = Adapter::run(context, a, b);
      else
        r = Adapter::run(context, a, b, source64 < (wide & 4) != 0 > (rows.src[2] + at));
    }
    if constexpr (narrow)
      store8(rows.dst + at, low32(r));
    else
      store64(rows.dst + at, r);
  }
}

template <class Fn>
struct Integer64 {
  template <class... X>
  static ATTEST_INLINE L run(const Context& context, const X&... x) {
    return call<Fn>(context, x...);
  }
};

template <class Fn, unsigned wide>
void compare64(Rows& rows) {
  const Context context{rows.mode, rows.mask_in, 0};
  u64 mask = 0;
  for (u32 at = 0; at < lanes; at += 8) {
    const J m = call<Fn>(context, source64 < (wide & 1) != 0 > (rows.src[0] + at),
                         source64 < (wide & 2) != 0 > (rows.src[1] + at));
    mask |= u64{mask_bits(m)} << at;
  }
  rows.mask_out = mask;
}

struct WithCarry {
  U value;
  I carry;
};
template <class Fn>
void carry32(Rows& rows) {
  u64 mask = 0;
  for (u32 at = 0; at < lanes; at += 16) {
    const U carry_in = u(lane_mask(static_cast<u32>(rows.mask_in >> at))) & 1u;
    const WithCarry r = Fn{}(load(rows.src[0] + at), load(rows.src[1] + at), carry_in);
    store(rows.dst + at, r.value);
    mask |= u64{mask_bits(r.carry) & 0xffffu} << at;
  }
  rows.mask_out = mask;
}

/// One lane at a time, for operations nobody waits for.
template <class Fn, int sources>
void scalar32_kernel(Rows& rows) {
  for (u32 lane = 0; lane < lanes; ++lane) {
    if constexpr (sources == 1)
      rows.dst[lane] = Fn{}(rows.src[0][lane]);
    else if constexpr (sources == 2)
      rows.dst[lane] = Fn{}(rows.src[0][lane], rows.src[1][lane]);
    else
      rows.dst[lane] = Fn{}(rows.src[0][lane], rows.src[1][lane], rows.src[2][lane]);
  }
}

// Fast handlers.

template <unsigned uniform, unsigned index>
struct Source {
  const u32* row;
  U value;
  ATTEST_INLINE Source(const Wave& wave, const Instruction& instruction, u16 code) {
    if constexpr ((uniform >> index & 1) != 0)
      value = splat(scalar32(wave, instruction, code));
    else
      row = wave.vgpr + (code - u32{operand::vgpr0}) * lanes;
  }
  ATTEST_INLINE U get(u32 at) const {
    if constexpr ((uniform >> index & 1) != 0)
      return value;
    else
      return load(row + at);
  }
};

ATTEST_INLINE u64 exec_of(const Wave& wave) {
  return wave.sgpr[126] | u64{wave.sgpr[127]} << 32;
}

template <class Adapter, int sources, unsigned uniform, Accumulate mode>
ATTEST_INLINE void run_rows(Wave& wave, const Instruction& instruction) {
  u32* const dst = wave.vgpr + (instruction.dst - u32{operand::vgpr0}) * lanes;
  Context context{wave.mode, 0, 0};
  const Source<uniform, 0> a(wave, instruction, instruction.src[0]);
  const Source<uniform, 1> b(wave, instruction, sources > 1 ? instruction.src[1] : operand::vgpr0);
  const Source<uniform, 2> c(
      wave, instruction,
      mode == accumulate ? instruction.dst : (sources > 2 ? instruction.src[2] : operand::vgpr0));
  const auto compute = [&](u32 at) __attribute__((always_inline)) {
    context.first_lane = at;
    if constexpr (sources == 1)
      return Adapter::run(context, a.get(at));
    else if constexpr (sources == 2)
      return Adapter::run(context, a.get(at), b.get(at));
    else
      return Adapter::run(context, a.get(at), b.get(at), c.get(at));
  };
  const u64 exec = exec_of(wave);
  if (exec == ~0ull) [[likely]] {
    for (u32 at = 0; at < lanes; at += 16) store(dst + at, compute(at));
  } else {
    for (u32 at = 0; at < lanes; at += 16)
      store(dst + at, select(lane_mask(static_cast<u32>(exec >> at)), compute(at), load(dst + at)));
  }
}

template <class Keep, class Flush, int sources, unsigned uniform, u32 mask, u32 keep, Accumulate mode>
void fast32(Wave& wave, const Instruction& instruction) {
  const u32 now = wave.mode & (mask | mode::gpr_idx_en);
  if (now == keep) [[likely]]
    return run_rows<Keep, sources, uniform, mode>(wave, instruction);
  if constexpr (mask != 0)
    if (now == 0) return run_rows<Flush, sources, uniform, mode>(wave, instruction);
  execute(wave, instruction);
}

template <class Keep, class Flush, int sources, u32 mask, u32 keep, Accumulate mode = separate>
void fill_fast32(Entry& entry) {
  constexpr unsigned free = mode == accumulate ? 2 : sources;
  [&]<unsigned... k>(std::integer_sequence<unsigned, k...>) {
    ((entry.fast[k] = &fast32<Keep, Flush, sources, k, mask, keep, mode>), ...);
  }(std::make_integer_sequence<unsigned, (1u << free)>{});
}

ATTEST_INLINE void write_mask(Wave& wave, u16 code, u64 mask) {
  wave.sgpr[code] = static_cast<u32>(mask);
  wave.sgpr[code + 1] = static_cast<u32>(mask >> 32);
}

template <class Adapter, unsigned uniform>
ATTEST_INLINE void run_compare(Wave& wave, const Instruction& instruction) {
  const Context context{wave.mode, 0, 0};
  const Source<uniform, 0> a(wave, instruction, instruction.src[0]);
  const Source<uniform, 1> b(wave, instruction, instruction.src[1]);
  u64 mask = 0;
  for (u32 at = 0; at < lanes; at += 16)
    mask |= u64{mask_bits(Adapter::run(context, a.get(at), b.get(at)))} << at;
  write_mask(wave, instruction.dst, mask & exec_of(wave));
}
template <class Keep, class Flush, unsigned uniform, u32 mask>
void fast_compare(Wave& wave, const Instruction& instruction) {
  const u32 now = wave.mode & (mask | mode::gpr_idx_en);
  if (now == mask) [[likely]]
    return run_compare<Keep, uniform>(wave, instruction);
  if constexpr (mask != 0)
    if (now == 0) return run_compare<Flush, uniform>(wave, instruction);
  execute(wave, instruction);
}
template <class Keep, class Flush, u32 mask>
void fill_fast_compare(Entry& entry) {
  [&]<unsigned... k>(std::integer_sequence<unsigned, k...>) {
    ((entry.fast[k] = &fast_compare<Keep, Flush, k, mask>), ...);
  }(std::make_integer_sequence<unsigned, 4>{});
}

// Builders.

template <int sources, Heat heat = cold, class Fn>
Entry integer(Fn) {
  Entry e;
  e.kernel = &kernel32<Integer<Fn>, sources>;
  if constexpr (heat == hot) fill_fast32<Integer<Fn>, Integer<Fn>, sources, 0, 0>(e);
  return e;
}
/// With the form that clamp selects.
template <int sources, Heat heat = cold, class Fn, class Saturating>
Entry integer(Fn fn, Saturating) {
  Entry e = integer<sources, heat>(fn);
  e.clamped = &kernel32<Integer<Saturating>, sources>;
  return e;
}
/// A 16-bit result in the low half; what the lambda leaves in the high half is cut off.
template <class Fn>
struct Half {
  template <class... X>
  static ATTEST_INLINE U run(const Context& context, const X&... x) {
    return call<Fn>(context, x...) & 0xffffu;
  }
};
template <int sources, class Fn>
Entry integer16(Fn) {
  Entry e;
  e.kernel = &kernel32<Half<Fn>, sources>;
  e.result = Result::b16;
  return e;
}
template <int sources, class Fn, class Saturating>
Entry integer16(Fn fn, Saturating) {
  Entry e = integer16<sources>(fn);
  e.clamped = &kernel32<Half<Saturating>, sources>;
  return e;
}
inline Entry keeping_half(Entry e) {
  e.keeps_half = true;
  e.simple = false;
  return e;
}

/// An f32 operation that rounds.
template <int sources, Heat heat = cold, Accumulate mode = separate, class Fn>
Entry float32(Fn) {
  Entry e;
  e.kernel = &kernel32<Float32<Fn, false>, sources>;
  e.flush = &kernel32<Float32<Fn, true>, sources>;
  e.result = Result::f32;
  e.rounds = e.flushes = true;
  e.mode_mask = round32 | denorm32;
  e.mode_keep = denorm32;
  if constexpr (heat == hot)
    fill_fast32<Float32<Fn, false>, Float32<Fn, true>, sources, round32 | denorm32, denorm32, mode>(e);
  return e;
}
/// An f32 operation that is exact, but sees flushed sources: min, max, trunc.
template <int sources, Heat heat = cold, class Fn>
Entry exact32(Fn) {
  Entry e;
  e.kernel = &kernel32<FromFloat32<Fn, false>, sources>;
  e.flush = &kernel32<FromFloat32<Fn, true>, sources>;
  e.result = Result::f32;
  e.flushes = true;
  e.mode_mask = e.mode_keep = denorm32;
  if constexpr (heat == hot)
    fill_fast32<FromFloat32<Fn, false>, FromFloat32<Fn, true>, sources, denorm32, denorm32>(e);
  return e;
}
/// As exact32, with the NaN rule of arithmetic.
template <int sources, Heat heat = cold, class Fn>
Entry rounded_to_integer32(Fn fn) {
  Entry e = float32<sources>(fn);
  e.rounds = false;
  e.mode_mask = e.mode_keep = denorm32;
  if constexpr (heat == hot)
    fill_fast32<Float32<Fn, false>, Float32<Fn, true>, sources, denorm32, denorm32>(e);
  return e;
}
/// f32 to bits, denormals being zero for it anyway.
template <int sources, Heat heat = cold, class Fn>
Entry from_float32(Fn) {
  Entry e;
  e.kernel = &kernel32<FromFloat32<Fn, false>, sources>;
  if constexpr (heat == hot) fill_fast32<FromFloat32<Fn, false>, FromFloat32<Fn, false>, sources, 0, 0>(e);
  return e;
}
template <int sources, class Fn>
Entry float64(Fn) {
  Entry e;
  e.kernel = &kernel64<Float64<Fn>, sources, 7>;
  e.result = Result::f64;
  e.rounds = e.flushes = true;
  e.mode_mask = round64 | denorm64;
  e.mode_keep = denorm64;
  return e;
}
template <int sources, unsigned wide, class Fn>
Entry integer64(Fn) {
  Entry e;
  e.kernel = &kernel64<Integer64<Fn>, sources, wide>;
  return e;
}

template <Heat heat = cold, class Fn>
Entry compare_integer(Fn) {
  Entry e;
  e.kernel = &compare32<Integer<Fn>>;
  e.result = Result::mask;
  return e;
}

// Registration, one function per file.
void register_integer(Table& table);
void register_integer64(Table& table);
void register_packed(Table& table);
void register_float32(Table& table);
void register_transcendental(Table& table);
void register_float64(Table& table);
void register_float16(Table& table);
void register_convert(Table& table);
void register_compare(Table& table);

const Table& table();
Handler bind(const Instruction& instruction);

}  // namespace attest::device::sim::ATTEST_SIMD_NAMESPACE
