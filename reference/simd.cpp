// SPDX-License-Identifier: MIT
#include "reference/simd.h"

namespace attest::reference {

Simd widest_simd() {
  static const Simd widest = [] {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
      return Simd::avx512;
    if (__builtin_cpu_supports("avx2")) return Simd::avx2;
#endif
    return Simd::sse2;
  }();
  return widest;
}

std::vector<Simd> supported_simd() {
  std::vector<Simd> all{Simd::sse2};
  if (widest_simd() >= Simd::avx2) all.push_back(Simd::avx2);
  if (widest_simd() >= Simd::avx512) all.push_back(Simd::avx512);
  return all;
}

}  // namespace attest::reference
