// SPDX-License-Identifier: MIT
//
// Memory that host and kernels share: managed allocations, a managed variable, pinned and registered memory.
#include <vector>

#include "check.h"

__managed__ int calls = 40;

__global__ void add_one(int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) ++values[i];
  if (i == 0) ++calls;
}

int main() {
  constexpr int count = 1000;
  int* managed = nullptr;
  HIP_CHECK(hipMallocManaged(&managed, count * sizeof(int)));
  for (int i = 0; i < count; ++i) managed[i] = i;
  add_one<<<4, 256>>>(managed, count);
  HIP_CHECK(hipDeviceSynchronize());
  for (int i = 0; i < count; ++i) EXPECT(managed[i] == i + 1);
  EXPECT(calls == 41);
  hipPointerAttribute_t attributes;
  HIP_CHECK(hipPointerGetAttributes(&attributes, managed + 5));
  EXPECT(attributes.isManaged == 1);

  int* pinned = nullptr;
  HIP_CHECK(hipHostMalloc(&pinned, count * sizeof(int)));
  HIP_CHECK(hipMemcpy(pinned, managed, count * sizeof(int), hipMemcpyDeviceToHost));
  add_one<<<4, 256>>>(pinned, count);
  HIP_CHECK(hipDeviceSynchronize());
  EXPECT(pinned[count - 1] == count + 1);

  std::vector<int> mine(count, 7);
  void* on_device = nullptr;
  HIP_CHECK(hipHostRegister(mine.data(), count * sizeof(int), hipHostRegisterDefault));
  HIP_CHECK(hipHostGetDevicePointer(&on_device, mine.data(), 0));
  add_one<<<4, 256>>>(static_cast<int*>(on_device), count);
  HIP_CHECK(hipDeviceSynchronize());
  EXPECT(mine[0] == 8 && mine[count - 1] == 8);
  HIP_CHECK(hipHostUnregister(mine.data()));
  HIP_CHECK(hipHostFree(pinned));
  HIP_CHECK(hipFree(managed));
  EXPECT(calls == 43);
  std::puts("PASSED");
}
