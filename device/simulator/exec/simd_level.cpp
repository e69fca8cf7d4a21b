// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <string_view>

#include "device/simulator/exec/handlers.h"

namespace attest::device::sim {

SimdLevel host_simd_level() {
  // Everything any part of the simulator is compiled with at that level, the matrix unit included.
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni") &&
                      __builtin_cpu_supports("avx512vbmi");
  SimdLevel level = avx512 ? SimdLevel::avx512 : avx2 ? SimdLevel::avx2 : SimdLevel::baseline;
  if (const char* wish = std::getenv("ATTEST_SIMD")) {
    const std::string_view name = wish;
    if (name == "baseline") level = SimdLevel::baseline;
    if (name == "avx2" && level == SimdLevel::avx512) level = SimdLevel::avx2;
  }
  return level;
}

}  // namespace attest::device::sim
