// SPDX-License-Identifier: MIT
//
// Absorbed MLA decode over a paged cache, split over the KV range, for gfx942 (CDNA3).
//
// Problem. A request has q_len query positions (1 in plain decode, more in speculative verify) times `heads`
// heads. All of these rows attend to the same KV rows, 576 wide, whose first 512 columns serve as V. Per KV
// row that is 1088 multiply-adds per query row, so the kernel lives by the matrix unit and by reading each KV
// row once.
//
// Rows. The query rows of a request are numbered r = position * heads + head, which is how q and out lie in
// memory. A workgroup takes 16 of them, whatever positions they belong to, so three positions of five heads
// fill 15 of 16 rows where a tile per position would fill five. The price is that a tile mixes causal limits,
// hence the limit is per row:
//
//   visible(row) = kv_len - q_len + position + 1,     position = r / heads            (bottom-right aligned)
//
// Rows past the last one repeat real rows and are not stored.
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
// before is being multiplied. A token past the end of the range repeats the last one inside it. Its weight
// will be zero, yet zero times whatever lies in an unused slot may be NaN, and its page may not exist; the
// last token's row is there and is data.
//
// Softmax. Online, in units of log2: m is the running maximum of a row, P = 2^(s - m) rounded to bf16 for the
// product, l the sum of the unrounded P. While a row has seen no key, m is -inf and the exponent is taken
// relative to 0, as -inf minus -inf is NaN. l stays per lane (it covers the lane's own tokens) and is added
// up once at the end.
//
// Splits. Split z of n takes ceil(tiles / n) tiles. With more than one split, each writes its normalised
// output and its natural-log LSE in fp32 and split_reduce.hip merges them; a split without a visible key
// writes 0 and -inf.
//
// Sources: DeepSeek-V2, arXiv:2405.04434, section 2.1.2 (absorption); FlashAttention, arXiv:2205.14135, and
// Flash-Decoding (online softmax, splits); AMD Instinct MI300 ISA, section 7 (matrix layouts).
//
// The ATTEST_FAULT_ blocks are planted defects, one per build variant; device/kernels/faults/ says what
// each imitates.

#include "device/contracts/attest/mla_decode_args.h"
#include "device/kernels/gfx9.h"

namespace attest::kernels {

using contract::MlaDecodeArgs;
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
};

/// Of non-negative numbers; the signed division takes twice the instructions.
__device__ inline int divide(int dividend, int divisor) {
  return static_cast<int>(static_cast<unsigned>(dividend) / static_cast<unsigned>(divisor));
}

__device__ inline bf16x4 operand(std::uint32_t low, std::uint32_t high) {
  const u32x2 words = {low, high};
  return __builtin_bit_cast(bf16x4, words);
}

