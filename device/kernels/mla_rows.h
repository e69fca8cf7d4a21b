// SPDX-License-Identifier: MIT
//
// Sixteen query rows against a stream of cache rows, by a workgroup of four waves: the part that MLA kernels
// have in common, whatever names the rows, pages or lists of slots.
//
// Transposed products. Four waves work on a tile of 32 tokens with v_mfma_f32_16x16x16_bf16, and both
// products are taken transposed: S^T = K Q^T and O^T = V^T P^T. The reason is the register layout of the
// instruction. With lane l = 16 g + i
//
//      A (16 x k)            B (k x 16)            C, D (16 x 16)
//      row i, k 4g..4g+3     column i, k 4g..4g+3  column i, rows 4g..4g+3
//
// so the D of S^T has in lane l query row i and tokens 4g..4g+3, which is exactly the B operand that the
// second product wants of P^T. P never moves between lanes, the softmax state of a query row (m, l) is one
// register, and rescaling O^T is a multiplication by a number that the lane already has. Untransposed, P
// would go through LDS and every lane would hold four rows' states.
//
// Dividing the work. S^T of 32 tokens by 16 rows over k = 576: wave w takes the token half w & 1 and the k
// half w >> 1, nine steps of 32 k each, and the two k halves are added through LDS. (The order of k within a
// product is free as long as both operands agree; eight neighbouring k per lane make every operand read 16
// bytes.) Every wave then has all 32 tokens, computes P itself, cheaper than sending it around, and
// multiplies it with its own 128 of the 512 columns of V.
//
// V^T without a transposition. The A operand of the second product needs four tokens of one column per lane,
// but the tile lies row by row. Which column a matrix row stands for is free too: lane i reads eight
// neighbouring columns 8i..8i+7 of each of its four tokens, 16 bytes each, and v_perm_b32 pairs up tokens.
// That makes operands for eight products, and product c computes the columns 8i + c. A lane ends up with
// columns 32g..32g+31 of its wave's 128, contiguous in memory.
//
// LDS. A row of 576 bf16 is 288 words, a multiple of the 32 banks, so the 16 lanes of an operand read would
// collide; 16 bytes of padding shift each row by four banks and make the 16-byte reads conflict-free. An fp8
// cache is widened to bf16 on the way into LDS, which is exact.
//
// Staging. Eight threads fetch a row, nine chunks of eight elements each, into registers while the tile
// before is being multiplied. A key that is not there must not be read: its weight will be zero, yet zero
// times whatever lies in an unused slot may be NaN, and its page may not exist. A stream without holes gives
// the last row of its range again, one with holes gives nothing, which is staged as zeros and remembered.
//
// Softmax. Online, in units of log2: m is the running maximum of a row, P = 2^(s - m) rounded to bf16 for the
// product, l the sum of the unrounded P. While a row has seen no key, m is -inf and the exponent is taken
// relative to 0, as -inf minus -inf is NaN. l stays per lane (it covers the lane's own tokens) and is added
// up once at the end.
//
// Sources: DeepSeek-V2, arXiv:2405.04434, section 2.1.2; FlashAttention, arXiv:2205.14135 (online softmax);
// AMD Instinct MI300 ISA, section 7 (matrix layouts).
//
// The ATTEST_FAULT_ blocks are planted defects, one per build variant; device/kernels/faults/ says what
// each imitates.
#pragma once

#include "device/contracts/attest/mla_decode_args.h"
#include "device/kernels/gfx9.h"

namespace attest::kernels {

using contract::row_width;
using contract::rows_per_group;
using contract::tile_tokens;

constexpr int waves = 4;
constexpr int chunk = 8;                       // elements handled at once: 16 bytes of bf16
constexpr int row_chunks = row_width / chunk;  // 72
constexpr int padded_row_chunks = row_chunks + 1;
constexpr int threads_per_row = contract::threads / tile_tokens;  // 8
constexpr int chunks_per_thread = row_chunks / threads_per_row;   // 9
constexpr int k_steps = row_width / 2 / 32;                       // 9: half of the row, 32 at a time
constexpr int wave_columns = contract::kv_lora_rank / waves;      // 128

struct Shared {
  u32x4 kv[tile_tokens][padded_row_chunks];
  f32x4 scores[waves][64];
  bool present[tile_tokens];  // of a stream with holes
};

/// Of non-negative numbers; the signed division takes twice the instructions.
__device__ inline int divide(int dividend, int divisor) {
  return static_cast<int>(static_cast<unsigned>(dividend) / static_cast<unsigned>(divisor));
}

__device__ inline bf16x4 operand(std::uint32_t low, std::uint32_t high) {
  const u32x2 words = {low, high};
  return __builtin_bit_cast(bf16x4, words);
}

/// Cache rows of 576 elements, as one of eight threads holds them on the way to LDS: chunks c, c + 8, ...
template <typename Element>
struct PlainRows {
  static constexpr int bytes = row_width * Element::bytes;
  typename Element::Chunk chunks[chunks_per_thread];

