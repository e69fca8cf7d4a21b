// SPDX-License-Identifier: MIT
//
// printf in a kernel: numbers of every kind, strings, divergent lanes. The test compares what comes out.
#include "check.h"

__global__ void say(int value) {
  const char* empty = "";
  const unsigned block = blockIdx.x, thread = threadIdx.x;
  printf("block %u thread %u of %d%%\n", block, thread, value);
  if (thread % 2 == 1)
    printf("odd %5.2f|%-6s|%c|%#llx|%*d|%s|\n", thread + 0.125, "name", 'x', 0x123456789abcULL, 4, -7, empty);
}

int main() {
  say<<<1, 3>>>(100);
  HIP_CHECK(hipDeviceSynchronize());
  std::puts("PASSED");
}
