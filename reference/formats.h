// SPDX-License-Identifier: MIT
//
// Number formats: what the bits in a tensor mean.
//
//   double x = decode(Format::fp8_e4m3fnuz, 0x79);                        // exact, all formats
//   std::uint32_t b = encode(Format::bf16, 0.1, Overflow::to_special);    // round to nearest, ties to even
//
// Decoding is exact: every value of every format here is a double. Encoding rounds once, from the double, to
// nearest with ties to even; `Overflow` says what becomes of a value that rounds past the largest finite one.
// Decide overflow after rounding (fp8_e4m3fnuz: 247.9 is 240, 248 overflows), as hardware does.
//
//   format         bias  max      min normal  min subnormal  NaN              inf         -0
//   fp8_e4m3fn        7  448      2^-6        2^-9           0x7f, 0xff       none        yes
//   fp8_e4m3fnuz      8  240      2^-7        2^-10          0x80             none        none
//   fp8_e5m2         15  57344    2^-14       2^-16          0x7d-7f,fd-ff    0x7c,0xfc   yes
//   fp8_e5m2fnuz     16  57344    2^-15       2^-17          0x80             none        none
//   e8m0            127  2^127    2^-127      -              0xff             none        no sign
//
// Sources: OCP 8-bit Floating Point Specification 1.0; OCP Microscaling Formats 1.0 (e8m0); for FNUZ, Noune
// et al. 2022 (arXiv:2206.02915) and the CDNA3 ISA guide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace attest::reference {

enum class Format : std::uint8_t {
  bf16,
  f16,
  f32,
  fp8_e4m3fn,
  fp8_e4m3fnuz,
  fp8_e5m2,
  fp8_e5m2fnuz,
  e8m0,
};

/// What a value becomes that rounds past the largest finite one.
enum class Overflow : std::uint8_t {
  saturate,  ///< the largest finite value with its sign; an infinite input too (the fp8 cache writers' rule)
  to_special,  ///< infinity where the format has it, else NaN (IEEE; v_cvt_pk_fp8_f32 with FP16_OVFL = 0)
};

/// Bytes one element takes in memory: 1, 2 or 4.
int bytes_per_element(Format format);

/// "bf16", "fp8_e4m3fnuz", ...: the name used in case files.
const char* name(Format format);

/// The largest finite value.
double max_finite(Format format);

/// The value of the low `8 * bytes_per_element` bits of `bits`. NaN and infinities decode to themselves.
double decode(Format format, std::uint32_t bits);

/// The same for a whole range of packed little-endian elements; what to use on tensors.
/// Throws std::invalid_argument unless `bytes` has exactly values.size() * bytes_per_element(format) bytes.
void decode(Format format, std::span<const std::byte> bytes, std::span<double> values);

/// `value` rounded to nearest even. NaN stays NaN. Where the format has no -0 (FNUZ), -0 and negative values
/// that round to zero become +0. e8m0 has neither sign nor zero: zero and negative values become NaN,
/// positive values below 2^-127 become 2^-127, and the tie 1.5 * 2^e goes to the even code.
std::uint32_t encode(Format format, double value, Overflow overflow);

}  // namespace attest::reference
