// SPDX-License-Identifier: MIT
//
// What a CDNA3 matrix core computes, one element of D at a time, slowly and obviously. The fast paths are
// judged by it.
//
// A matrix core is not a chain of fused multiply-adds. For f16, bf16, xf32, fp8 and bf8 it takes a step of
// several k at once, aligns their products to the largest exponent among them, cuts what falls below, adds,
// and joins the accumulator under rules of its own. Two kernels that differ only in the order of k can differ
// in the last bits, and a sum whose terms cancel can lose everything. AMD does not publish the rule. It was
// recovered by probing hardware:
//
//   P. Xie, S. Xu, Y. Wang, F. Yang, M. Yang, "Bit-Accurate Modeling of GPU Matrix Multiply-Accumulate Units:
//   Demystifying Numerical Discrepancy and Accuracy", arXiv:2511.10909; https://github.com/microsoft/MMA-Sim
//
// One step, with products p_k = a_k * b_k. The exponent of a product is e(a_k) + e(b_k), where e() of a
// subnormal is the format's smallest exponent: the significand product, in [1, 4) for normal numbers, is
// never renormalised.
//
//   1. E is the largest product exponent; products that are zero have none. Every product is truncated
//      (toward zero) to a multiple of 2^(E-24), then all are added exactly.
//      fp8 and bf8 do this twice, for even and for odd k; both sums are then floored (toward minus infinity)
//      to 2^(E-24) of the larger E and added.
//   2. G = max(E, e(c)). The accumulator c is floored to a multiple of 2^(G-24); in fp8 and bf8 it counts as
//      zero when e(c) < G-25. The sum is floored to a multiple of 2^(G-32).
//   3. S = sum + c, floored to a multiple of 2^(e(S)-31), then rounded once to f32, nearest even.
//
// The result is the c of the next step; k ascends. Steps hold 8 k for f16 and bf16 (4 where the instruction
// has only 4), 4 for xf32, 16 for fp8 and bf8. The floors make results asymmetric: a negative tail below the
// grid moves the result by a whole unit, so D(-A, B, -C) is not -D(A, B, C).
//
// MMA-Sim changed this rule while it was being recovered. SumRule::aligned is the form of the paper's
// Algorithm 10: in step 2 the sum is floored to 2^(G-31), step 3 has no floor, and a zero product has
// exponent -126. On ordinary data the two agree; test inputs aimed at the grid tell them apart.
//
// f32 and f64 are plain: one fused multiply-add per k, ascending. i8 wraps in 32 bits.
//
// Choices where nothing is published, all of them visible only in NaN bits, signs of zero or sparse forms:
//   - a NaN operand, infinity times zero, or infinities of both signs give the quiet NaN 0x7fc00000;
//   - f16, bf16 and xf32 products of magnitude 2^128 or more are infinite before the sum (published); a NaN
//     of xf32 stays a NaN even if truncation to 10 mantissa bits would leave it none;
//   - a sum of zero is +0, also when c is -0;
//   - v_smfmac multiplies what is stored: a step holds as many stored elements as a dense step does, and even
//     and odd (fp8, bf8) count stored elements;
//   - MMA-Sim's fp8 code drops an infinite or NaN c when E > 24, as an accident of how it reads exponents;
//   not here.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace attest::device::sim::matrix {

enum class SumRule : std::uint8_t {
  renormalised,  ///< MMA-Sim's current code: the rule above
  aligned,       ///< the paper's Algorithm 10
};
inline constexpr SumRule default_sum_rule = SumRule::renormalised;
/// By those names; nullopt for any other.
std::optional<SumRule> sum_rule_named(std::string_view name);

/// Element types of A and B. fp8 is E4M3 and bf8 is E5M2, both FNUZ: bias 8 and 16, no infinities, no -0, NaN
/// is 0x80.
enum class Element : std::uint8_t { f64, f32, xf32, f16, bf16, fp8, bf8, i8 };

constexpr int bits_of(Element element) {
  switch (element) {
    case Element::f64:
      return 64;
    case Element::f32:
    case Element::xf32:
      return 32;
    case Element::f16:
    case Element::bf16:
      return 16;
    case Element::fp8:
    case Element::bf8:
    case Element::i8:
      return 8;
  }
  return 0;
}

/// k per step, see above. Instructions with fewer k take a single short step.
constexpr int step_length(Element element) {
  switch (element) {
    case Element::f64:
    case Element::f32:
    case Element::i8:
      return 1;
    case Element::xf32:
      return 4;
    case Element::f16:
    case Element::bf16:
      return 8;
    case Element::fp8:
    case Element::bf8:
      return 16;
  }
  return 1;
}

/// D = C + sum over k of A_k B_k for the f32-accumulating types except f32 itself. a and b: [k] raw elements
/// in the low bits. c and the result: f32 bits. A and B have the same Element unless they are fp8 and bf8.
std::uint32_t dot_accumulate(SumRule rule, Element a_type, Element b_type, const std::uint32_t* a,
                             const std::uint32_t* b, int k, std::uint32_t c);

/// The f32 chain. a, b, c are f32 bits; flushing of subnormal inputs (MODE.denorm) is the caller's, see
/// flush_subnormal().
std::uint32_t fma_chain(const std::uint32_t* a, const std::uint32_t* b, int k, std::uint32_t c);

/// The f64 chain, on f64 bits.
std::uint64_t fma_chain(const std::uint64_t* a, const std::uint64_t* b, int k, std::uint64_t c);

/// The i8 chain; a and b hold signed bytes in the low bits.
std::uint32_t integer_chain(const std::uint32_t* a, const std::uint32_t* b, int k, std::uint32_t c);

/// An f32 subnormal becomes a zero of its sign.
constexpr std::uint32_t flush_subnormal(std::uint32_t bits) {
  return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits;
}

}  // namespace attest::device::sim::matrix
