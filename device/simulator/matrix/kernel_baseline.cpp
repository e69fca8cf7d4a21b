// SPDX-License-Identifier: MIT
#include "device/simulator/matrix/kernel_list.h"

namespace attest::device::sim::matrix {
namespace {

template <SumRule rule>
struct Plain {
  template <Element a, Element b, int M, int K, int Blocks>
  static Kernel rule_kernel() {
    return plain_kernel<rule, a, b, M, K, Blocks>;
  }
};

}  // namespace

Kernel baseline_kernel(const KernelShape& shape, SumRule rule) {
  return rule == SumRule::aligned ? find_kernel<Plain<SumRule::aligned>, false>(shape)
                                  : find_kernel<Plain<SumRule::renormalised>, false>(shape);
}

}  // namespace attest::device::sim::matrix
