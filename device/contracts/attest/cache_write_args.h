// SPDX-License-Identifier: MIT
//
// The launch contract of attest's own cache writers, shared by the kernels and the host: C++17, fixed-width
// types only.
//
//   cache_write_bf16      576 bf16 a token
//   cache_write_fp8       576 fp8 e4m3 FNUZ a token, x / kv_scale
//   cache_write_ds_mla    512 fp8 | 4 f32 scales | 64 bf16, 656 bytes a token
//   cache_write_indexer   128 fp8 a token and a f32 scale; a page holds all values, then all scales
//     grid   (tokens, 1, 1) workgroups
//     block  64
//     writes the token into its slot; a negative slot is left out
#pragma once

#include <cstdint>

namespace attest::contract {

inline constexpr int cache_write_threads = 64;

struct CacheWriteArgs {
  const void* latent;             ///< [tokens, 512] bf16; indexer: [tokens, 128]
  const void* rope;               ///< [tokens, 64] bf16; indexer: unread
  const std::int64_t* slots;      ///< [tokens]
  void* pool;                     ///< pages
  std::uint64_t page_stride;      ///< bytes from one page to the next, a multiple of 4
  std::int32_t page_size;         ///< tokens
  float kv_scale;                 ///< fp8 only
  std::int32_t reciprocal;        ///< 1: multiply by 1 / scale; 0: divide by the scale
  std::int32_t power_of_two;      ///< 1: group scales are rounded up to a power of two
  float ceiling;                  ///< what the largest value of a group becomes
  float amax_floor, scale_floor;  ///< scale = max(max(amax, amax_floor) / ceiling, scale_floor)
  std::int32_t reserved;
};
static_assert(sizeof(CacheWriteArgs) == 72, "the kernels read this layout");

}  // namespace attest::contract
