// SPDX-License-Identifier: MIT
//
// Streams in order, events between them, callbacks, plausible times.
#include <vector>

#include "check.h"

__global__ void scale(float* values, int count, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= factor;
}

int main() {
  constexpr int count = 4096, streams = 3;
  std::vector<float> values(count * streams, 1.0F);
  float* device = nullptr;
  HIP_CHECK(hipMalloc(&device, values.size() * sizeof(float)));
  hipStream_t stream[streams];
  hipEvent_t start, ready, stop;
  HIP_CHECK(hipEventCreate(&start));
  HIP_CHECK(hipEventCreateWithFlags(&ready, hipEventDisableTiming));
  HIP_CHECK(hipEventCreate(&stop));
  for (hipStream_t& s : stream) HIP_CHECK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
  HIP_CHECK(hipEventRecord(start, stream[0]));
  for (int s = 0; s < streams; ++s) {
    float* part = device + s * count;
    HIP_CHECK(hipMemcpyAsync(part, values.data() + s * count, count * sizeof(float), hipMemcpyHostToDevice,
                             stream[s]));
    scale<<<count / 256, 256, 0, stream[s]>>>(part, count, static_cast<float>(s + 2));
    scale<<<count / 256, 256, 0, stream[s]>>>(part, count, 0.5F);
    HIP_CHECK(hipMemcpyAsync(values.data() + s * count, part, count * sizeof(float), hipMemcpyDeviceToHost,
                             stream[s]));
  }
  HIP_CHECK(hipEventRecord(ready, stream[2]));
  HIP_CHECK(hipStreamWaitEvent(stream[0], ready, 0));
  static int called = 0;
  HIP_CHECK(hipStreamAddCallback(
      stream[0],
      [](hipStream_t, hipError_t status, void* data) { *static_cast<int*>(data) += status == hipSuccess; },
      &called, 0));
  HIP_CHECK(hipEventRecord(stop, stream[0]));
  HIP_CHECK(hipEventSynchronize(stop));
  for (const hipStream_t s : stream) HIP_CHECK(hipStreamSynchronize(s));
  EXPECT(hipStreamQuery(stream[1]) == hipSuccess);
  EXPECT(called == 1);
  for (int i = 0; i < count * streams; ++i) EXPECT(values[i] == static_cast<float>(i / count + 2) * 0.5F);
  float milliseconds = -1;
  HIP_CHECK(hipEventElapsedTime(&milliseconds, start, stop));
  EXPECT(milliseconds > 0 && milliseconds < 1000);
  EXPECT(hipEventElapsedTime(&milliseconds, start, ready) != hipSuccess);
  for (const hipStream_t s : stream) HIP_CHECK(hipStreamDestroy(s));
  HIP_CHECK(hipEventDestroy(start));
  HIP_CHECK(hipEventDestroy(ready));
  HIP_CHECK(hipEventDestroy(stop));
  HIP_CHECK(hipFree(device));
  std::puts("PASSED");
}
