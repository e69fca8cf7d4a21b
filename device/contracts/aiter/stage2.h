// SPDX-License-Identifier: MIT
//
// AITER's stage 2, as arithmetic on host memory: the merge of split partials that follows a non-persistent
// launch (the Triton kernel _fwd_kernel_stage2_asm), and the reduction that follows a persistent one
// (mla_reduce_v1).
//
// Neither ships as a code object, so they are modelled here operation by operation in fp32, with their own
// rules for what is valid, copied, skipped and NaN. They are part of the thing under test: reference/ knows
// nothing of them.
//
// Follows ROCm/aiter commit e4048607a5: aiter/mla.py and csrc/kernels/mla/reduce.cu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace attest::device::aiter {

inline constexpr int v_head_dim = 512;

struct SplitMerge {
  int heads = 0, splits = 0;   ///< `splits` of the partial buffers' layout
  int split_granularity = 16;  ///< tokens per chunk: a request has ceil(kv_len / it) splits at most
  bool may_copy_final = true;
  int page_size = 1;                                   ///< above 1 kv_indptr counts pages
  std::span<const std::int32_t> qo_indptr;             ///< [batch + 1]
  std::span<const std::int32_t> kv_indptr;             ///< [batch + 1]
  std::span<const std::int32_t> kv_last_page_lens;     ///< [batch]
  std::span<const std::int32_t> num_kv_splits_indptr;  ///< [batch + 1]
  std::span<const std::byte> partial;  ///< fp32 [total_q, splits, heads, 512], or bf16 to be copied
  std::span<const float> partial_lse;  ///< [total_q, splits, heads]
  std::span<std::uint16_t> out;        ///< bf16 [total_q, heads, 512]
  std::span<float> lse;                ///< [total_q, heads], or empty
};
void merge_splits(const SplitMerge& merge);

struct PersistentReduce {
  int heads = 0;
  std::span<const std::int32_t> reduce_indptr;       ///< [tiles + 1]
  std::span<const std::int32_t> reduce_final_map;    ///< [tiles, 2] rows of out
  std::span<const std::int32_t> reduce_partial_map;  ///< first partial row of each piece
  std::span<const float> partial;                    ///< [rows, heads, 512]
  std::span<const float> partial_lse;                ///< [rows, heads]
  std::span<std::uint16_t> out;                      ///< bf16 [total_q, heads, 512]
  std::span<float> lse;                              ///< [total_q, heads], or empty
};
void reduce_partials(const PersistentReduce& reduce);

/// float to bf16, nearest even, as Triton and HIP store it. NaN becomes 0x7fff.
std::uint16_t to_bf16(float value);

}  // namespace attest::device::aiter
