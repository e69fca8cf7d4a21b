// SPDX-License-Identifier: MIT
//
// The argument block of AITER's hand-written decode kernels: every argument sits in its own 16-byte slot,
// pointers in the low 8 bytes, scalars in the low 4. The host passes all of it whatever the kernel declares.
//
// Source: ROCm/aiter, csrc/py_itfs_cu/asm_mla.cu, struct KernelArgs (commit e4048607a5).
#pragma once

#include <cstddef>
#include <cstdint>

namespace attest::device::aiter {

template <typename T>
struct alignas(16) Slot {
  T value{};
};

struct DecodeArguments {
  Slot<std::uint64_t>
      ptr_r;  ///< 0x000 partial output, fp32 [total_q, splits, heads, 512]; or the final one, bf16
  Slot<std::uint64_t> ptr_lse;      ///< 0x010 partial LSE, fp32 [total_q, splits, heads]
  Slot<std::uint64_t> ptr_q;        ///< 0x020 [total_q, heads, 576]
  Slot<std::uint64_t> ptr_kv;       ///< 0x030 [pages, page_size, 576]
  Slot<std::uint64_t> ptr_ltp;      ///< 0x040 kv_indptr int32 [batch + 1]
  Slot<std::uint64_t> ptr_ltd;      ///< 0x050 kv_page_indices int32
  Slot<std::uint64_t> ptr_ltl;      ///< 0x060 kv_last_page_lens int32 [batch]
  Slot<float> scalar;               ///< 0x070 softmax scale, natural units
  Slot<std::uint32_t> s_mqa;        ///< 0x080 rows
  Slot<std::uint32_t> s_kv_split;   ///< 0x090
  Slot<std::uint32_t> s_q_bs;       ///< 0x0a0 bytes from one request's q to the next: assumes uniform q_len
  Slot<std::uint32_t> s_bs;         ///< 0x0b0 bytes per page
  Slot<std::uint32_t> s_log2_plen;  ///< 0x0c0 log2 of page_size
  Slot<std::uint64_t> ptr_qtp;      ///< 0x0d0 qo_indptr int32 [batch + 1]
  Slot<std::uint64_t>
      ptr_stp;  ///< 0x0e0 num_kv_splits_indptr; persistent: {work_indptr, work_info_set} addresses
  Slot<std::uint64_t> ptr_rp;           ///< 0x0f0 persistent: final output; else null
  Slot<std::uint64_t> ptr_qscale;       ///< 0x100 float, one element
  Slot<std::uint64_t> ptr_kvscale;      ///< 0x110 float, one element
  Slot<std::uint32_t> out_16_nosplit;   ///< 0x120
  Slot<std::uint64_t> ptr_lsep;         ///< 0x130 final LSE or null
  Slot<std::uint64_t> ptr_gkvtp;        ///< 0x140 context parallel; null here
  Slot<std::uint32_t> s_cp_world_size;  ///< 0x150
  Slot<std::uint32_t> s_cp_rank;        ///< 0x160
};
static_assert(offsetof(DecodeArguments, ptr_qtp) == 0x0d0);
static_assert(offsetof(DecodeArguments, ptr_lsep) == 0x130);
static_assert(sizeof(DecodeArguments) == 0x170);

}  // namespace attest::device::aiter
