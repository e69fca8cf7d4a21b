// SPDX-License-Identifier: MIT
//
// From a function of lanes to kernels and handlers. An operation is a stateless lambda over vectors:
//
//   table[Op::v_xad_u32] = integer<3>([](U a, U b, U c) { return (a ^ b) + c; });
//   table[Op::v_add_f32] = float32<2, hot>([](F a, F b) { return a + b; });
//
// The builders wrap it (NaN rule, flushing), loop over the row, and for hot ones also make the handlers that
// read registers in place.
#pragma once

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
u64 constant(const Wave& wave, const Instruction& instruction,
             unsigned index);                                       ///< source `index`, not a VGPR
void merge(u32* dst, const u32* result, u64 mask, unsigned count);  ///< rows, the lanes of `mask` only
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
      r = Adapter::run(context, load(rows.at(0, at)));
    else if constexpr (sources == 2)
      r = Adapter::run(context, load(rows.at(0, at)), load(rows.at(1, at)));
    else
      r = Adapter::run(context, load(rows.at(0, at)), load(rows.at(1, at)), load(rows.at(2, at)));
    store(rows.dst + at, r);
  }
}

template <class Adapter>
void compare32(Rows& rows) {
  Context context{rows.mode, rows.mask_in, 0};
  u64 mask = 0;
  for (u32 at = 0; at < lanes; at += 16)
    mask |= u64{mask_bits(Adapter::run(context, load(rows.at(0, at)), load(rows.at(1, at))))} << at;
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
    const L a = source64 < (wide & 1) != 0 > (rows.at(0, at));
    L r;
    if constexpr (sources == 1) {
      r = Adapter::run(context, a);
    } else {
      const L b = source64 < (wide & 2) != 0 > (rows.at(1, at));
      if constexpr (sources == 2)
        r = Adapter::run(context, a, b);
      else
        r = Adapter::run(context, a, b, source64 < (wide & 4) != 0 > (rows.at(2, at)));
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
    const J m = call<Fn>(context, source64 < (wide & 1) != 0 > (rows.at(0, at)),
                         source64 < (wide & 2) != 0 > (rows.at(1, at)));
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
    const WithCarry r = Fn{}(load(rows.at(0, at)), load(rows.at(1, at)), carry_in);
    store(rows.dst + at, r.value);
    mask |= u64{mask_bits(r.carry) & 0xffffu} << at;
  }
  rows.mask_out = mask;
}

// Handlers of one kernel.

ATTEST_INLINE u64 exec_of(const Wave& wave) {
  return wave.sgpr[126] | u64{wave.sgpr[127]} << 32;
}
ATTEST_INLINE u64 pair_of(const Wave& wave, u16 code) {
  return wave.sgpr[code] | u64{wave.sgpr[(code + 1) & 127]} << 32;
}
ATTEST_INLINE u32* rows_of(const Wave& wave, u16 code) {
  return wave.vgpr + (code - u32{operand::vgpr0}) * lanes;
}
ATTEST_INLINE void write_mask(Wave& wave, u16 code, u64 mask) {
  wave.sgpr[code] = static_cast<u32>(mask);
  wave.sgpr[code + 1] = static_cast<u32>(mask >> 32);
}

struct Shape {
  int sources = 1;
  unsigned wide = 0;     ///< bit i: source i has 64 bits
  unsigned results = 1;  ///< rows; 0: a mask
  Accumulate third = separate;
  bool mask_in = false, mask_out = false;
  u32 mode_mask = 0, mode_keep = 0;
};

/// Sixteen lanes of a uniform source, and as many of its high half.
struct alignas(64) Uniform {
  u32 low[lanes];
  u32 high[16];
};

template <unsigned index, bool is_wide>
ATTEST_INLINE void resolve(Rows& rows, Uniform& storage, const Wave& wave, const Instruction& instruction) {
  const u16 code = instruction.src[index];
  if (code >= operand::vgpr0) [[likely]] {
    rows.src[index] = rows_of(wave, code);
    return;
  }
  u64 value;
  if (code < 128)
    value = is_wide ? pair_of(wave, code) : wave.sgpr[code];
  else if (code <= 192)
    value = code - 128u;
  else
    value = constant(wave, instruction, index);
  store(storage.low, splat(static_cast<u32>(value)));
  if constexpr (is_wide) store(storage.high, splat(static_cast<u32>(value >> 32)));
  rows.src[index] = storage.low;
  rows.step[index] = 0;
}

