// SPDX-License-Identifier: MIT
//
// The faults of dataflow_test.cpp that a compiler lets through: NAME_bad and NAME_good. `in` was written,
// `out` was not.
#define KERNEL extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 256)))
#define SHARED __attribute__((shared))

using u32 = unsigned;

static __attribute__((device)) u32 item() {
  return __builtin_amdgcn_workitem_id_x();
}
static __attribute__((device)) void synchronise() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// A tile whose last rows nobody loads, because the sequence ends inside of it; summed all the same.
template <bool masked>
static __attribute__((device)) void tail(u32* out, const u32* in, u32 length) {
  SHARED static u32 tile[256];
  if (item() < length) tile[item()] = in[item()];
  synchronise();
  u32 sum = 0;
  for (u32 k = 0; k < 64; ++k)
    if (!masked || k < length) sum += tile[k];
  out[item()] = sum;
}
KERNEL void tail_bad(u32* out, const u32* in, u32 length) {
  tail<false>(out, in, length);
}
KERNEL void tail_good(u32* out, const u32* in, u32 length) {
  tail<true>(out, in, length);
}

// Partial results of four splits; the merge reads all of them, the last was never computed.
template <int splits>
static __attribute__((device)) void merge(u32* out, const u32* in) {
  u32* partial = out + 512;
  for (int s = 0; s < splits; ++s) partial[64 * s + item()] = in[item()] + s;
  u32 sum = 0;
  for (int s = 0; s < 4; ++s) sum += reinterpret_cast<volatile u32*>(partial)[64 * s + item()];
  out[item()] = sum;
}
KERNEL void merge_bad(u32* out, const u32* in) {
  merge<3>(out, in);
}
KERNEL void merge_good(u32* out, const u32* in) {
  merge<4>(out, in);
}

// A page number from a table entry that was never filled in.
template <bool filled>
static __attribute__((device)) void table(u32* out, const u32* in) {
  SHARED static u32 pages[64];
  if (filled || item() < 63) pages[item()] = in[item()] & 15;
  synchronise();
  out[item()] = in[pages[63 - item()] & 255];
}
KERNEL void table_bad(u32* out, const u32* in) {
  table<false>(out, in);
}
KERNEL void table_good(u32* out, const u32* in) {
  table<true>(out, in);
}

// Rows staged in LDS and turned round there, from memory that the kernel before should have filled.
static __attribute__((device)) void staged(u32* out, const u32* rows) {
  SHARED static u32 tile[256];
  tile[item()] = rows[item()];
  synchronise();
  out[item()] = tile[63 - item()];
}
KERNEL void staged_bad(u32* out, const u32* in) {
  staged(out, out + 256);
}
KERNEL void staged_good(u32* out, const u32* in) {
  staged(out, in + 256);
}

// An array of a work-item, in scratch, of which an element is set only when the loop gets there.
template <u32 set>
static __attribute__((device)) void local(u32* out, const u32* in, u32 length) {
  volatile u32 values[16];
  for (u32 k = 0; k < set; ++k) values[k] = in[k];
  out[item()] = values[(in[item()] + length) & 15];
}
KERNEL void local_bad(u32* out, const u32* in, u32 length) {
  local<8>(out, in, length);
}
KERNEL void local_good(u32* out, const u32* in, u32 length) {
  local<16>(out, in, length);
}

// How many elements a lane takes, from an exponential: one more or less is another address.
template <bool estimated>
static __attribute__((device)) void estimate(u32* out, const u32* in) {
  const float x = static_cast<float>(item() & 3);
  const float count = estimated ? __builtin_amdgcn_exp2f(x) : x;
  out[item()] = in[static_cast<u32>(count)];
}
KERNEL void estimate_bad(u32* out, const u32* in) {
  estimate<true>(out, in);
}
KERNEL void estimate_good(u32* out, const u32* in) {
  estimate<false>(out, in);
}

// Integer division goes through v_rcp_iflag_f32 and comes out exact.
KERNEL void division_good(u32* out, const u32* in, u32 length) {
  out[item()] = in[(item() * 77) / length % (length + 3)];
}
