// SPDX-License-Identifier: MIT
//
// Faults that a compiler lets through, planted in HIP, and the same kernels mended: NAME_bad and NAME_good
// for detect_test.cpp. Free-standing, as core/tests/kernels.hip. Arguments: out, in.
#define GLOBAL extern "C" __attribute__((global))
#define DEVICE static __attribute__((device))

DEVICE unsigned thread_id() {
  return __builtin_amdgcn_workitem_id_x();
}
DEVICE unsigned block_id() {
  return __builtin_amdgcn_workgroup_id_x();
}
DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

#define PAIR(name)                                             \
  GLOBAL void name##_bad(unsigned* out, const unsigned* in) {  \
    name<true>(out, in);                                       \
  }                                                            \
  GLOBAL void name##_good(unsigned* out, const unsigned* in) { \
    name<false>(out, in);                                      \
  }

// The tree reduction whose author believes that the last steps, "inside a wave", need no barrier, and begins
// one step early: with 64 lanes half = 64 still crosses waves.
template <bool fault>
DEVICE void hip_reduce(unsigned* out, const unsigned* in) {
  static __attribute__((shared)) unsigned partial[256];
  const unsigned t = thread_id();
  partial[t] = in[t];
  barrier();
  for (unsigned half = 128; half > 0; half /= 2) {
    if (t < half) partial[t] += partial[t + half];
    if (!fault || half > 128) barrier();
  }
  if (t == 0) out[0] = partial[0];
}
PAIR(hip_reduce)

// Double buffering that forgot the second buffer.
template <bool fault>
DEVICE void hip_buffers(unsigned* out, const unsigned* in) {
  static __attribute__((shared)) unsigned tile[2][256];
  const unsigned t = thread_id();
  unsigned sum = 0;
  for (unsigned step = 0; step < 4; ++step) {
    unsigned* buffer = tile[fault ? 0 : step % 2];
    buffer[t] = in[step * 256 + t];
    barrier();
    sum += buffer[255 - t];
  }
  out[t] = sum;
}
PAIR(hip_buffers)

// Rows of 96 to blocks of 128 threads, 32 too many.
template <bool fault>
DEVICE void hip_rows(unsigned* out, const unsigned* in) {
  const unsigned t = thread_id(), row = 96;
  if (fault || t < row) out[block_id() * row + t] = in[t] + block_id();
}
PAIR(hip_rows)

// Each block adds up its neighbour's part, which that block may not have written yet.
template <bool fault>
DEVICE void hip_neighbour(unsigned* out, const unsigned* in) {
  const unsigned t = thread_id(), mine = block_id() * 64, other = (block_id() ^ 1) * 64;
  out[mine + t] = in[t];
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  out[256 + mine + t] = out[(fault ? other : mine) + t];
}
PAIR(hip_neighbour)

// Waves that go round a loop with a barrier a different number of times.
template <bool fault>
DEVICE void hip_trips(unsigned* out, const unsigned* in) {
  static __attribute__((shared)) unsigned tile[256];
  const unsigned t = thread_id(), wave = __builtin_amdgcn_readfirstlane(t / 64);
  unsigned sum = 0;
  for (unsigned step = 0; step < (fault ? 2 + wave : 5); ++step) {
    if (wave == 0) tile[t] = in[step * 64 + t];
    barrier();
    sum += wave == 0 ? tile[t] : 1;
    barrier();
  }
  out[t] = sum;
}
PAIR(hip_trips)