template <Kernel keep, Kernel flush, Shape shape>
void direct(Wave& wave, const Instruction& instruction) {
  const u32 now = wave.mode & (shape.mode_mask | mode::gpr_idx_en);
  Kernel kernel = keep;
  if (now != shape.mode_keep) [[unlikely]] {
    if (flush == nullptr || now != 0) return execute(wave, instruction);
    kernel = flush;
  }
  Rows rows;
  Uniform storage[3];
  rows.mode = wave.mode;
  rows.instruction = &instruction;
  resolve<0, (shape.wide & 1) != 0>(rows, storage[0], wave, instruction);
  if constexpr (shape.sources > 1) resolve<1, (shape.wide & 2) != 0>(rows, storage[1], wave, instruction);
  if constexpr (shape.third == accumulate)
    rows.src[2] = rows_of(wave, instruction.dst);
  else if constexpr (shape.sources > 2)
    resolve<2, (shape.wide & 4) != 0>(rows, storage[2], wave, instruction);
  if constexpr (shape.mask_in) {
    const u16 code = instruction.src[2];
    rows.mask_in = code < 128              ? pair_of(wave, code)
                   : code == operand::none ? pair_of(wave, operand::vcc)
                                           : constant(wave, instruction, 2);
  }
  const u64 exec = exec_of(wave);
  if constexpr (shape.results == 0) {
    kernel(rows);
    write_mask(wave, instruction.dst, rows.mask_out & exec);
  } else {
    u32* const dst = rows_of(wave, instruction.dst);
    if (exec == ~0ull) [[likely]] {
      // In place even when pairs overlap: a kernel reads all of a lane before it writes the lane.
      rows.dst = dst;
      kernel(rows);
    } else {
      alignas(64) u32 result[shape.results * lanes];
      rows.dst = result;
      kernel(rows);
      merge(dst, result, exec, shape.results);
    }
    if constexpr (shape.mask_out) write_mask(wave, instruction.sdst, rows.mask_out & exec);
  }
}

/// Sources all vectors, every lane active: the operation where its operands are.
template <class Adapter, Handler otherwise, Shape shape>
void inlined(Wave& wave, const Instruction& instruction) {
  if ((wave.mode & (shape.mode_mask | mode::gpr_idx_en)) != shape.mode_keep || exec_of(wave) != ~0ull)
      [[unlikely]]
    return otherwise(wave, instruction);
  u32* const dst = rows_of(wave, instruction.dst);
  const u32* const a = rows_of(wave, instruction.src[0]);
  const u32* const b = shape.sources > 1 ? rows_of(wave, instruction.src[1]) : a;
  const u32* const c = shape.third == accumulate ? dst
                       : shape.sources > 2       ? rows_of(wave, instruction.src[2])
                                                 : a;
  Context context{wave.mode, 0, 0};
  for (u32 at = 0; at < lanes; at += 16) {
    context.first_lane = at;
    if constexpr (shape.sources == 1)
      store(dst + at, Adapter::run(context, load(a + at)));
    else if constexpr (shape.sources == 2)
      store(dst + at, Adapter::run(context, load(a + at), load(b + at)));
    else
      store(dst + at, Adapter::run(context, load(a + at), load(b + at), load(c + at)));
  }
}
template <class Adapter, Handler otherwise, Shape shape>
void inlined_compare(Wave& wave, const Instruction& instruction) {
  if ((wave.mode & (shape.mode_mask | mode::gpr_idx_en)) != shape.mode_keep) [[unlikely]]
    return otherwise(wave, instruction);
  const u32* const a = rows_of(wave, instruction.src[0]);
  const u32* const b = rows_of(wave, instruction.src[1]);
  const Context context{wave.mode, 0, 0};
  u64 mask = 0;
  for (u32 at = 0; at < lanes; at += 16)
    mask |= u64{mask_bits(Adapter::run(context, load(a + at), load(b + at)))} << at;
  write_mask(wave, instruction.dst, mask & exec_of(wave));
}

