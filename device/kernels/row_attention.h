// SPDX-License-Identifier: MIT
//
// Attention of one query row by one wave: keys one after the other, a key's columns across the lanes. No
// matrix unit and no LDS: what such a kernel computes can be read off it.
#pragma once

#include "device/kernels/gfx9.h"

namespace attest::kernels {

/// Sum over the 64 lanes, with the same bits in all of them.
__device__ inline float wave_sum(float x) {
  x += exchange_xor<1>(x);
  x += exchange_xor<2>(x);
  x += exchange_xor<4>(x);
  x += exchange_xor<8>(x);
  x += exchange_xor<16>(x);
  x += exchange_halves(x);
  return x;
}

/// One element of a row as f32.
__device__ inline float element(const Bf16*, const void* row, int column) {
  return __builtin_bit_cast(float, std::uint32_t{static_cast<const std::uint16_t*>(row)[column]} << 16);
}
__device__ inline float element(const Fp8*, const void* row, int column) {
  return __builtin_amdgcn_cvt_f32_fp8(static_cast<const std::uint8_t*>(row)[column], 0);
}
template <typename Element>
__device__ inline float element(const void* row, int column) {
  return element(static_cast<const Element*>(nullptr), row, column);
}

/// Online softmax over the keys of one row, in units of log2, and `columns` of the weighted sum of V.
template <int columns>
struct RowState {
  float max = -__builtin_inff();
  float sum = 0.0F;
  float out[columns] = {};

  /// A key with this score, which is finite.
  __device__ void take(float score, const float (&value)[columns]) {
    const float new_max = fmaxf(max, score);
    const float rescale = exp2_hw(max - new_max);
    const float weight = exp2_hw(score - new_max);
    max = new_max;
    sum = sum * rescale + weight;
    for (int c = 0; c < columns; ++c) out[c] = out[c] * rescale + weight * value[c];
  }
  /// What the outputs are multiplied by; 0 when no key was taken.
  [[nodiscard]] __device__ float normalise() const { return sum == 0.0F ? 0.0F : 1.0F / sum; }
  /// Natural logarithm; -inf when no key was taken.
  [[nodiscard]] __device__ float lse() const {
    return sum == 0.0F ? -__builtin_inff() : (max + log2_hw(sum)) * ln_2;
  }
};

}  // namespace attest::kernels
