// SPDX-License-Identifier: MIT
//
// An assertion that holds lets the kernel go on; one that does not stops it, and the program learns of it.
#undef NDEBUG
#include <cassert>

#include "check.h"

__global__ void require(int largest) {
  assert(static_cast<int>(threadIdx.x) <= largest);
}

int main() {
  require<<<1, 4>>>(3);
  HIP_CHECK(hipDeviceSynchronize());
  require<<<1, 4>>>(2);
  EXPECT(hipDeviceSynchronize() == hipErrorLaunchFailure);
  (void)hipGetLastError();
  require<<<1, 4>>>(3);
  HIP_CHECK(hipDeviceSynchronize());
  std::puts("PASSED");
}