  __device__ void fetch(const char* row, int c) {
    const auto* from = reinterpret_cast<const typename Element::Chunk*>(row) + c;
    for (int n = 0; n < chunks_per_thread; ++n) chunks[n] = from[threads_per_row * n];
  }
  __device__ void clear() {
    for (int n = 0; n < chunks_per_thread; ++n) chunks[n] = {};
  }
  __device__ u32x4 to_bf16(int n) const { return Element::to_bf16(chunks[n]); }
};

/// How a workgroup's rows leave it.
struct RowsOut {
  void* out;           ///< [rows, 512] bf16
  float* lse;          ///< [rows]; may be null
  float* partial_out;  ///< [rows, num_splits, 512]
  float* partial_lse;  ///< [rows, num_splits]
  int num_splits;
  int split;
  std::int64_t row;  ///< of this lane
  bool stores;       ///< it has one

  /// out[c][r] is column 128 wave + 8 (4 g + r) + c of this lane's row, unnormalised.
  __device__ void write(const f32x4 (&values)[chunk], float normalise, float row_lse) const {
    if (!stores) return;
    const int wave = uniform(static_cast<int>(threadIdx.x) / 64);
    const int g = static_cast<int>(threadIdx.x) % 64 / 16;
    const int column = wave_columns * wave + 32 * g;
    const bool writes_lse = wave == 0 && g == 0;
    if (num_splits == 1) {
      auto* to = static_cast<std::uint16_t*>(out) + row * contract::kv_lora_rank + column;
      for (int r = 0; r < 4; ++r) {
        u32x4 packed;
        for (int pair = 0; pair < 4; ++pair) {
          packed[pair] =
              pack_bf16_clean(values[2 * pair][r] * normalise, values[2 * pair + 1][r] * normalise);
        }
        *reinterpret_cast<u32x4*>(to + chunk * r) = packed;
      }
      if (writes_lse && lse != nullptr) lse[row] = row_lse;
    } else {
      const std::int64_t partial_row = row * num_splits + split;
      float* to = partial_out + partial_row * contract::kv_lora_rank + column;
      for (int r = 0; r < 4; ++r) {
        for (int half = 0; half < 2; ++half) {
          const int c = 4 * half;
          const f32x4 part = {values[c][r], values[c + 1][r], values[c + 2][r], values[c + 3][r]};
          *reinterpret_cast<f32x4*>(to + chunk * r + c) = part * normalise;
        }
      }
#if defined(ATTEST_FAULT_LSE_BASE2)
      row_lse *= log2_e;
#endif
      if (writes_lse) partial_lse[partial_row] = row_lse;
    }
  }

