// SPDX-License-Identifier: MIT
//
// The 656-byte cache row of DeepSeek sparse attention (kv_cache_dtype "fp8_ds_mla"):
//
//   bytes   0..511   512 latent values, fp8 e4m3
//   bytes 512..527   4 f32 scales, little endian; scale i belongs to latent columns 128 i .. 128 i + 127
//   bytes 528..655   64 rope values, bf16
//
// and the same 656 bytes per token in three runs per page of n tokens: first n x 512 latents, then n x 4
// scales, then n x 64 rope values (AITER's op_tests/test_mla_persistent.py, split_3buffer_kv_cache).
//
// Both as a reader sees them; reference/cache_write.h writes it.
//
// A reader restores bf16: column d is bf16(f32(latent[d]) * scale[d / 128]), the product rounded to f32 and
// then to bf16, both to nearest even; rope columns are copied. That is part of what the layout means, as the
// kernels that read it multiply bf16 (FlashMLA, vLLM), so the reference rounds as well: the same rounding in
// both must not be charged to a kernel as an error.
//
// Sources: deepseek-ai/FlashMLA, README and tests/quant.py; vllm-project/vllm, csrc/cache_kernels.cu
// (concat_and_cache_ds_mla).
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "reference/attention.h"
#include "reference/cache_write.h"
#include "reference/formats.h"

namespace attest::reference {

/// @param latent fp8_e4m3fnuz (gfx942) or fp8_e4m3fn
/// @param row the ds_row_bytes of a row. Throws std::invalid_argument when it has another size.
/// @param out [576]
/// @param restoring how a restored latent becomes bf16; what truncates differs from the layout's meaning
enum class Restoring { nearest_even, truncated };
void decode_ds_row(Format latent, std::span<const std::byte> row, double* out,
                   Restoring restoring = Restoring::nearest_even);

/// Token `slot` of a page in three runs, as the 656 bytes of a row.
/// @param page page_size * ds_row_bytes. Throws std::invalid_argument when it has fewer, or no such slot.
std::array<std::byte, ds_row_bytes> ds_row_of_page(std::span<const std::byte> page, int page_size, int slot);

}  // namespace attest::reference
