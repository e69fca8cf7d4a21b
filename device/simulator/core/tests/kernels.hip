// SPDX-License-Identifier: MIT
//
// Kernels as a compiler writes them, for code_object_test.cpp and hip_api's tests. Free-standing, so that
// neither headers nor device libraries are needed.
#define GLOBAL extern "C" __attribute__((global))

#define DEVICE static __attribute__((device))

DEVICE unsigned thread_id() {
  return __builtin_amdgcn_workitem_id_x();
}
DEVICE unsigned global_id() {
  return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + thread_id();
}

GLOBAL void saxpy(float a, const float* x, float* y, int n) {
  const int i = static_cast<int>(global_id());
  if (i < n) y[i] += a * x[i];
}

// Sum of a workgroup's 256 values through LDS.
GLOBAL void block_sum(const int* in, int* out) {
  static __attribute__((shared)) int partial[256];
  const unsigned t = thread_id();
  partial[t] = in[global_id()];
  for (unsigned half = 128; half > 0; half /= 2) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    if (t < half) partial[t] += partial[t + half];
  }
  if (t == 0) out[__builtin_amdgcn_workgroup_id_x()] = partial[0];
}

// Histogram of bytes with global atomics.
GLOBAL void histogram(const unsigned char* in, unsigned* bins, unsigned n) {
  const unsigned i = global_id();
  if (i < n) __hip_atomic_fetch_add(&bins[in[i]], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// An array in scratch, indexed at run time; 64-bit arithmetic; a division.
GLOBAL void reorder(const unsigned* order, unsigned long* out, unsigned n) {
  unsigned long values[16];
  const unsigned t = thread_id();
  for (unsigned k = 0; k < 16; ++k) values[order[k] % 16] = static_cast<unsigned long>(t) * 1000000007ul + k;
  unsigned long sum = 0;
  for (unsigned k = 0; k < n; ++k) sum = sum * 31 + values[k % 16] / (k + 3);
  out[t] = sum;
}

__attribute__((device)) int table[4] = {10, 20, 30, 40};
__attribute__((device)) int* table_pointer = table;

GLOBAL void through_pointer(int* out) {
  out[thread_id()] = table_pointer[thread_id() % 4];
}