  /// No row of this workgroup sees a key of this split.
  __device__ void write_empty() const {
    const f32x4 nothing[chunk] = {};
    write(nothing, 0.0F, -__builtin_inff());
  }
};

/// Attends to the keys [begin, end) of the stream and writes the result. begin < end.
///
///   keys.row(t)       where key t lies. With Keys::holes, null when there is no such key, t >= end included;
///                     without, t is in the range
///   keys.visible(t)   whether this lane's row sees key t; t may be past the end
///
/// @param q_row this lane's query row
template <typename Q, typename KV, typename Keys>
__device__ void attend(Shared& shared, const char* q_row, const Keys& keys, int begin, int end,
                       float score_scale, [[maybe_unused]] float kv_scale, const RowsOut& rows) {
  const int thread = static_cast<int>(threadIdx.x);
  const int wave = uniform(thread / 64);
  const int lane = thread % 64;
  const int i = lane % 16;
  const int g = lane / 16;
  // q: lane (i, g) holds of its row the elements 32 step + 8 g .. + 7 of this wave's half, for each step.
  const int token_half = wave & 1;
  const int k_half = wave >> 1;
  u32x4 q[k_steps];
  {
    const auto* chunks = reinterpret_cast<const typename Q::Chunk*>(q_row) + k_half * (row_chunks / 2) + g;
    for (int step = 0; step < k_steps; ++step) q[step] = Q::to_bf16(chunks[4 * step]);
  }

  // Staging: this thread's row of the tile, and where in the row it begins.
  const int stage_token = thread / threads_per_row;
  const int stage_chunk = thread % threads_per_row;
  KV staged;
  [[maybe_unused]] bool present = true;
  const auto fetch = [&](int tile) {
    if constexpr (Keys::holes) {
      const char* row = keys.row(tile + stage_token);
      present = row != nullptr;
      if (present)
        staged.fetch(row, stage_chunk);
      else
        staged.clear();
    } else {
      staged.fetch(keys.row(min(tile + stage_token, end - 1)), stage_chunk);
    }
  };
  const auto stage = [&] {
    u32x4* to = &shared.kv[stage_token][stage_chunk];
    for (int n = 0; n < chunks_per_thread; ++n) to[threads_per_row * n] = staged.to_bf16(n);
    if constexpr (Keys::holes) {
      if (stage_chunk == 0) shared.present[stage_token] = present;
    }
  };

  const float scale = score_scale * log2_e;
  float m = -__builtin_inff();
  float l = 0.0F;
  f32x4 out[chunk] = {};

  fetch(begin);
  for (int tile = begin; tile < end; tile += tile_tokens) {
    stage();
#if !defined(ATTEST_FAULT_BARRIER_MISSING)
    __syncthreads();
#endif
    if (tile + tile_tokens < end) fetch(tile + tile_tokens);

    f32x4 partial = {};
    const u32x4* k = &shared.kv[16 * token_half + i][k_half * (row_chunks / 2) + g];
    for (int step = 0; step < k_steps; ++step) {
      const u32x4 k8 = k[4 * step];
      partial = mfma_16x16x16_bf16(operand(k8[0], k8[1]), operand(q[step][0], q[step][1]), partial);
      partial = mfma_16x16x16_bf16(operand(k8[2], k8[3]), operand(q[step][2], q[step][3]), partial);
    }
    shared.scores[wave][lane] = partial;
    __syncthreads();

    f32x4 s[2];  // s[half][r]: token 16 half + 4 g + r
    float tile_max = -__builtin_inff();
    for (int half = 0; half < 2; ++half) {
      s[half] = (shared.scores[half][lane] + shared.scores[half + 2][lane]) * scale;
      for (int r = 0; r < 4; ++r) {
        const int token = 16 * half + 4 * g + r;
        bool visible = keys.visible(tile + token);
        if constexpr (Keys::holes) visible = visible && shared.present[token];
        s[half][r] = visible ? s[half][r] : -__builtin_inff();
        tile_max = fmaxf(tile_max, s[half][r]);
      }
    }
    tile_max = fmaxf(tile_max, exchange_xor<16>(tile_max));
    tile_max = fmaxf(tile_max, exchange_halves(tile_max));
    const float m_new = fmaxf(m, tile_max);
#if defined(ATTEST_FAULT_INF_FIRST_TILE)
    const float origin = m_new;
#else
    const float origin = m_new == -__builtin_inff() ? 0.0F : m_new;
#endif
    const float rescale = exp2_hw(m - origin);
    m = m_new;

    bf16x4 p[2];
    l *= rescale;
    for (int half = 0; half < 2; ++half) {
      f32x4 weight;
      for (int r = 0; r < 4; ++r) {
        weight[r] = exp2_hw(s[half][r] - origin);
        l += weight[r];
      }
      p[half] = operand(pack_bf16_clean(weight[0], weight[1]), pack_bf16_clean(weight[2], weight[3]));
    }

    for (int c = 0; c < chunk; ++c) out[c] *= rescale;
    for (int half = 0; half < 2; ++half) {
      u32x4 v[4];  // v[e]: columns 128 wave + 8 i .. + 7 of token 16 half + 4 g + e
      for (int e = 0; e < 4; ++e) v[e] = shared.kv[16 * half + 4 * g + e][wave * (wave_columns / chunk) + i];
      for (int pair = 0; pair < chunk / 2; ++pair) {
        const bf16x4 even = operand(low_halves(v[0][pair], v[1][pair]), low_halves(v[2][pair], v[3][pair]));
        const bf16x4 odd = operand(high_halves(v[0][pair], v[1][pair]), high_halves(v[2][pair], v[3][pair]));
        out[2 * pair] = mfma_16x16x16_bf16(even, p[half], out[2 * pair]);
        out[2 * pair + 1] = mfma_16x16x16_bf16(odd, p[half], out[2 * pair + 1]);
      }
    }
    __syncthreads();
  }

  l += exchange_xor<16>(l);
  l += exchange_halves(l);
  const bool empty = l == 0.0F;
#if defined(ATTEST_FAULT_KV_SCALE_MISSING)
  const float out_scale = 1.0F;
#else
  const float out_scale = kv_scale;
#endif
  rows.write(out, empty ? 0.0F : out_scale / l, empty ? -__builtin_inff() : (m + log2_hw(l)) * ln_2);
}

}  // namespace attest::kernels
