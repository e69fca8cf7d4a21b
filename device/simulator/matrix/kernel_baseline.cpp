// SPDX-License-Identifier: MIT
#include "device/simulator/matrix/kernel_list.h"

namespace attest::device::sim::matrix {
namespace {

struct Plain {
  template <Element a, Element b, int M, int K, int Blocks>
  static Kernel kernel() {
    return plain_kernel<a, b, M, K, Blocks>;
  }
};

}  // namespace

Kernel baseline_kernel(const KernelShape& shape) {
  return find_kernel<Plain, false>(shape);
}

}  // namespace attest::device::sim::matrix
