// SPDX-License-Identifier: MIT
//
// The dense short-prefill switch of a sparse-attention model for gfx942 (CDNA3): which tokens of a batch run
// dense 192/128-wide attention and which run sparse attention over lists, what both need, and the dense form.
// The sparse form is mla_sparse.hip.
//
// Decision. On the device, from the lengths of the batch, so that nothing is baked into a captured graph:
// decodes (q_len 1) come first and are sparse; prefills are dense when the longest of them, context included,
// has no more than topk tokens. Then every list would hold all keys, and dense attention is the same with
// less work. It is one decision per batch.
//
// Metadata (plan, list lengths, owner of each token) lives in buffers that outlast the batch and is rebuilt
// for every batch, whatever it looks like: batches of equal size and equal longest length still differ in the
// lengths of their rows.
//
// The dense form is plain: a wave per query token and head, a lane per key for the scores, two columns per
// lane for the output, softmax online over tiles of 64 keys in f32. Short prefills are its only use here.
//
// Sources: vllm-project/vllm#47327, #49263 (the switch); FlashAttention, arXiv:2205.14135 (online softmax).
//
// The ATTEST_FAULT_ blocks are planted defects, one per build variant; device/kernels/faults/ says what
// each imitates.

#include "device/contracts/attest/dense_switch_args.h"
#include "device/kernels/gfx9.h"

namespace attest::kernels {

using namespace contract;

__device__ inline float wave_max(float x) {
  x = fmaxf(x, exchange_xor<1>(x));
  x = fmaxf(x, exchange_xor<2>(x));
  x = fmaxf(x, exchange_xor<4>(x));
  x = fmaxf(x, exchange_xor<8>(x));
  x = fmaxf(x, exchange_xor<16>(x));
  return fmaxf(x, exchange_halves(x));
}
__device__ inline float wave_sum(float x) {
  x += exchange_xor<1>(x);
  x += exchange_xor<2>(x);
  x += exchange_xor<4>(x);
  x += exchange_xor<8>(x);
  x += exchange_xor<16>(x);
  return x + exchange_halves(x);
}

__device__ inline float low_bf16(std::uint32_t pair) {
  return __builtin_bit_cast(float, pair << 16);
}
__device__ inline float high_bf16(std::uint32_t pair) {
  return __builtin_bit_cast(float, pair & 0xffff0000u);
}

}  // namespace attest::kernels

extern "C" __global__ __launch_bounds__(attest::contract::switch_threads) void switch_plan(
    attest::contract::SwitchPlanArgs args) {
  const int thread = static_cast<int>(threadIdx.x);
  const auto q_len_of = [&](int r) { return args.qo_indptr[r + 1] - args.qo_indptr[r]; };
  int decodes = 0;
  while (decodes < args.requests && q_len_of(decodes) <= 1) ++decodes;
  int longest = 0, longest_prefill = 0;
  for (int r = 0; r < args.requests; ++r) {
    longest = max(longest, min(args.kv_lens[r], args.topk));
#if defined(ATTEST_FAULT_ROUTE_ON_Q_LEN)
    if (r >= decodes) longest_prefill = max(longest_prefill, q_len_of(r));
#else
    if (r >= decodes) longest_prefill = max(longest_prefill, args.kv_lens[r]);
#endif
  }
#if defined(ATTEST_FAULT_SWITCH_STRICT)
  const bool dense = longest_prefill < args.topk;
#else
  const bool dense = longest_prefill <= args.topk;
#endif
  const int tokens = args.qo_indptr[args.requests];
#if defined(ATTEST_FAULT_STALE_METADATA)
  // Kept as long as the batch looks the same.
  if (args.plan->requests == args.requests && args.plan->tokens == tokens && args.plan->longest == longest)
    return;
#endif
  for (int r = 0; r < args.requests; ++r) {
    const int q_len = q_len_of(r);
    for (int i = thread; i < q_len; i += attest::contract::switch_threads) {
      const int token = args.qo_indptr[r] + i;
      args.lengths[token] = min(args.kv_lens[r] - q_len + i + 1, args.topk);
      args.request_of[token] = r;
    }
  }
  if (thread == 0)
    *args.plan = {dense ? 1 : 0, dense ? args.qo_indptr[decodes] : tokens, args.requests, tokens, longest};
}

