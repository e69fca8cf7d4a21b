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

/// Runs `body`, a function object whose call operator is always_inline, compiled for the instruction set
/// `simd`: its loops are vectorised for that.
///
///   run_for(widest_simd(), [&]() [[gnu::always_inline]] { for (...) out[i] = f(in[i]); });
///
/// The bits of elementwise loops cannot differ: IEEE operations, contraction off. Sums would have to fix
/// their order. By value: what `body` captured can then not alias what it writes.
#if defined(__x86_64__)
template <class Body>
[[gnu::target("avx2")]] void run_for_avx2(const Body body) {
  body();
}
template <class Body>
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl")]] void run_for_avx512(const Body body) {
  body();
}
#endif
template <class Body>
void run_for(Simd simd, const Body body) {
#if defined(__x86_64__)
  if (simd == Simd::avx512) return run_for_avx512(body);
  if (simd == Simd::avx2) return run_for_avx2(body);
#endif
  body();
}

}  // namespace attest::reference
