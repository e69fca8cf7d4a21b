// SPDX-License-Identifier: MIT
//
// Prefill attention in the MHA form of MLA, with the context in chunks over a paged cache.
//
// The keys of a request come from two places, and a row's softmax over all of them is put together from
// partial states: one per chunk of `chunk_len` tokens of context, which every query sees, and one for the
// keys of the call, of which query i of q_len sees the first kv_len - q_len + i + 1. Chunks are cut alike for
// all requests of a batch, so a short context has chunks without keys: such a state is 0 with an lse of -inf,
// and it has to be written, for the merge looks at it. The same holds for leading queries when there are
// fewer keys than queries.
//
// One wave per row and state (row_attention.h). Lane l holds columns l, l + 64, l + 128 of K and l, l + 64 of
// V. V may be a view into a wider tensor, with a head stride of its own.
//
// Source: FlashAttention, arXiv:2205.14135 (online softmax, merging of states); vLLM's chunked prefill of
// MLA. The ATTEST_FAULT_ blocks are planted defects, one per build variant; device/kernels/faults/ says what
// each imitates.

#include "device/contracts/attest/mla_prefill_args.h"
#include "device/kernels/row_attention.h"

namespace attest::kernels {

using contract::prefill_k_columns;
using contract::prefill_v_columns;

constexpr int k_per_lane = prefill_k_columns / 64;
constexpr int v_per_lane = prefill_v_columns / 64;
constexpr int cache_row = prefill_k_columns + prefill_v_columns;

template <typename Qkv, typename Cache>
__device__ void mla_prefill(const contract::MlaPrefillArgs& args) {
  const int wave = uniform(static_cast<int>(threadIdx.x) / 64);
  const int lane = static_cast<int>(threadIdx.x) % 64;
  const int request = static_cast<int>(blockIdx.y);
  const int part = static_cast<int>(blockIdx.z);
  const int q_begin = args.qo_indptr[request];
  const int q_len = args.qo_indptr[request + 1] - q_begin;
  const int row = static_cast<int>(blockIdx.x) * contract::rows_per_prefill + wave;
  if (row >= q_len * args.heads) return;
  const int position = row / args.heads;
  const int head = row - position * args.heads;
  const std::int64_t q_row = std::int64_t{q_begin} * args.heads + row;

  float q[k_per_lane];
  const auto* q_at = static_cast<const char*>(args.q) + q_row * (prefill_k_columns * Qkv::bytes);
  for (int c = 0; c < k_per_lane; ++c) q[c] = element<Qkv>(q_at, lane + 64 * c);

  RowState<v_per_lane> state;
  const auto see = [&]<typename Element>(const Element*, const char* k_at, const char* v_at, float scale) {
    float dot = 0.0F;
    for (int c = 0; c < k_per_lane; ++c) dot += q[c] * element<Element>(k_at, lane + 64 * c);
    float value[v_per_lane];
    for (int c = 0; c < v_per_lane; ++c) value[c] = element<Element>(v_at, lane + 64 * c);
    state.take(wave_sum(dot) * (scale * log2_e), value);
  };

  float out_scale = 1.0F;
  if (part < args.chunks) {
    out_scale = args.context_out_scale;
    const int context = args.context_len[request];
    const int begin = part * args.chunk_len;
#if defined(ATTEST_FAULT_CHUNK_BOUNDARY_TWICE)
    const int end = min(context, begin + args.chunk_len + 1);
#else
    const int end = min(context, begin + args.chunk_len);
#endif
    const std::int32_t* pages = args.page_indices + args.page_indptr[request];
    for (int token = begin; token < end; ++token) {
      const int entry = token / args.page_size;
      const std::uint64_t in_page = static_cast<std::uint32_t>(token - entry * args.page_size);
      const char* at = static_cast<const char*>(args.context_pool) +
                       static_cast<std::uint32_t>(pages[entry]) * args.page_stride +
                       (in_page * static_cast<std::uint32_t>(args.heads) + static_cast<std::uint32_t>(head)) *
                           (cache_row * Cache::bytes);
      see(static_cast<const Cache*>(nullptr), at, at + prefill_k_columns * Cache::bytes,
          args.context_score_scale);
    }
  } else {
    const int kv_begin = args.kv_indptr[request];
    const int kv_len = args.kv_indptr[request + 1] - kv_begin;
#if defined(ATTEST_FAULT_TOP_LEFT)
    const int visible = min(kv_len, position + 1);
#elif defined(ATTEST_FAULT_ROW0_WINDOW)
    const int visible = kv_len - q_len + 1;
#else
    const int visible = kv_len - q_len + position + 1;
#endif
#if defined(ATTEST_FAULT_V_STRIDE)
    const int v_stride = prefill_k_columns;
#else
    const int v_stride = args.v_stride;
#endif
    for (int token = 0; token < visible; ++token) {
      const std::int64_t kv_row = std::int64_t{kv_begin + token} * args.heads + head;
      see(static_cast<const Qkv*>(nullptr),
          static_cast<const char*>(args.k) + kv_row * (prefill_k_columns * Qkv::bytes),
          static_cast<const char*>(args.v) + kv_row * (v_stride * Qkv::bytes), args.call_score_scale);
    }
  }

  const std::int64_t state_row = std::int64_t{part} * args.total_q * args.heads + q_row;
  const float normalise = state.normalise() * out_scale;
  for (int c = 0; c < v_per_lane; ++c)
    args.partial_out[state_row * prefill_v_columns + lane + 64 * c] = state.out[c] * normalise;
  float lse = state.lse();
#if defined(ATTEST_FAULT_EMPTY_CHUNK_LSE_ZERO)
  if (state.sum == 0.0F) lse = 0.0F;
#endif
  if (lane == 0) args.partial_lse[state_row] = lse;
}

}  // namespace attest::kernels

#define ATTEST_PREFILL(name, qkv, cache)                                                \
  extern "C" __global__ __launch_bounds__(attest::contract::prefill_threads) void name( \
      attest::contract::MlaPrefillArgs args) {                                          \
    attest::kernels::mla_prefill<attest::kernels::qkv, attest::kernels::cache>(args);   \
  }
ATTEST_PREFILL(mla_prefill_bf16_bf16, Bf16, Bf16)
ATTEST_PREFILL(mla_prefill_bf16_fp8, Bf16, Fp8)
ATTEST_PREFILL(mla_prefill_fp8_bf16, Fp8, Bf16)
ATTEST_PREFILL(mla_prefill_fp8_fp8, Fp8, Fp8)