extern "C" __global__ __launch_bounds__(attest::contract::switch_threads) void switch_remap(
    attest::contract::SwitchRemapArgs args) {
  const int token = static_cast<int>(blockIdx.y);
  const int entry =
      static_cast<int>(blockIdx.x) * attest::contract::switch_threads + static_cast<int>(threadIdx.x);
  if (token >= args.plan->sparse_tokens || entry >= args.topk) return;
  const std::int64_t at = std::int64_t{token} * args.topk + entry;
  const int id = args.topk_ids[at];
#if defined(ATTEST_FAULT_IDS_NOT_REMAPPED)
  args.indices[at] = id;
#else
  int slot = -1;
  if (id >= 0 && id / args.page_size < args.table_width) {
    const std::int64_t row = std::int64_t{args.request_of[token]} * args.table_width;
    slot = args.block_table[row + id / args.page_size] * args.page_size + id % args.page_size;
  }
  args.indices[at] = slot;
#endif
}

extern "C" __global__ __launch_bounds__(attest::contract::project_threads) void switch_project(
    attest::contract::SwitchProjectArgs args) {
  const int token = static_cast<int>(blockIdx.x);
  const int column = static_cast<int>(threadIdx.x);
  if (token >= args.plan->sparse_tokens) return;
  const auto* latent = static_cast<const std::uint16_t*>(args.latent);
  auto* out = static_cast<std::uint16_t*>(args.out);
  for (int head = 0; head < args.heads; ++head) {
    const std::int64_t row = std::int64_t{token} * args.heads + head;
    out[row * attest::contract::value_width + column] =
        latent[row * 512 + args.v_columns[head * attest::contract::value_width + column]];
  }
}

extern "C" __global__ __launch_bounds__(attest::contract::switch_threads) void switch_mha(
    attest::contract::SwitchMhaArgs args) {
  using namespace attest::kernels;
  const int head = static_cast<int>(blockIdx.x);
  const int token = static_cast<int>(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x);
  if (args.plan->dense == 0 || token < args.plan->sparse_tokens) return;
  const int request = args.request_of[token];
  const int q_len = args.qo_indptr[request + 1] - args.qo_indptr[request];
  const int position = token - args.qo_indptr[request];
  const int visible = args.kv_lens[request] - q_len + position + 1;

  constexpr int chunks = dense_width / 8;
  const std::int64_t q_row = std::int64_t{token} * args.heads + head;
  const auto* q =
      reinterpret_cast<const u32x4*>(static_cast<const std::uint16_t*>(args.q) + q_row * dense_width);
  const auto row_of = [&](int key) {
    return (std::int64_t{args.k_indptr[request]} + key) * args.heads + head;
  };
  const float scale = args.sm_scale * log2_e;
  float m = -__builtin_inff(), l = 0.0F, low = 0.0F, high = 0.0F;
  for (int tile = 0; tile < visible; tile += switch_threads) {
    const int key = min(tile + lane, visible - 1);
    const auto* k =
        reinterpret_cast<const u32x4*>(static_cast<const std::uint16_t*>(args.k) + row_of(key) * dense_width);
    float s = 0.0F;
    for (int c = 0; c < chunks; ++c) {
      const u32x4 a = q[c], b = k[c];
      for (int word = 0; word < 4; ++word) {
        const std::uint32_t x = a[word], y = b[word];
        s = fmaf(low_bf16(x), low_bf16(y), s);
        s = fmaf(high_bf16(x), high_bf16(y), s);
      }
    }
    s = tile + lane < visible ? s * scale : -__builtin_inff();
    const float m_new = fmaxf(m, wave_max(s));
    const float rescale = exp2_hw(m - m_new);
    const float p = exp2_hw(s - m_new);
    m = m_new;
    l = l * rescale + wave_sum(p);
    low *= rescale;
    high *= rescale;
    const int keys = min(switch_threads, visible - tile);
    for (int j = 0; j < keys; ++j) {
      const float weight = from_lane(p, j);
      const std::uint32_t v = reinterpret_cast<const std::uint32_t*>(
          static_cast<const std::uint16_t*>(args.v) + row_of(tile + j) * value_width)[lane];
      low = fmaf(weight, low_bf16(v), low);
      high = fmaf(weight, high_bf16(v), high);
    }
  }
  reinterpret_cast<std::uint32_t*>(static_cast<std::uint16_t*>(args.out) + q_row * value_width)[lane] =
      pack_bf16(low / l, high / l);
}
