// SPDX-License-Identifier: MIT
//
// Compiled with -march=native, with Eigen under another name: otherwise the linker could merge its inline
// functions with those of the baseline Eigen in the rest of the program, which disagree on alignment.
#define Eigen EigenNative
#include "reference/native_gemm.h"

#include <Eigen/Core>
#include <ctime>

namespace attest::reference {

double measure_native_gemm_gflops(int n) {
  using Dense = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic>;
  static thread_local Dense a, b, c;
  if (a.rows() != n) {
    a.setConstant(n, n, 1.0 / 3);
    b.setConstant(n, n, 1.0 / 7);
    c.setZero(n, n);
  }
  const std::clock_t start = std::clock();
  c.noalias() += a * b;
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return 2.0 * n * n * n / seconds * 1e-9;
}

}  // namespace attest::reference
