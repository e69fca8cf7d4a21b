// SPDX-License-Identifier: MIT
//
// The yardstick of the benchmarks: what one core of this machine does in an fp64 matrix product when it may
// use all it has.
#pragma once

namespace attest::reference {

/// GFLOP/s, by CPU time, of one n * n * n product of Eigen, compiled for this machine.
double measure_native_gemm_gflops(int n);

}  // namespace attest::reference
