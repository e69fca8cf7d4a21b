// SPDX-License-Identifier: MIT
//
// C = A B on the matrix unit: a wave per 16 x 16 tile of C, v_mfma_f32_16x16x16_f16.
#include <vector>

#include "check.h"

typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef float float4_t __attribute__((ext_vector_type(4)));

__global__ void gemm(const _Float16* a, const _Float16* b, float* c, int n, int k) {
  const int lane = threadIdx.x, row = blockIdx.y * 16, column = blockIdx.x * 16;
  float4_t sum = {0, 0, 0, 0};
  for (int first = 0; first < k; first += 16) {
    half4 as, bs;
    for (int i = 0; i < 4; ++i) {
      as[i] = a[(row + lane % 16) * k + first + lane / 16 * 4 + i];
      bs[i] = b[(first + lane / 16 * 4 + i) * n + column + lane % 16];
    }
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(as, bs, sum, 0, 0, 0);
  }
  for (int i = 0; i < 4; ++i) c[(row + lane / 16 * 4 + i) * n + column + lane % 16] = sum[i];
}

int main() {
  constexpr int m = 64, n = 48, k = 80;
  std::vector<_Float16> a(m * k), b(k * n);
  std::vector<float> c(m * n);
  Numbers numbers;
  for (_Float16& x : a) x = static_cast<_Float16>(static_cast<int>(numbers.next() % 9) - 4);
  for (_Float16& x : b) x = static_cast<_Float16>(static_cast<int>(numbers.next() % 9) - 4);
  _Float16 *da = nullptr, *db = nullptr;
  float* dc = nullptr;
  HIP_CHECK(hipMalloc(&da, a.size() * 2));
  HIP_CHECK(hipMalloc(&db, b.size() * 2));
  HIP_CHECK(hipMalloc(&dc, c.size() * 4));
  HIP_CHECK(hipMemcpy(da, a.data(), a.size() * 2, hipMemcpyHostToDevice));
  HIP_CHECK(hipMemcpy(db, b.data(), b.size() * 2, hipMemcpyHostToDevice));
  gemm<<<dim3(n / 16, m / 16), 64>>>(da, db, dc, n, k);
  HIP_CHECK(hipMemcpy(c.data(), dc, c.size() * 4, hipMemcpyDeviceToHost));
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float expected = 0;
      for (int l = 0; l < k; ++l)
        expected += static_cast<float>(a[i * k + l]) * static_cast<float>(b[l * n + j]);
      EXPECT(c[i * n + j] == expected);
    }
  HIP_CHECK(hipFree(da));
  HIP_CHECK(hipFree(db));
  HIP_CHECK(hipFree(dc));
  std::puts("PASSED");
}
