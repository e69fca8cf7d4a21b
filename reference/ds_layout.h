// SPDX-License-Identifier: MIT
//
// The 656-byte cache row of DeepSeek sparse attention (kv_cache_dtype "fp8_ds_mla"):
//
//   bytes   0..511   512 latent values, fp8 e4m3
//   bytes 512..527   4 f32 scales, little endian; scale i belongs to latent columns 128 i .. 128 i + 127
//   bytes 528..655   64 rope values, bf16
//
// as a reader sees it; reference/cache_write.h writes it.
//
// A reader restores bf16: column d is bf16(f32(latent[d]) * scale[d / 128]), the product rounded to f32 and
// then to bf16, both to nearest even; rope columns are copied. That is part of what the layout means, as the
// kernels that read it multiply bf16 (FlashMLA, vLLM), so the reference rounds as well: the same rounding in
// both must not be charged to a kernel as an error.
//
// Sources: deepseek-ai/FlashMLA, README and tests/quant.py; vllm-project/vllm, csrc/cache_kernels.cu
// (concat_and_cache_ds_mla).
#pragma once

#include <cstddef>
#include <span>

#include "reference/attention.h"
#include "reference/cache_write.h"
#include "reference/formats.h"

namespace attest::reference {

/// @param latent fp8_e4m3fnuz (gfx942) or fp8_e4m3fn
/// @param row the ds_row_bytes of a row. Throws std::invalid_argument when it has another size.
/// @param out [576]
void decode_ds_row(Format latent, std::span<const std::byte> row, double* out);

}  // namespace attest::reference
