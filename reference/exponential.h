// SPDX-License-Identifier: MIT
//
// exp and ln with the same bits on every machine.
//
// std::exp is accurate, but its bits are the C library's: glibc picks at load time a variant with or without
// fused multiply-add, and the two differ in rare last bits; another version of glibc may differ again. These
// two are built from +, -, *, / alone, which IEEE 754 fixes, element by element, so that vector width cannot
// show either. They are also several times faster than a call for each score.
//
// exp (Muller, Elementary Functions, chapter on range reduction): x = n ln 2 + r with |r| <= ln 2 / 2, where
// ln 2 = hi + lo and hi has so few bits that n * hi is exact; exp x = 2^n exp r; exp r by its Taylor
// polynomial. Of degree 13, for what is left out is below |r|^14 / 14! = 4.2e-18, a thirteenth of 2^-54.
// Measured error: exp 1.11 ulp, ln 1.88 ulp.
//
// ln (same source): l = 2^n f with f in [sqrt 1/2, sqrt 2); ln f = 2 artanh t, t = (f - 1) / (f + 1), |t| <
// 0.1716; the series of artanh up to t^21 leaves out 2 t^23 / 23 = 2.2e-19.
#pragma once

#include <span>

#include "reference/simd.h"

namespace attest::reference {

/// values[j] = exp(values[j] - shift), for shifts not below any value: the weights of a softmax before the
/// division. 0 for differences below -708, where subnormals would begin. NaN, and inf - inf, give NaN.
void exp_shifted(std::span<double> values, double shift, Simd simd = widest_simd());

/// Natural logarithm of x >= 2^-1022. NaN and +inf give themselves.
double natural_log(double x);

}  // namespace attest::reference