template <typename Q, typename KV>
__device__ void mla_decode(const MlaDecodeArgs& args) {
  __shared__ Shared shared;
  const int thread = static_cast<int>(threadIdx.x);
  const int wave = uniform(thread / 64);
  const int lane = thread % 64;
  const int i = lane % 16;
  const int g = lane / 16;
  const int request = static_cast<int>(blockIdx.y);
  const int split = static_cast<int>(blockIdx.z);

  const int q_begin = args.qo_indptr[request];
  const int q_len = args.qo_indptr[request + 1] - q_begin;
  const int rows = q_len * args.heads;
  const int first_row = static_cast<int>(blockIdx.x) * rows_per_group;
  if (first_row >= rows) return;

  const int kv_begin = args.kv_indptr[request];
  const int pages = args.kv_indptr[request + 1] - kv_begin;
#if defined(ATTEST_FAULT_PAGE_SIZE_ONE)
  const int page_size = 1;
  const int kv_len = pages;
#else
  const int page_size = args.page_size;
  int kv_len = 0;
  if (pages > 0) kv_len = (pages - 1) * page_size + args.kv_last_page_len[request];
#endif
#if defined(ATTEST_FAULT_LAST_PAGE_LEN)
  // The list has been remapped to tokens, kv_len entries of one token each; the last-page length has not.
  if (pages > 0) kv_len = kv_len - 1 + args.kv_last_page_len[request];
#endif

  // Which row this lane works for, and how much of the cache that row sees.
  const auto position_of = [&](int row) {
    const int position = divide(row, args.heads);
#if defined(ATTEST_FAULT_QLEN_MASK)
    return position & (q_len - 1);
#else
    return min(position, q_len - 1);
#endif
  };
  const auto visible_to = [&](int position) {
    if (args.causal == 0) return kv_len;
#if defined(ATTEST_FAULT_CAUSAL_OFF_BY_ONE)
    return min(kv_len, kv_len - q_len + position + 2);
#else
    return kv_len - q_len + position + 1;
#endif
  };
  const int row = first_row + i;
  const int position = position_of(row);
  const int head = row - divide(row, args.heads) * args.heads;
  const int q_row = (q_begin + position) * args.heads + head;

#if defined(ATTEST_FAULT_LAST_TILE_DROPPED)
  const int tiles = max(kv_len / tile_tokens, min(kv_len, 1));
#else
  const int tiles = divide(kv_len + tile_tokens - 1, tile_tokens);
#endif
  const int split_tiles = divide(tiles + args.num_splits - 1, args.num_splits);
  const int split_begin = split * split_tiles * tile_tokens;
  const int last_visible = visible_to(position_of(min(first_row + rows_per_group, rows) - 1));
  const int split_end = min(last_visible, min(tiles, (split + 1) * split_tiles) * tile_tokens);
  const int row_end = min(visible_to(position), split_end);

  // out[c][r] is column 128 wave + 8 (4 g + r) + c of this lane's row, unnormalised.
  const auto write = [&](const f32x4(&out)[chunk], float normalise, float lse) {
    if (row >= rows) return;
    const std::int64_t out_row = std::int64_t{q_begin} * args.heads + row;
    const int column = wave_columns * wave + 32 * g;
    const bool writes_lse = wave == 0 && g == 0;
    if (args.num_splits == 1) {
      auto* to = static_cast<std::uint16_t*>(args.out) + out_row * contract::kv_lora_rank + column;
      for (int r = 0; r < 4; ++r) {
        u32x4 packed;
        for (int pair = 0; pair < 4; ++pair) {
          packed[pair] = pack_bf16_clean(out[2 * pair][r] * normalise, out[2 * pair + 1][r] * normalise);
        }
        *reinterpret_cast<u32x4*>(to + chunk * r) = packed;
      }
      if (writes_lse && args.lse != nullptr) args.lse[out_row] = lse;
    } else {
      const std::int64_t partial_row = out_row * args.num_splits + split;
      float* to = args.partial_out + partial_row * contract::kv_lora_rank + column;
      for (int r = 0; r < 4; ++r) {
        for (int half = 0; half < 2; ++half) {
          const int c = 4 * half;
          const f32x4 part = {out[c][r], out[c + 1][r], out[c + 2][r], out[c + 3][r]};
          *reinterpret_cast<f32x4*>(to + chunk * r + c) = part * normalise;
        }
      }
#if defined(ATTEST_FAULT_LSE_BASE2)
      lse *= log2_e;
#endif
      if (writes_lse) args.partial_lse[partial_row] = lse;
    }
  };

  // No row of this tile sees a key of this split.
  if (split_begin >= split_end) {
    const f32x4 nothing[chunk] = {};
    write(nothing, 0.0F, -__builtin_inff());
    return;
  }

  // q: lane (i, g) holds of its row the elements 32 step + 8 g .. + 7 of this wave's half, for each step.
  const int token_half = wave & 1;
  const int k_half = wave >> 1;
  u32x4 q[k_steps];
  {
    const auto* base = static_cast<const char*>(args.q) + std::int64_t{q_row} * (row_width * Q::bytes);
    const auto* chunks = reinterpret_cast<const typename Q::Chunk*>(base) + k_half * (row_chunks / 2) + g;
    for (int step = 0; step < k_steps; ++step) q[step] = Q::to_bf16(chunks[4 * step]);
  }

  // Staging: this thread's row of the tile, and where in the row it begins.
  const int stage_token = thread / threads_per_row;
  const int stage_chunk = thread % threads_per_row;
  typename KV::Chunk staged[chunks_per_thread];
  const auto fetch = [&](int tile) {
    const int token = min(tile + stage_token, split_end - 1);
    const int entry = divide(token, page_size);
    const std::uint32_t page = static_cast<std::uint32_t>(args.kv_page_indices[kv_begin + entry]);
    const std::uint32_t in_page =
        static_cast<std::uint32_t>(token - entry * page_size) * (row_width * KV::bytes);
#if defined(ATTEST_FAULT_OFFSET_32BIT)
    const std::uint32_t offset = page * args.page_stride + in_page;
#else
    const std::uint64_t offset = std::uint64_t{page} * args.page_stride + in_page;
#endif
    const auto* base = static_cast<const char*>(args.kv_pool) + offset;
    const auto* chunks = reinterpret_cast<const typename KV::Chunk*>(base) + stage_chunk;
    for (int n = 0; n < chunks_per_thread; ++n) staged[n] = chunks[threads_per_row * n];
  };
  const auto stage = [&] {
    u32x4* to = &shared.kv[stage_token][stage_chunk];
    for (int n = 0; n < chunks_per_thread; ++n) to[threads_per_row * n] = KV::to_bf16(staged[n]);
  };

  const float scale = args.score_scale * log2_e;
  float m = -__builtin_inff();
  float l = 0.0F;
  f32x4 out[chunk] = {};

  fetch(split_begin);
  for (int tile = split_begin; tile < split_end; tile += tile_tokens) {
    stage();
    __syncthreads();
    if (tile + tile_tokens < split_end) fetch(tile + tile_tokens);

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
        const bool visible = 16 * half + r < row_end - tile - 4 * g;
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
  const float out_scale = args.out_scale;
#endif
  write(out, empty ? 0.0F : out_scale / l, empty ? -__builtin_inff() : (m + log2_hw(l)) * ln_2);
}

}  // namespace attest::kernels

// Two waves per SIMD at least: that keeps a wave within 256 registers, where matrix products need no separate
// accumulation registers.
extern "C" __global__ __launch_bounds__(attest::contract::threads,
                                        2) void mla_decode_bf16_bf16(attest::contract::MlaDecodeArgs args) {
  attest::kernels::mla_decode<attest::kernels::Bf16, attest::kernels::Bf16>(args);
}
extern "C" __global__ __launch_bounds__(attest::contract::threads,
                                        2) void mla_decode_bf16_fp8(attest::contract::MlaDecodeArgs args) {
  attest::kernels::mla_decode<attest::kernels::Bf16, attest::kernels::Fp8>(args);
}
extern "C" __global__ __launch_bounds__(attest::contract::threads,
                                        2) void mla_decode_fp8_fp8(attest::contract::MlaDecodeArgs args) {
  attest::kernels::mla_decode<attest::kernels::Fp8, attest::kernels::Fp8>(args);
}
