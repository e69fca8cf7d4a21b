// SPDX-License-Identifier: MIT
//
// Attention of speculative verification over a paged MLA cache: every node of a request's draft tree sees the
// context, its ancestors and itself.
//
// The nodes' keys are the last of the request in the cache, in the order of their numbers, so two nodes on
// different branches lie next to each other and neither position nor order says who sees whom: the mask does.
// Its bits for nodes that do not exist are garbage, and the loop ends before them.
//
// Rows are numbered position * heads + head as they lie in memory. That is why folding heads into positions
// costs nothing, and why the two must not be confused: a row's token is position / fold, its node that minus
// the `lead` tokens of padding in front of every request. Each of these steps has been forgotten somewhere
// (device/kernels/faults/verify_attention.cmake).
//
// One wave per row (row_attention.h). Lane l holds columns 8l..8l+7 of the 512 that are K and V, and column
// 512 + l, which is K only.

#include "device/contracts/attest/verify_attention_args.h"
#include "device/kernels/row_attention.h"

namespace attest::kernels {

constexpr int latent_columns = 512;
constexpr int row_elements = 576;
constexpr int lane_columns = 8;

struct WideRow {
  float latent[lane_columns];
  float rope;
};

template <typename Element>
__device__ WideRow load_row(const void* row, int lane) {
  const u32x4 packed = Element::to_bf16(static_cast<const typename Element::Chunk*>(row)[lane]);
  WideRow wide;
  for (int pair = 0; pair < lane_columns / 2; ++pair) {
    const std::uint32_t word = packed[pair];
    wide.latent[2 * pair] = __builtin_bit_cast(float, word << 16);
    wide.latent[2 * pair + 1] = __builtin_bit_cast(float, word & 0xffff0000u);
  }
  wide.rope = element<Element>(row, latent_columns + lane);
  return wide;
}

template <typename KV>
__device__ void verify_attention(const contract::VerifyAttentionArgs& args) {
  const int wave = uniform(static_cast<int>(threadIdx.x) / 64);
  const int lane = static_cast<int>(threadIdx.x) % 64;
  const int request = static_cast<int>(blockIdx.y);
  const int q_begin = args.q_indptr[request];
  const int positions = args.q_indptr[request + 1] - q_begin;
  const int row = static_cast<int>(blockIdx.x) * contract::rows_per_verify + wave;
  if (row >= positions * args.heads) return;
  const int position = row / args.heads;
  const int token = position / args.fold;
  const int node = token - args.lead;
  if (node < 0) return;

  const int node_begin = args.node_indptr[request];
  const int nodes = args.node_indptr[request + 1] - node_begin;
#if defined(ATTEST_FAULT_LATER_DRAFTS)
  const std::uint64_t mask = ~0ull;
#elif defined(ATTEST_FAULT_SIBLING)
  const std::uint64_t mask = (2ull << node) - 1;
#elif defined(ATTEST_FAULT_ROW0_WINDOW)
  const std::uint64_t mask = args.mask[node_begin];
#elif defined(ATTEST_FAULT_LEADING_ROWS)
  const std::uint64_t mask = args.mask[node_begin + min(token, nodes - 1)];
#elif defined(ATTEST_FAULT_FOLD_AS_POSITION)
  const std::uint64_t mask = args.mask[node_begin + min(position - args.lead * args.fold, nodes - 1)];
#else
  const std::uint64_t mask = args.mask[node_begin + node];
#endif

  const int kv_begin = args.kv_indptr[request];
  const int pages = args.kv_indptr[request + 1] - kv_begin;
  const int kv_len = (pages - 1) * args.page_size + args.kv_last_page_len[request];
  const int context = kv_len - nodes;

  const std::int64_t row_at = std::int64_t{q_begin} * args.heads + row;
  const WideRow q = load_row<Bf16>(static_cast<const std::uint16_t*>(args.q) + row_at * row_elements, lane);
  const float scale = args.score_scale * log2_e;
  RowState<lane_columns> state;
  const auto see = [&](int key) {
    const int entry = key / args.page_size;
    const auto page = static_cast<std::uint32_t>(args.kv_page_indices[kv_begin + entry]);
    const std::uint64_t offset = std::uint64_t{page} * args.page_stride +
                                 std::uint64_t(key - entry * args.page_size) * (row_elements * KV::bytes);
    const WideRow k = load_row<KV>(static_cast<const char*>(args.kv_pool) + offset, lane);
    float dot = q.rope * k.rope;
    for (int c = 0; c < lane_columns; ++c) dot += q.latent[c] * k.latent[c];
    state.take(wave_sum(dot) * scale, k.latent);
  };
  for (int key = 0; key < context; ++key) see(key);
  for (int other = 0; other < nodes; ++other)
    if ((mask >> other & 1) != 0) see(context + other);

  const float normalise = state.normalise() * args.out_scale;
  u32x4 packed;
  for (int pair = 0; pair < lane_columns / 2; ++pair)
    packed[pair] = pack_bf16(state.out[2 * pair] * normalise, state.out[2 * pair + 1] * normalise);
  auto* out = static_cast<std::uint16_t*>(args.out) + row_at * latent_columns;
  reinterpret_cast<u32x4*>(out)[lane] = packed;
  if (lane == 0 && args.lse != nullptr) args.lse[row_at] = state.lse();
}

}  // namespace attest::kernels

extern "C" __global__ __launch_bounds__(attest::contract::verify_threads) void verify_attention_bf16(
    attest::contract::VerifyAttentionArgs args) {
  attest::kernels::verify_attention<attest::kernels::Bf16>(args);
}
extern "C" __global__ __launch_bounds__(attest::contract::verify_threads) void verify_attention_fp8(
    attest::contract::VerifyAttentionArgs args) {
  attest::kernels::verify_attention<attest::kernels::Fp8>(args);
}