// Builders.

template <Kernel keep, Kernel flush, Shape shape>
Entry entry_of() {
  Entry e;
  e.kernel = keep;
  e.flush = flush;
  e.mode_mask = shape.mode_mask;
  e.mode_keep = shape.mode_keep;
  if constexpr (shape.results == 0) e.result = Result::mask;
  e.direct = &direct<keep, flush, shape>;
  return e;
}

template <int sources, Heat heat = cold, class Fn>
Entry integer(Fn) {
  constexpr Shape shape{.sources = sources};
  Entry e = entry_of<&kernel32<Integer<Fn>, sources>, nullptr, shape>();
  if constexpr (heat == hot)
    e.inlined = &inlined<Integer<Fn>, &direct<&kernel32<Integer<Fn>, sources>, nullptr, shape>, shape>;
  return e;
}
/// With the form that clamp selects.
template <int sources, Heat heat = cold, class Fn, class Saturating>
Entry integer(Fn fn, Saturating) {
  Entry e = integer<sources, heat>(fn);
  e.clamped = &kernel32<Integer<Saturating>, sources>;
  return e;
}
/// For entries that differ from what their builder compiled into the direct handler.
inline Entry indirect(Entry e) {
  e.direct = e.inlined = nullptr;
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
  Entry e = entry_of<&kernel32<Half<Fn>, sources>, nullptr, Shape{.sources = sources}>();
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
template <int sources, Heat heat = cold, Accumulate third = separate, class Fn>
Entry float32(Fn) {
  constexpr Kernel keep = &kernel32<Float32<Fn, false>, sources>,
                   flush = &kernel32<Float32<Fn, true>, sources>;
  constexpr Shape shape{
      .sources = sources, .third = third, .mode_mask = round32 | denorm32, .mode_keep = denorm32};
  Entry e = entry_of<keep, flush, shape>();
  e.result = Result::f32;
  e.rounds = e.flushes = true;
  if constexpr (heat == hot) e.inlined = &inlined<Float32<Fn, false>, &direct<keep, flush, shape>, shape>;
  return e;
}
/// An f32 operation that is exact, but sees flushed sources: min, max.
template <int sources, Heat heat = cold, class Fn>
Entry exact32(Fn) {
  constexpr Kernel keep = &kernel32<FromFloat32<Fn, false>, sources>,
                   flush = &kernel32<FromFloat32<Fn, true>, sources>;
  constexpr Shape shape{.sources = sources, .mode_mask = denorm32, .mode_keep = denorm32};
  Entry e = entry_of<keep, flush, shape>();
  e.result = Result::f32;
  e.flushes = true;
  if constexpr (heat == hot) e.inlined = &inlined<FromFloat32<Fn, false>, &direct<keep, flush, shape>, shape>;
  return e;
}
/// As exact32, with the NaN rule of arithmetic: trunc and its like.
template <int sources, class Fn>
Entry rounded_to_integer32(Fn) {
  Entry e = entry_of<&kernel32<Float32<Fn, false>, sources>, &kernel32<Float32<Fn, true>, sources>,
                     Shape{.sources = sources, .mode_mask = denorm32, .mode_keep = denorm32}>();
  e.result = Result::f32;
  e.flushes = true;
  return e;
}
/// f32 to bits, denormals being zero for it anyway.
template <int sources, class Fn>
Entry from_float32(Fn) {
  return entry_of<&kernel32<FromFloat32<Fn, false>, sources>, nullptr, Shape{.sources = sources}>();
}
template <int sources, Accumulate third = separate, class Fn>
Entry float64(Fn) {
  Entry e = entry_of<&kernel64<Float64<Fn>, sources, 7>, nullptr,
                     Shape{.sources = sources,
                           .wide = 7,
                           .results = 2,
                           .third = third,
                           .mode_mask = round64 | denorm64,
                           .mode_keep = denorm64}>();
  e.result = Result::f64;
  e.rounds = e.flushes = true;
  return e;
}
template <int sources, unsigned wide, class Fn>
Entry integer64(Fn) {
  return entry_of<&kernel64<Integer64<Fn>, sources, wide>, nullptr,
                  Shape{.sources = sources, .wide = wide, .results = 2}>();
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
