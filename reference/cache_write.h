// SPDX-License-Identifier: MIT
//
// What a cache writer leaves in memory for one token, byte by byte.
//
//   bf16      576 bf16: 512 latent, 64 rope                                          1152 bytes
//   fp8       576 fp8(x / kv_scale), one scale for the whole tensor                   576 bytes
//   ds_mla    512 fp8 latent | 4 f32 scales, of 128 columns each | 64 bf16 rope       656 bytes
//   indexer   128 fp8 and a f32 scale, which lie apart in the page (reference/indexer.h)
//
// A group's scale is amax / ceiling, so that its largest value uses the whole range of the format. Which
// ceiling, and what keeps a group of zeros from a scale of zero, differs between writers:
//
//   scale = max(max(amax, amax_floor) / ceiling, scale_floor), rounded up to a power of two for ue8m0
//
//   vLLM ds_mla       ceiling 448, on FNUZ 224      scale_floor FLT_MIN
//   FlashMLA ds_mla   ceiling 448                   scale_floor 1e-4, ue8m0
//   indexer           ceiling 448, on FNUZ 224 or 240 (AITER)      amax_floor 1e-4, f32 or ue8m0
//
// All arithmetic is f32, each operation rounded, then the conversion to fp8: to nearest even, saturating. The
// quotient x / scale may also be formed as x * (1 / scale), which rounds twice more and can end one step
// away.
//
// Sources: vLLM csrc/cache_kernels.cu and https://github.com/vllm-project/vllm/pull/32976 (the FNUZ ceiling);
// FlashMLA tests/quant.py; the OCP MX specification (e8m0).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reference/formats.h"

namespace attest::reference {

inline constexpr int latent_columns = 512;
inline constexpr int rope_columns = 64;
inline constexpr int ds_group = 128;
inline constexpr int ds_scale_at = latent_columns;                                ///< bytes
inline constexpr int ds_rope_at = ds_scale_at + 4 * (latent_columns / ds_group);  ///< 528
inline constexpr int ds_row_bytes = ds_rope_at + 2 * rope_columns;                ///< 656

enum class Quotient : std::uint8_t { division, reciprocal };

struct GroupScale {
  float ceiling = 448;
  float amax_floor = 0;
  float scale_floor = 0;
  bool power_of_two = false;
};

/// The scale of a group of finite values.
float group_scale(std::span<const float> values, const GroupScale& rule);

/// The smallest power of two that is not below `x`, a positive normal number.
float power_of_two_above(float x);

/// fp8 of x / scale.
std::uint8_t quantise(Format fp8, float x, float scale, Quotient quotient);

}  // namespace attest::reference
