// SPDX-License-Identifier: MIT
//
// Which vector instructions the hot loops use on this machine.
//
// attest is built for any x86-64, whose baseline has two doubles to a vector; the reference would spend its
// life at a quarter of the machine. So each hot loop is compiled three times in one translation unit, and
// this picks. It must be invisible in the results: see the essays in matrix_product.h and exponential.h.
#pragma once

#include <vector>

namespace attest::reference {

enum class Simd { sse2, avx2, avx512 };

/// The widest this machine can run.
Simd widest_simd();

/// Everything this machine can run, narrowest first; for tests that compare them.
std::vector<Simd> supported_simd();

}  // namespace attest::reference
