// SPDX-License-Identifier: MIT
//
// v_cmp_* and v_cmpx_*. The sixteen floating-point predicates are the subsets of {less, equal, greater,
// unordered}.
#include "device/simulator/exec/vector_half.h"

namespace attest::device::sim::ATTEST_SIMD_NAMESPACE {
namespace {

enum Predicate : unsigned { is_less = 1, is_equal = 2, is_greater = 4, is_unordered = 8 };

template <unsigned predicate, class V>
ATTEST_INLINE auto holds(const V& a, const V& b) {
  using Mask = decltype(a < b);
  // Each form is one comparison and perhaps a negation.
  if constexpr (predicate == 0)
    return Mask{};
  else if constexpr (predicate == 1)
    return a < b;
  else if constexpr (predicate == 2)
    return a == b;
  else if constexpr (predicate == 3)
    return a <= b;
  else if constexpr (predicate == 4)
    return a > b;
  else if constexpr (predicate == 5)
    return (a < b) | (a > b);
  else if constexpr (predicate == 6)
    return a >= b;
  else if constexpr (predicate == 7)
    return (a == a) & (b == b);
  else
    return ~holds<15 - predicate>(a, b);
}

/// Integers are never unordered: f lt eq le gt ne ge t are the subsets of the first three.
template <unsigned predicate, class V>
ATTEST_INLINE auto holds_integer(const V& a, const V& b) {
  using Mask = decltype(a < b);
  if constexpr (predicate == 5)
    return a != b;
  else if constexpr (predicate == 7)
    return ~Mask{};
  else
    return holds<predicate>(a, b);
}

template <unsigned p>
struct CompareU32 {
  I operator()(U a, U b) const { return holds_integer<p>(a, b); }
};
template <unsigned p>
struct CompareI32 {
  I operator()(U a, U b) const { return holds_integer<p>(i(a), i(b)); }
};
template <unsigned p>
struct CompareU16 {
  I operator()(U a, U b) const { return holds_integer<p>(a << 16, b << 16); }
};
template <unsigned p>
struct CompareI16 {
  I operator()(U a, U b) const { return holds_integer<p>(i(a << 16), i(b << 16)); }
};
template <unsigned p>
struct CompareU64 {
  J operator()(L a, L b) const { return holds_integer<p>(a, b); }
};
template <unsigned p>
struct CompareI64 {
  J operator()(L a, L b) const { return holds_integer<p>(j(a), j(b)); }
};
template <unsigned p>
struct CompareF32 {
  I operator()(F a, F b) const { return holds<p>(a, b); }
};
template <unsigned p>
struct CompareF16 {
  I operator()(U a, U b) const { return holds<p>(half_to_float(a & 0xffffu), half_to_float(b & 0xffffu)); }
};
template <unsigned p>
struct CompareF64 {
  J operator()(L a, L b) const { return J(holds<p>(d(a), d(b))); }
};

// Bits of the class mask: 0 signalling NaN, 1 quiet NaN, 2 -inf, 3 -normal, 4 -denormal, 5 -0, 6 +0, 7
// +denormal, 8 +normal, 9 +inf.
ATTEST_INLINE I class_of(const I& nan, const I& quiet, const I& infinite, const I& normal, const I& nonzero,
                         const I& negative, const U& wanted) {
  const U positive =
      select(infinite, splat(9), select(normal, splat(8), select(nonzero, splat(7), splat(6))));
  U k = select(negative, 11u - positive, positive);
  k = select(nan, select(quiet, splat(1), splat(0)), k);
  return ((wanted >> k) & 1u) != 0;
}
struct ClassF32 {
  I operator()(U a, U b) const {
    const U magnitude = a & 0x7fffffffu;
    return class_of(magnitude > 0x7f800000u, (a & 0x00400000u) != 0, magnitude == 0x7f800000u,
                    magnitude >= 0x00800000u, magnitude != 0, i(a) < 0, b);
  }
};
struct ClassF16 {
  I operator()(U a, U b) const {
    const U magnitude = a & 0x7fffu;
    return class_of(magnitude > 0x7c00u, (a & 0x0200u) != 0, magnitude == 0x7c00u, magnitude >= 0x0400u,
                    magnitude != 0, (a & 0x8000u) != 0, b);
  }
};
void class_f64(Rows& rows) {
  u64 mask = 0;
  for (u32 at = 0; at < lanes; at += 16) {
    const U low = load(rows.at(0, at)), high = load(rows.at(0, at) + lanes);
    // Squeeze: high word with a sticky bit for the low one has the same class.
    const U sticky = high | (u(low != 0) & 1u), magnitude = sticky & 0x7fffffffu;
    const I r = class_of(magnitude > 0x7ff00000u, (high & 0x00080000u) != 0, magnitude == 0x7ff00000u,
                         magnitude >= 0x00100000u, magnitude != 0, i(high) < 0, load(rows.at(1, at)));
    mask |= u64{mask_bits(r)} << at;
  }
  rows.mask_out = mask;
}

// op-code names of the integer and floating predicates, in the order of their bits
// clang-format off: it never comes to rest on these lists
#define ATTEST_INTEGER_PREDICATES(X, type)                                 \
  X(f, type, 0) X(lt, type, 1) X(eq, type, 2) X(le, type, 3) X(gt, type, 4) \
  X(ne, type, 5) X(ge, type, 6) X(t, type, 7)
#define ATTEST_FLOAT_PREDICATES(X, type)                                        \
  X(f, type, 0) X(lt, type, 1) X(eq, type, 2) X(le, type, 3) X(gt, type, 4)      \
  X(lg, type, 5) X(ge, type, 6) X(o, type, 7) X(u, type, 8) X(nge, type, 9)      \
  X(nlg, type, 10) X(ngt, type, 11) X(nle, type, 12) X(neq, type, 13)            \
  X(nlt, type, 14) X(tru, type, 15)
// clang-format on

template <class Fn>
Entry integer_compare() {
  constexpr Shape shape{.sources = 2, .results = 0};
  Entry e = entry_of<&compare32<Integer<Fn>>, nullptr, shape>();
  e.inlined = &inlined_compare<Integer<Fn>, &direct<&compare32<Integer<Fn>>, nullptr, shape>, shape>;
  return e;
}
template <class Fn>
Entry half_compare() {
  return entry_of<&compare32<Integer<Fn>>, nullptr, Shape{.sources = 2, .results = 0}>();
}
template <class Fn>
Entry float_compare() {
  constexpr Kernel keep = &compare32<FromFloat32<Fn, false>>, flush = &compare32<FromFloat32<Fn, true>>;
  constexpr Shape shape{.sources = 2, .results = 0, .mode_mask = denorm32, .mode_keep = denorm32};
  Entry e = entry_of<keep, flush, shape>();
  e.flushes = true;
  e.inlined = &inlined_compare<FromFloat32<Fn, false>, &direct<keep, flush, shape>, shape>;
  return e;
}
template <class Fn>
Entry flushing_half_compare() {
  Entry e = entry_of<&compare32<Integer<Fn>>, nullptr,
                     Shape{.sources = 2, .results = 0, .mode_mask = denorm64, .mode_keep = denorm64}>();
  e.flushes = true;
  return e;
}
template <class Fn, u32 mode_bits>
Entry wide_compare() {
  Entry e =
      entry_of<&compare64<Fn, 3>, nullptr,
               Shape{
                   .sources = 2, .wide = 3, .results = 0, .mode_mask = mode_bits, .mode_keep = mode_bits}>();
  e.flushes = mode_bits != 0;
  return e;
}
/// v_cmpx also writes EXEC, which only the general and the plain path know.
Entry slow(Entry e) {
  e.direct = e.inlined = nullptr;
  return e;
}

}  // namespace

void register_compare(Table& table) {
#define ATTEST_COMPARE(name, type, make)   \
  table[Op::v_cmp_##name##_##type] = make; \
  table[Op::v_cmpx_##name##_##type] = slow(table[Op::v_cmp_##name##_##type]);
#define ATTEST_ROW(name, type, p) ATTEST_COMPARE(name, type, integer_compare<CompareU32<p>>())
  ATTEST_INTEGER_PREDICATES(ATTEST_ROW, u32)
#undef ATTEST_ROW
#define ATTEST_ROW(name, type, p) ATTEST_COMPARE(name, type, integer_compare<CompareI32<p>>())
  ATTEST_INTEGER_PREDICATES(ATTEST_ROW, i32)
#undef ATTEST_ROW
#define ATTEST_ROW(name, type, p) ATTEST_COMPARE(name, type, half_compare<CompareU16<p>>())
  ATTEST_INTEGER_PREDICATES(ATTEST_ROW, u16)
#undef ATTEST_ROW
#define ATTEST_ROW(name, type, p) ATTEST_COMPARE(name, type, half_compare<CompareI16<p>>())
  ATTEST_INTEGER_PREDICATES(ATTEST_ROW, i16)
#undef ATTEST_ROW
#define ATTEST_ROW(name, type, p) ATTEST_COMPARE(name, type, (wide_compare<CompareU64<p>, 0>()))
  ATTEST_INTEGER_PREDICATES(ATTEST_ROW, u64)
#undef ATTEST_ROW
#define ATTEST_ROW(name, type, p) ATTEST_COMPARE(name, type, (wide_compare<CompareI64<p>, 0>()))
  ATTEST_INTEGER_PREDICATES(ATTEST_ROW, i64)
#undef ATTEST_ROW
#define ATTEST_ROW(name, type, p) ATTEST_COMPARE(name, type, float_compare<CompareF32<p>>())
  ATTEST_FLOAT_PREDICATES(ATTEST_ROW, f32)
#undef ATTEST_ROW
#define ATTEST_ROW(name, type, p) ATTEST_COMPARE(name, type, flushing_half_compare<CompareF16<p>>())
  ATTEST_FLOAT_PREDICATES(ATTEST_ROW, f16)
#undef ATTEST_ROW
#define ATTEST_ROW(name, type, p) ATTEST_COMPARE(name, type, (wide_compare<CompareF64<p>, denorm64>()))
  ATTEST_FLOAT_PREDICATES(ATTEST_ROW, f64)
#undef ATTEST_ROW
  ATTEST_COMPARE(class, f32, half_compare<ClassF32>())
  ATTEST_COMPARE(class, f16, half_compare<ClassF16>())
  table[Op::v_cmp_class_f64] = entry_of<&class_f64, nullptr, Shape{.sources = 2, .wide = 1, .results = 0}>();
  table[Op::v_cmpx_class_f64] = slow(table[Op::v_cmp_class_f64]);
#undef ATTEST_COMPARE
}

}  // namespace attest::device::sim::ATTEST_SIMD_NAMESPACE
