// SPDX-License-Identifier: MIT
//
// The rule of model.h at speed, for inputs whose exponents are not too far apart. Included by kernel sources
// only (see kernels.h).
//
// The obvious fast way, a chain of fused multiply-adds, gives other bits. What makes the real rule cheap:
//
//   Products. a * b is exact in f32. Adding (24 - E) << 23 to its bits, as an integer, multiplies it by
//   2^(24-E); the conversion to int32 that rounds toward zero is then exactly the truncation of the rule, and
//   int32 sums of 8 terms below 2^26 are exact. Four operations per product: multiply, add, convert, add. A
//   zero product becomes a number below one, which converts to 0.
//
//   E. Exponents of two k share a 32-bit lane as int16 (of four k, as bytes, in fp8 and bf8, where the bytes
//   of even k are the even group): half or a quarter of an operation per product for the sum and as much for
//   the maximum. The int16 is the exponent times 128, so that in the upper half of the lane it is already an
//   f32 exponent field, E << 23. Zero elements have the smallest int16 (byte), and saturating adds keep them
//   below all others.
//
//   Joining the accumulator: kernel_plain.h says what U and T are. h = U - E; the bits of the sum that T
//   loses are L = sum << (32 - h), with the convention of the vector shifts that a count of 32 or more leaves
//   nothing. The conversion of T to f32 is the only rounding.
//
// Rows are done in three passes, exponents, products, joins: one row's chain of dependent operations is long,
// and a processor looks only so far ahead.
//
// What must hold, checked for a whole instruction before it starts, so that no f32 overflows and only results
// that the rule calls zero vanish: no NaN or infinity; the largest possible product exponent Emax at most
// 120, the smallest Emin at least -75, Emax - Emin at most 100; every c zero or with an exponent from P - 101
// to 123. If Emax exceeds 24 the shift 24 - E would be negative, and a zero product would borrow from the
// sign: B is scaled by 2^-P, P = Emax - 24, and P is taken back at the end. A lane without products has no E;
// clamping at P - 102 keeps such an E below all c that pass, so that c goes through unchanged. Products of
// later steps meet a c made by an earlier one: either zero, the old c, or a multiple of 2^(Emin - 24) >=
// 2^-99. f16, fp8 and bf8 cannot violate the bounds on exponents and use a fixed P.
//
// What the checks refuse, in order (everything, under SumRule::aligned, goes to kernel_plain.h):
//   exponents far apart (bf16)  the panels hold significands, in [1, 2), instead of values, and every product
//                               is scaled by its own 2^(24-(E-e)); at E - e = 26 nothing is left. Seven
//                               operations instead of four.
//   c outside the bounds        joined with its significand, and scaled to the result in double (join_any).
//   NaN and infinities          the instruction runs without them; a second pass over ones, zeros, NaN and
//                               infinities says which results are NaN or infinite (around_specials).
//   products of 2^128 (bf16)    kernel_plain.h.
#pragma once

#include "device/simulator/matrix/kernel_plain.h"

