// SPDX-License-Identifier: MIT
//
// What goes wrong must come back as HIP's own error codes, and the program goes on.
#include "check.h"

__global__ void write(int* at, int value) {
  at[threadIdx.x] = value;
}

int main() {
  int count = 0;
  HIP_CHECK(hipGetDeviceCount(&count));
  EXPECT(count > 0);
  EXPECT(hipSetDevice(count) == hipErrorInvalidDevice);
  EXPECT(hipGetLastError() == hipErrorInvalidDevice);
  EXPECT(hipGetLastError() == hipSuccess);

  void* pointer = nullptr;
  EXPECT(hipMalloc(&pointer, std::size_t{1} << 45) == hipErrorOutOfMemory);
  EXPECT(hipMemcpy(nullptr, &count, 4, hipMemcpyHostToDevice) == hipErrorInvalidValue);
  EXPECT(hipFree(&count) == hipErrorInvalidValue);
  (void)hipGetLastError();

  int* values = nullptr;
  HIP_CHECK(hipMalloc(&values, 64 * sizeof(int)));
  write<<<1, 2048>>>(values, 1);
  EXPECT(hipGetLastError() == hipErrorInvalidConfiguration);
  write<<<1, 64, 1 << 20>>>(values, 1);
  EXPECT(hipGetLastError() != hipSuccess);

  // Past the end: the launch fails, and the next one works.
  write<<<1, 65>>>(values, 1);
  EXPECT(hipDeviceSynchronize() == hipErrorLaunchFailure);
  (void)hipGetLastError();
  write<<<1, 64>>>(values, 7);
  HIP_CHECK(hipDeviceSynchronize());
  int last = 0;
  HIP_CHECK(hipMemcpy(&last, values + 63, sizeof last, hipMemcpyDeviceToHost));
  EXPECT(last == 7);
  EXPECT(hipMemcpy(&last, values + 64, sizeof last, hipMemcpyDeviceToHost) != hipSuccess);

  hipGraph_t graph = nullptr;
  EXPECT(hipGraphCreate(&graph, 0) == hipErrorNotSupported);
  HIP_CHECK(hipFree(values));
  std::puts("PASSED");
}