namespace attest::device::sim::matrix {
namespace {

constexpr int exponent_floor = -102;

template <int M, int K, int Blocks, int PerWord>
struct NarrowPanel {
  alignas(64) float value[Blocks][K][M];
  alignas(64) std::int32_t exponents[Blocks][K / PerWord][M];
};

/// Over the elements of A or of B; exponents times 128. A panel of zeros has max < min.
struct Window {
  int max, min;
};

/// x * 2^-e(x) for finite x with a mantissa of 23 bits or less, where e of a subnormal or zero is -126.
template <class V>
inline typename V::I significand(typename V::I x) {
  const auto normal = V::or_(V::and_(x, V::set1(static_cast<int>(0x807fffffu))), V::set1(0x3f800000));
  const auto tiny = V::greater(V::set1(0x00800000), V::and_(x, V::set1(0x7f800000)));
  const auto one = V::or_(V::and_(x, V::set1(static_cast<int>(0x80000000u))), V::set1(0x3f800000));
  return V::as_int(V::subtract(V::as_float(normal), V::as_float(V::and_(one, tiny))));
}

/// Values, or significands: subnormals below one, zeros zero.
template <class V, bool significands, int M, int K, int Blocks>
inline Window unpack_bf16(const std::uint32_t* source, NarrowPanel<M, K, Blocks, 2>& panel) {
  using I = typename V::I;
  const I lowest = V::set1(static_cast<int>(0x80008000u)), highest = V::set1(0x7fff7fff);
  I max = lowest, min = highest;
  for_each_run<M, K, Blocks, 2>([&](int at, int block, int k) {
    for (int i = 0; i < M; i += V::width) {
      const I x = V::load(source + at + i);
      const I biased = V::max16(V::and_(x, V::set1(0x7f807f80)), V::set1(0x00800080));
      const I exponent = V::sub16(biased, V::set1(0x3f803f80));
      const I magnitude = V::and_(x, V::set1(0x7fff7fff));
      const I marked = V::where_zero16(magnitude, lowest, exponent);
      max = V::max16(max, marked);
      min = V::min16(min, V::where_zero16(magnitude, highest, exponent));
      I low = V::template sll<16>(x), high = V::and_(x, V::set1(static_cast<int>(0xffff0000u)));
      if constexpr (significands) low = significand<V>(low), high = significand<V>(high);
      V::store(&panel.value[block][k][i], low);
      V::store(&panel.value[block][k + 1][i], high);
      V::store(&panel.exponents[block][k / 2][i], marked);
    }
  });
  return {V::reduce_max16(max) >> 7, V::reduce_min16(min) >> 7};
}

/// The f32 of a smaller float whose magnitude, sign removed, lies in f32's fields, scaled by 2^-prescale. A
/// product with a power of two would do it too, but subnormal operands are slow on many machines.
template <class V, int bias>
inline typename V::I widen(typename V::I magnitude, typename V::I sign, int prescale) {
  const int rebias = 127 - bias - prescale;
  const auto subnormal = V::greater(V::set1(0x00800000), magnitude);
  const auto moved = V::add(V::add(magnitude, V::set1(rebias << 23)), V::and_(subnormal, V::set1(1 << 23)));
  const auto leading_one = V::and_(subnormal, V::set1((rebias + 1) << 23));
  return V::or_(V::as_int(V::subtract(V::as_float(moved), V::as_float(leading_one))), sign);
}

/// false if there is a NaN or an infinity. B is scaled by 2^-prescale.
template <class V, int M, int K, int Blocks>
inline bool unpack_f16(const std::uint32_t* source, int prescale, NarrowPanel<M, K, Blocks, 2>& panel) {
  using I = typename V::I;
  const I bias = V::set1((15 + prescale) * 0x00800080);
  const I lowest = V::set1(static_cast<int>(0x80008000u));
  I max = V::set1(0);
  for_each_run<M, K, Blocks, 2>([&](int at, int block, int k) {
    for (int i = 0; i < M; i += V::width) {
      const I x = V::load(source + at + i);
      const I magnitude = V::and_(x, V::set1(0x7fff7fff));
      max = V::max16(max, magnitude);
      const I biased = V::max16(V::template srl<3>(V::and_(x, V::set1(0x7c007c00))), V::set1(0x00800080));
      V::store(&panel.exponents[block][k / 2][i], V::where_zero16(magnitude, lowest, V::sub16(biased, bias)));
      const I sign = V::set1(static_cast<int>(0x80000000u)), bits = V::set1(0x7fff << 13);
      V::store(&panel.value[block][k][i], widen<V, 15>(V::and_(V::template sll<13>(x), bits),
                                                       V::and_(V::template sll<16>(x), sign), prescale));
      V::store(&panel.value[block][k + 1][i],
               widen<V, 15>(V::and_(V::template srl<3>(x), bits), V::and_(x, sign), prescale));
    }
  });
  return V::reduce_max16(max) < 0x7c00;
}

/// What decides how fp8 and bf8 go: a NaN, and the largest exponent field.
struct Census {
  bool nan;
  int largest_field;
};

template <class V, Element type>
inline Census census_8bit(const std::uint32_t* source, int count) {
  using I = typename V::I;
  I nan = V::set1(0), largest = V::set1(0);
  for (int at = 0; at < count; at += V::width) {
    const I x = V::load(source + at);
    nan = V::or_(nan, V::equal8(x, V::set1(static_cast<int>(0x80808080u))));
    largest = V::max_u8(largest, V::and_(x, V::set1(0x7f7f7f7f)));
  }
  return {V::any(nan), V::reduce_max_u8(largest) >> (type == Element::fp8 ? 3 : 2)};
}

/// Exponents of four k; B's less prescale.
template <class V, Element type>
inline typename V::I exponents_8bit(typename V::I x, int prescale) {
  using I = typename V::I;
  constexpr int mantissa_bits = type == Element::fp8 ? 3 : 2, bias = type == Element::fp8 ? 8 : 16;
  const I field =
      V::and_(V::template srl<mantissa_bits>(x), V::set1(type == Element::fp8 ? 0x0f0f0f0f : 0x1f1f1f1f));
  const I exponent = V::sub8(V::max_u8(field, V::set1(0x01010101)), V::set1((bias + prescale) * 0x01010101));
  return V::where_zero8(x, V::set1(static_cast<int>(0x80808080u)), exponent);
}

/// No NaN. B is scaled by 2^-prescale.
template <class V, Element type, int M, int K, int Blocks>
inline void unpack_8bit(const std::uint32_t* source, int prescale, NarrowPanel<M, K, Blocks, 4>& panel) {
  using I = typename V::I;
  constexpr int up = type == Element::fp8 ? 20 : 21, bias = type == Element::fp8 ? 8 : 16;
  const I bits = V::set1(0x7f << up), sign = V::set1(static_cast<int>(0x80000000u));
  for_each_run<M, K, Blocks, 4>([&](int at, int block, int k) {
    for (int i = 0; i < M; i += V::width) {
      const I x = V::load(source + at + i);
      V::store(&panel.exponents[block][k / 4][i], exponents_8bit<V, type>(x, prescale));
      const auto put = [&](int e, I magnitude, I high) {
        V::store(&panel.value[block][k + e][i],
                 widen<V, bias>(V::and_(magnitude, bits), V::and_(high, sign), prescale));
      };
      put(0, V::template sll<up>(x), V::template sll<24>(x));
      put(1, V::template sll<up - 8>(x), V::template sll<16>(x));
      put(2, V::template sll<up - 16>(x), V::template sll<8>(x));
      put(3, V::template srl<24 - up>(x), x);
    }
  });
}

/// Whether every c is zero or has an exponent in [low, high].
template <class V>
inline bool accumulators_within(const std::uint32_t* c, int count, int low, int high) {
  using I = typename V::I;
  I least = V::set1(-1), most = V::set1(0);
  for (int at = 0; at < count; at += V::width) {
    const I magnitude = V::and_(V::load(c + at), V::set1(0x7fffffff));
    most = V::max_u(most, magnitude);
    least = V::min_u(least, V::sub(magnitude, V::set1(1)));  // zero wraps to the largest
  }
  const I outside = V::or_(V::greater(V::set1(((low + 127) << 23) - 1), V::and_(least, V::set1(0x7fffffff))),
                           V::greater(most, V::set1(((high + 128) << 23) - 1)));
  return !V::any(outside);
}

/// Joins c, see above. sum is in units of 2^(E-24), e is E << 23 after prescaling.
template <class V, bool drop_far_c>
inline typename V::I join(typename V::I sum, typename V::I e, typename V::I c_bits, int prescale) {
  using I = typename V::I;
  const I c_field = V::and_(c_bits, V::set1(0x7f800000));
  const I u = V::max(e, V::sub(c_field, V::set1((127 + 5 + prescale) << 23)));
  const I h = V::template srl<23>(V::sub(u, e));
  I c = V::as_int(V::mul(V::as_float(c_bits), V::as_float(V::sub(V::set1((127 + 24 - prescale) << 23), u))));
  if constexpr (drop_far_c)
    c = V::and_(c, V::greater(c_field, V::add(e, V::set1(((127 - 25 + prescale) << 23) - 1))));
  I t = V::add(V::srav(sum, h), V::floor_to_int(V::as_float(c)));
  const I lost = V::sllv(sum, V::sub(V::set1(32), h));
  const I kept = V::srlv(lost, V::dropped_bits(t));
  t = V::or_(t, V::min_u(kept, V::one()));
  return V::as_int(V::mul(V::from_int(t), V::as_float(V::add(u, V::set1((127 - 24 + prescale) << 23)))));
}

template <class V>
inline typename V::I no_product() {
  return V::set1(-230 * (1 << 23));
}

/// As join, for every finite c and every e; no prescaling.
template <class V, bool drop_far_c>
inline typename V::I join_wide(typename V::I sum, typename V::I e, typename V::I c_bits) {
  using I = typename V::I;
  const I field = V::and_(c_bits, V::set1(0x7f800000));
  const I c_exponent = V::sub(V::max(field, V::set1(1 << 23)), V::set1(127 << 23));
  const I u = V::max(e, V::sub(c_exponent, V::set1(5 << 23)));
  const I h = V::template srl<23>(V::sub(u, e));
  const I down = V::min(V::sub(u, c_exponent), V::set1(60 << 23));  // so far below, only the sign is left
  I c = V::as_int(V::mul(V::as_float(significand<V>(c_bits)), V::as_float(V::sub(V::set1(151 << 23), down))));
  if constexpr (drop_far_c) c = V::and_(c, V::greater(c_exponent, V::sub(e, V::set1((25 << 23) + 1))));
  I t = V::add(V::srav(sum, h), V::floor_to_int(V::as_float(c)));
  const I lost = V::sllv(sum, V::sub(V::set1(32), h));
  const I subnormal = V::greater(V::set1(-130 * (1 << 23)), u);
  const I kept = V::srlv(lost, V::max(V::dropped_bits(t), V::and_(subnormal, V::set1(30))));
  t = V::or_(t, V::min_u(kept, V::one()));
  // A step may have made an infinity of finite numbers; it stays.
  const I infinite = V::greater(field, V::set1(0x7f7fffff));
  return V::where(infinite, c_bits, V::scale_to_float(t, V::template sra<23>(u)));
}

/// As join, for every finite c.
template <class V, bool drop_far_c>
inline typename V::I join_any(typename V::I sum, typename V::I e, typename V::I c_bits, int prescale) {
  // Back to exponents before prescaling, and lanes without products below everything.
  e = V::add(e, V::set1(prescale << 23));
  e = V::where(V::greater(V::set1((exponent_floor + prescale) * (1 << 23) + 1), e), no_product<V>(), e);
  return join_wide<V, drop_far_c>(sum, e, c_bits);
}

template <class V>
inline typename V::I product(typename V::F a, typename V::F b, typename V::I shift) {
  return V::truncate_to_int(V::as_float(V::add(V::as_int(V::mul(a, b)), shift)));
}

/// f16 and bf16: all steps of one instruction.
template <class V, bool any_c, int L, int M, int K, int Blocks>
[[gnu::noinline]] void multiply_pairs(const NarrowPanel<M, K, Blocks, 2>& a,
                                      const NarrowPanel<M, K, Blocks, 2>& b, int prescale,
                                      const std::uint32_t* c, std::uint32_t* d) {
  using I = typename V::I;
  using F = typename V::F;
  const I clamp = V::set1(exponent_floor * (1 << 23)), top = V::set1(24 << 23),
          upper = V::set1(static_cast<int>(0xffff0000u));
  for (int block = 0; block < Blocks; ++block)
    for (int s = 0; s < K; s += L)
      for (int j = 0; j < M; j += V::width) {
        F bk[L];
        I eb[L / 2];
        for (int k = 0; k < L; ++k) bk[k] = V::load_float(&b.value[block][s + k][j]);
        for (int k = 0; k < L / 2; ++k) eb[k] = V::load(&b.exponents[block][(s + k * 2) / 2][j]);
        const std::uint32_t* from = s == 0 ? c : d;
        alignas(64) std::int32_t largest[M][V::width], sums[M][V::width];
        for (int i = 0; i < M; ++i) {
          I e = V::add16(eb[0], V::set1(a.exponents[block][s / 2][i]));
          for (int k = 1; k < L / 2; ++k)
            e = V::max16(e, V::add16(eb[k], V::set1(a.exponents[block][s / 2 + k][i])));
          V::store(largest[i], V::max(V::and_(V::max16(e, V::template sll<16>(e)), upper), clamp));
        }
        for (int i = 0; i < M; ++i) {
          const I shift = V::sub(top, V::load(largest[i]));
          I even = product<V>(V::set1_float(a.value[block][s][i]), bk[0], shift);
          I odd = product<V>(V::set1_float(a.value[block][s + 1][i]), bk[1], shift);
          for (int k = 2; k < L; k += 2) {
            even = V::add(even, product<V>(V::set1_float(a.value[block][s + k][i]), bk[k], shift));
            odd = V::add(odd, product<V>(V::set1_float(a.value[block][s + k + 1][i]), bk[k + 1], shift));
          }
          V::store(sums[i], V::add(even, odd));
        }
        for (int i = 0; i < M; ++i) {
          const int at = row_offset<M>(block, i) + j;
          const I sum = V::load(sums[i]), e = V::load(largest[i]), c_bits = V::load(from + at);
          if constexpr (any_c)
            V::store(d + at, join_any<V, false>(sum, e, c_bits, prescale));
          else
            V::store(d + at, join<V, false>(sum, e, c_bits, prescale));
        }
      }
}

/// bf16 with exponents far apart: the panels hold significands.
template <class V, int L, int M, int K, int Blocks>
[[gnu::noinline]] void multiply_wide(const NarrowPanel<M, K, Blocks, 2>& a,
                                     const NarrowPanel<M, K, Blocks, 2>& b, const std::uint32_t* c,
                                     std::uint32_t* d) {
  using I = typename V::I;
  using F = typename V::F;
  // Upper halves of f32: 2^24 before its product's distance is taken off, and 2^-2, where nothing is left.
  const I near = V::set1((127 + 24) * 0x00800080), far = V::set1((127 - 2) * 0x00800080);
  const I upper = V::set1(static_cast<int>(0xffff0000u));
  for (int block = 0; block < Blocks; ++block)
    for (int s = 0; s < K; s += L)
      for (int j = 0; j < M; j += V::width) {
        const std::uint32_t* from = s == 0 ? c : d;
        alignas(64) std::int32_t largest[M][V::width], sums[M][V::width];
        for (int i = 0; i < M; ++i) {
          I e = V::set1(static_cast<int>(0x80008000u));
          for (int k = 0; k < L / 2; ++k)
            e = V::max16(e, V::add16(V::load(&b.exponents[block][s / 2 + k][j]),
                                     V::set1(a.exponents[block][s / 2 + k][i])));
          const I high = V::and_(V::max16(e, V::template sll<16>(e)), upper);
          V::store(largest[i], V::or_(high, V::template srl<16>(high)));
        }
        for (int i = 0; i < M; ++i) {
          const I e = V::load(largest[i]);
          I sum = V::set1(0);
          for (int k = 0; k < L; k += 2) {
            const I pair = V::add16(V::load(&b.exponents[block][(s + k) / 2][j]),
                                    V::set1(a.exponents[block][(s + k) / 2][i]));
            const I scale = V::max16(V::add16(V::subtract_saturated16(pair, e), near), far);
            const F even =
                V::mul(V::set1_float(a.value[block][s + k][i]), V::load_float(&b.value[block][s + k][j]));
            const F odd = V::mul(V::set1_float(a.value[block][s + k + 1][i]),
                                 V::load_float(&b.value[block][s + k + 1][j]));
            sum = V::add(sum, V::truncate_to_int(V::mul(even, V::as_float(V::template sll<16>(scale)))));
            sum = V::add(sum, V::truncate_to_int(V::mul(odd, V::as_float(V::and_(scale, upper)))));
          }
          V::store(sums[i], sum);
        }
        for (int i = 0; i < M; ++i) {
          const int at = row_offset<M>(block, i) + j;
          const I e = V::and_(V::load(largest[i]), upper);
          V::store(d + at, join_wide<V, false>(V::load(sums[i]), e, V::load(from + at)));
        }
      }
}

/// fp8 and bf8: steps of sixteen, in two groups.
template <class V, bool any_c, int M, int K, int Blocks>
[[gnu::noinline]] void multiply_groups(const NarrowPanel<M, K, Blocks, 4>& a,
                                       const NarrowPanel<M, K, Blocks, 4>& b, int prescale,
                                       const std::uint32_t* c, std::uint32_t* d) {
  using I = typename V::I;
  using F = typename V::F;
  constexpr int L = 16;
  const I clamp = V::set1(exponent_floor * (1 << 23)), top = V::set1(24 << 23),
          upper = V::set1(static_cast<int>(0xff000000u));
  for (int block = 0; block < Blocks; ++block)
    for (int s = 0; s < K; s += L)
      for (int j = 0; j < M; j += V::width) {
        F bk[L];
        I eb[L / 4];
        for (int k = 0; k < L; ++k) bk[k] = V::load_float(&b.value[block][s + k][j]);
        for (int k = 0; k < L / 4; ++k) eb[k] = V::load(&b.exponents[block][s / 4 + k][j]);
        const std::uint32_t* from = s == 0 ? c : d;
        alignas(64) std::int32_t largest_even[M][V::width], largest_odd[M][V::width], sums[M][V::width];
        for (int i = 0; i < M; ++i) {
          I e = V::add8(eb[0], V::set1(a.exponents[block][s / 4][i]));
          for (int k = 1; k < L / 4; ++k)
            e = V::max8(e, V::add8(eb[k], V::set1(a.exponents[block][s / 4 + k][i])));
          e = V::max8(e, V::template srl<16>(e));
          V::store(largest_even[i], V::max(V::template sra<1>(V::template sll<24>(e)), clamp));
          V::store(largest_odd[i], V::max(V::template sra<1>(V::and_(V::template sll<16>(e), upper)), clamp));
        }
        for (int i = 0; i < M; ++i) {
          const I e_even = V::load(largest_even[i]), e_odd = V::load(largest_odd[i]);
          const I shift_even = V::sub(top, e_even), shift_odd = V::sub(top, e_odd);
          I even = product<V>(V::set1_float(a.value[block][s][i]), bk[0], shift_even);
          I odd = product<V>(V::set1_float(a.value[block][s + 1][i]), bk[1], shift_odd);
          for (int k = 2; k < L; k += 2) {
            even = V::add(even, product<V>(V::set1_float(a.value[block][s + k][i]), bk[k], shift_even));
            odd = V::add(odd, product<V>(V::set1_float(a.value[block][s + k + 1][i]), bk[k + 1], shift_odd));
          }
          const I larger = V::max(e_even, e_odd);
          V::store(largest_even[i], larger);
          V::store(sums[i], V::add(V::srav(even, V::template srl<23>(V::sub(larger, e_even))),
                                   V::srav(odd, V::template srl<23>(V::sub(larger, e_odd)))));
        }
        for (int i = 0; i < M; ++i) {
          const int at = row_offset<M>(block, i) + j;
          const I sum = V::load(sums[i]), e = V::load(largest_even[i]), c_bits = V::load(from + at);
          if constexpr (any_c)
            V::store(d + at, join_any<V, true>(sum, e, c_bits, prescale));
          else
            V::store(d + at, join<V, true>(sum, e, c_bits, prescale));
        }
      }
}

/// fp8 as integers in units of 2^-10, sixteen bits each: k and k + 2, k + 1 and k + 3 share a lane.
template <int M, int K>
struct IntegerPanel {
  alignas(64) std::int32_t pairs[K / 2][M];
  alignas(64) std::int32_t exponents[K / 4][M];
};
constexpr int fp8_product_unit = -20;

template <class V, int M, int K>
inline void unpack_integers(const std::uint32_t* source, IntegerPanel<M, K>& panel) {
  using I = typename V::I;
  const auto decode = [](I x) {  // bits 0..7 of 16-bit lanes
    const I field = V::and_(V::template srl<3>(x), V::set1(0x000f000f));
    const I normal = V::where_zero16(field, V::set1(0), V::set1(0x00080008));
    const I significand = V::or_(V::and_(x, V::set1(0x00070007)), normal);
    const I shift = V::sub16(V::max16(field, V::set1(0x00010001)), V::set1(0x00010001));
    const I negative = V::negative16(V::template sll<8>(x));
    return V::sub16(V::xor_(V::sllv16(significand, shift), negative), negative);
  };
  for_each_run<M, K, 1, 4>([&](int at, int, int k) {
    for (int i = 0; i < M; i += V::width) {
      const I x = V::load(source + at + i);
      V::store(&panel.exponents[k / 4][i], exponents_8bit<V, Element::fp8>(x, 0));
      V::store(&panel.pairs[k / 2][i], decode(V::and_(x, V::set1(0x00ff00ff))));
      V::store(&panel.pairs[k / 2 + 1][i], decode(V::and_(V::template srl<8>(x), V::set1(0x00ff00ff))));
    }
  });
}

/// fp8 so small that nothing is truncated: no product has bits below 2^-20, and E - 24 <= -20. Then groups do
/// not matter and integer dot products are exact: each product is below 4 * 2^4, in units below 2^26.
template <class V, bool any_c, int M, int K>
[[gnu::noinline]] void multiply_exactly(const IntegerPanel<M, K>& a, const IntegerPanel<M, K>& b,
                                        const std::uint32_t* c, std::uint32_t* d) {
  using I = typename V::I;
  constexpr int L = 16;
  const I clamp = V::set1(exponent_floor * (1 << 23));
  for (int s = 0; s < K; s += L)
    for (int j = 0; j < M; j += V::width) {
      const std::uint32_t* from = s == 0 ? c : d;
      alignas(64) std::int32_t largest[M][V::width], sums[M][V::width];
      for (int i = 0; i < M; ++i) {
        I e = V::add8(V::load(&b.exponents[s / 4][j]), V::set1(a.exponents[s / 4][i]));
        for (int k = 1; k < L / 4; ++k)
          e = V::max8(e, V::add8(V::load(&b.exponents[s / 4 + k][j]), V::set1(a.exponents[s / 4 + k][i])));
        e = V::max8(e, V::template srl<16>(e));
        e = V::max8(e, V::template srl<8>(e));
        V::store(largest[i], V::max(V::template sra<1>(V::template sll<24>(e)), clamp));
      }
      for (int i = 0; i < M; ++i) {
        I even = V::set1(0), odd = V::set1(0);
        for (int k = 0; k < L / 2; k += 2) {
          even = V::dot16(even, V::load(&b.pairs[s / 2 + k][j]), V::set1(a.pairs[s / 2 + k][i]));
          odd = V::dot16(odd, V::load(&b.pairs[s / 2 + k + 1][j]), V::set1(a.pairs[s / 2 + k + 1][i]));
        }
        const I shift =
            V::template sra<23>(V::sub(V::set1((fp8_product_unit + 24) * (1 << 23)), V::load(largest[i])));
        V::store(sums[i], V::sllv(V::add(even, odd), shift));
      }
      for (int i = 0; i < M; ++i) {
        const int at = row_offset<M>(0, i) + j;
        const I sum = V::load(sums[i]), e = V::load(largest[i]), c_bits = V::load(from + at);
        if constexpr (any_c)
          V::store(d + at, join_any<V, true>(sum, e, c_bits, 0));
        else
          V::store(d + at, join<V, true>(sum, e, c_bits, 0));
      }
    }
}

template <class V, int M, int K, int Blocks>
inline void scale_down(NarrowPanel<M, K, Blocks, 2>& panel, int prescale) {
  const auto scale = V::as_float(V::set1((127 - prescale) << 23));
  const auto lower = V::set1(prescale * 0x00800080);
  float* values = &panel.value[0][0][0];
  for (int i = 0; i < Blocks * K * M; i += V::width)
    V::store(values + i, V::as_int(V::mul(V::load_float(values + i), scale)));
  std::int32_t* exponents = &panel.exponents[0][0][0];
  for (int i = 0; i < Blocks * K / 2 * M; i += V::width)
    V::store(exponents + i, V::subtract_saturated16(V::load(exponents + i), lower));
}

template <class V>
inline bool finite_accumulators(const std::uint32_t* c, int count) {
  typename V::I most = V::set1(0);
  for (int at = 0; at < count; at += V::width)
    most = V::max_u(most, V::and_(V::load(c + at), V::set1(0x7fffffff)));
  return !V::any(V::greater(most, V::set1(0x7f7fffff)));
}

enum class Refused { no, special, too_large };

/// Executes the instruction, or says why not and leaves D untouched.
template <class V, Element type_a, Element type_b, int M, int K, int Blocks>
[[gnu::noinline]] Refused narrow(const Operands& o) {
  constexpr int step = step_length(type_a) < K ? step_length(type_a) : K, count = M * M * Blocks;
  if constexpr (type_a == Element::bf16) {
    NarrowPanel<M, K, Blocks, 2> a, b;
    const Window wa = unpack_bf16<V, false>(o.a, a), wb = unpack_bf16<V, false>(o.b, b);
    const int max = wa.max + wb.max, min = wa.min + wb.min;
    const int prescale = max > 24 ? max - 24 : 0;
    if (wa.max > 127 || wb.max > 127) return Refused::special;
    if (max <= 120 && min >= -75 && max - min <= 100 && wb.min - prescale >= -126 &&
        accumulators_within<V>(o.c, count, prescale - 101, 123)) {
      if (prescale > 0) scale_down<V>(b, prescale);
      multiply_pairs<V, false, step>(a, b, prescale, o.c, o.d);
      return Refused::no;
    }
    if (max > 126) return Refused::too_large;
    if (!finite_accumulators<V>(o.c, count)) return Refused::special;
    unpack_bf16<V, true>(o.a, a);
    unpack_bf16<V, true>(o.b, b);
    multiply_wide<V, step>(a, b, o.c, o.d);
  } else if constexpr (type_a == Element::f16) {
    constexpr int prescale = 6;
    NarrowPanel<M, K, Blocks, 2> a, b;
    if (!unpack_f16<V>(o.a, 0, a) || !unpack_f16<V>(o.b, prescale, b)) return Refused::special;
    if (accumulators_within<V>(o.c, count, prescale - 101, 123)) {
      multiply_pairs<V, false, step>(a, b, prescale, o.c, o.d);
      return Refused::no;
    }
    if (!finite_accumulators<V>(o.c, count)) return Refused::special;
    multiply_pairs<V, true, step>(a, b, prescale, o.c, o.d);
  } else {
    constexpr int prescale = 8, words = K * M * Blocks * 8 / 32;
    const Census in_a = census_8bit<V, type_a>(o.a, words), in_b = census_8bit<V, type_b>(o.b, words);
    if (in_a.nan || in_b.nan) return Refused::special;
    if constexpr (V::has_dot16 && type_a == Element::fp8 && type_b == Element::fp8) {
      // 2^12 in units of 2^-10 fits sixteen bits; the fields' biases are 8.
      if (in_a.largest_field <= 12 && in_b.largest_field <= 12 &&
          in_a.largest_field + in_b.largest_field - 16 <= fp8_product_unit + 24) {
        const bool ordinary = accumulators_within<V>(o.c, count, -101, 123);
        if (!ordinary && !finite_accumulators<V>(o.c, count)) return Refused::special;
        IntegerPanel<M, K> a, b;
        unpack_integers<V>(o.a, a);
        unpack_integers<V>(o.b, b);
        ordinary ? multiply_exactly<V, false>(a, b, o.c, o.d) : multiply_exactly<V, true>(a, b, o.c, o.d);
        return Refused::no;
      }
    }
    const bool ordinary = accumulators_within<V>(o.c, count, prescale - 101, 123);
    if (!ordinary && !finite_accumulators<V>(o.c, count)) return Refused::special;
    NarrowPanel<M, K, Blocks, 4> a, b;
    unpack_8bit<V, type_a>(o.a, 0, a);
    unpack_8bit<V, type_b>(o.b, prescale, b);
    ordinary ? multiply_groups<V, false>(a, b, prescale, o.c, o.d)
             : multiply_groups<V, true>(a, b, prescale, o.c, o.d);
  }
  return Refused::no;
}

/// An element's class as a number: its sign if it is finite, 0, or the infinity or NaN itself. Special
/// elements leave a zero.
template <Element type>
inline float class_of(std::uint32_t raw, std::uint32_t* cleaned) {
  constexpr int bits = bits_of(type);
  constexpr std::uint32_t magnitude_mask = (1u << (bits - 1)) - 1;
  constexpr std::uint32_t infinity = type == Element::bf16 ? 0x7f80u : type == Element::f16 ? 0x7c00u : ~0u;
  const std::uint32_t magnitude = raw & magnitude_mask;
  const bool special = is_8bit(type) ? raw == 0x80u : magnitude >= infinity;
  *cleaned = special ? 0 : raw;
  const std::uint32_t sign = raw >> (bits - 1) << 31;
  if (special) return bits_to_float(magnitude == infinity ? 0x7f800000u | sign : 0x7fc00000u);
  return magnitude == 0 ? 0.0f : bits_to_float(0x3f800000u | sign);
}

template <Element type, int M, int K, int Blocks>
inline void classify(const std::uint32_t* source, std::uint32_t* cleaned, float (*classes)[K][M]) {
  constexpr int bits = bits_of(type), per_word = 32 / bits;
  for_each_run<M, K, Blocks, per_word>([&](int at, int block, int k) {
    for (int i = 0; i < M; ++i) {
      std::uint32_t word = 0;
      for (int e = 0; e < per_word; ++e) {
        std::uint32_t clean = 0;
        classes[block][k + e][i] = class_of<type>(source[at + i] >> (bits * e) & ((1u << bits) - 1), &clean);
        word |= clean << (bits * e);
      }
      cleaned[at + i] = word;
    }
  });
}

/// Runs `finite` on the instruction without its NaN and infinities, then puts in the results that they make.
/// Where a result is infinite for another reason as well, the order of steps counts and kernel_plain.h
/// decides.
template <Element type_a, Element type_b, int M, int K, int Blocks, class Finite>
void around_specials(const Operands& o, Finite finite) {
  constexpr int registers_a = per_lane<M, K, Blocks> * bits_of(type_a) / 32, count = M * M * Blocks;
  std::uint32_t a[registers_a * 64], b[registers_a * 64], c[count], clean_a[registers_a * 64],
      clean_b[registers_a * 64], clean_c[count];
  __builtin_memcpy(a, o.a, sizeof a);
  __builtin_memcpy(b, o.b, sizeof b);
  __builtin_memcpy(c, o.c, sizeof c);
  alignas(64) float class_a[Blocks][K][M], class_b[Blocks][K][M];
  classify<type_a, M, K, Blocks>(a, clean_a, class_a);
  classify<type_b, M, K, Blocks>(b, clean_b, class_b);
  for (int at = 0; at < count; ++at) clean_c[at] = (c[at] & 0x7f800000u) == 0x7f800000u ? 0 : c[at];
  finite(Operands{clean_a, clean_b, clean_c, o.d, o.rule, o.flush});
  bool both = false;
  for (int block = 0; block < Blocks; ++block)
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < M; j += columns) {
        const int at = row_offset<M>(block, i) + j;
        float sum[columns];
        for (int l = 0; l < columns; ++l)
          sum[l] = (c[at + l] & 0x7f800000u) == 0x7f800000u ? bits_to_float(c[at + l]) : 0.0f;
        for (int k = 0; k < K; ++k)
          for (int l = 0; l < columns; ++l) sum[l] += class_a[block][k][i] * class_b[block][k][j + l];
        for (int l = 0; l < columns; ++l) {
          const bool special = !(__builtin_fabsf(sum[l]) < __builtin_inff());
          both |= special && (o.d[at + l] & 0x7f800000u) == 0x7f800000u;
          const std::uint32_t bits = sum[l] == sum[l] ? float_to_bits(sum[l]) : 0x7fc00000u;
          o.d[at + l] = special ? bits : o.d[at + l];
        }
      }
  if (both) plain_kernel<type_a, type_b, M, K, Blocks>({a, b, c, o.d, o.rule, o.flush});
}

template <class V, Element type_a, Element type_b, int M, int K, int Blocks>
void narrow_kernel(const Operands& o) {
  constexpr Kernel plain = plain_kernel<type_a, type_b, M, K, Blocks>;
  if (o.rule != SumRule::renormalised) return plain(o);
  switch (narrow<V, type_a, type_b, M, K, Blocks>(o)) {
    case Refused::no:
      return;
    case Refused::too_large:
      return plain(o);
    case Refused::special:
      break;
  }
  around_specials<type_a, type_b, M, K, Blocks>(o, [](const Operands& finite) {
    if (narrow<V, type_a, type_b, M, K, Blocks>(finite) != Refused::no) plain(finite);
  });
}

}  // namespace
}  // namespace attest::device::sim::matrix
