// SPDX-License-Identifier: MIT
//
// Indexer logits of DeepSeek sparse attention: for each query token and key, the weighted sum over heads of
// relu(q . k), fp8 times fp8, 128 columns.
//
// A workgroup does one query token and 64 keys, 16 of them per wave. The product is taken as K Q^T with
// v_mfma_f32_16x16x32_fp8_fp8, sixteen heads at a time: with lane l = 16 g + i
//
//      A = K (16 x 32)            B = Q^T (32 x 16)          D (16 x 16)
//      key i, columns 8g..8g+7    head i, columns 8g..8g+7   head i, keys 4g..4g+3
//
// so four instructions make 16 keys times 16 heads of complete products, a lane's four numbers belong to one
// head, and relu and weight are applied where they come out. The keys stay in registers over all heads; sums
// over heads stay per lane until the end, where sixteen lanes are added up by exchanges.
//
// Heads past the last one repeat it with weight zero. Keys outside of the row's range repeat its nearest key,
// which exists and is data, and are overwritten with -inf: what lies in an unused slot never enters.
//
// In a page all values come first and all scales behind them. Pages may be 132 bytes long, so values are
// 4-byte aligned and no more.
//
// Source: DeepSeek-V3.2, arXiv:2512.02556, section 2.1; AMD Instinct MI300 ISA, section 7 (matrix layouts).
//
// The ATTEST_FAULT_ blocks are planted defects; device/kernels/faults/ says what each imitates.

#include "device/contracts/attest/indexer_logits_args.h"
#include "device/kernels/gfx9.h"

namespace attest::kernels {

using contract::IndexerLogitsArgs;

constexpr int head_dim = 128;
constexpr int k_steps = head_dim / 32;
typedef std::uint32_t u32x2_by4 __attribute__((ext_vector_type(2), aligned(4)));

struct KeyPlace {
  const char* values;
  const float* scale;
};

__device__ inline long operand8(const char* from) {
  const u32x2 words = *reinterpret_cast<const u32x2_by4*>(from);
  return __builtin_bit_cast(long, words);
}

struct GatheredKeys {
  const IndexerLogitsArgs& args;
  __device__ KeyPlace operator()(int column) const {
    return {static_cast<const char*>(args.keys) + std::int64_t{column} * head_dim, args.k_scale + column};
  }
};

struct PagedKeys {
  const IndexerLogitsArgs& args;
  const std::int32_t* table;
  __device__ KeyPlace operator()(int position) const {
    const int block = position / args.page_size;
#if defined(ATTEST_FAULT_BLOCK_OFFSET_DROPPED)
    const int offset = 0;
#else
    const int offset = position - block * args.page_size;
#endif
    const std::uint32_t page = static_cast<std::uint32_t>(table[block]);
#if defined(ATTEST_FAULT_OFFSET_32BIT)
    const std::uint64_t at = page * static_cast<std::uint32_t>(args.page_stride);
#else
    const std::uint64_t at = page * args.page_stride;
#endif
    const char* base = static_cast<const char*>(args.keys) + at;
#if defined(ATTEST_FAULT_INTERLEAVED)
    const char* values = base + offset * (head_dim + 4);
    return {values, reinterpret_cast<const float*>(values + head_dim)};
#else
    const char* scales = base + std::int64_t{args.page_size} * head_dim;
#if defined(ATTEST_FAULT_NEIGHBOUR_SCALE)
    const int of = offset > 0 ? offset - 1 : args.page_size > 1 ? 1 : 0;
#else
    const int of = offset;
#endif
    return {base + std::int64_t{offset} * head_dim, reinterpret_cast<const float*>(scales) + of};
#endif
  }
};

template <typename Keys>
__device__ void indexer_logits(const IndexerLogitsArgs& args, int row, int begin, int end,
                               const Keys& key_at) {
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 64;
  const int i = lane % 16;
  const int g = lane / 16;
  const int first = static_cast<int>(blockIdx.y) * contract::indexer_tile + 16 * uniform(thread / 64);
  float* logits = args.logits + std::int64_t{row} * args.width;

  if (first + 16 <= begin || first >= end || end <= begin) {
    if (lane < 16 && first + lane < args.width) logits[first + lane] = -__builtin_inff();
    return;
  }

  long k[k_steps];
  {
    const KeyPlace key = key_at(min(max(first + i, begin), end - 1));
    for (int step = 0; step < k_steps; ++step) k[step] = operand8(key.values + 32 * step + 8 * g);
  }

  const char* q_row = static_cast<const char*>(args.q) + std::int64_t{row} * args.heads * head_dim;
  const float* weights = args.weights + std::int64_t{row} * args.heads;
  [[maybe_unused]] const float* q_scale = args.q_scale + std::int64_t{row} * args.heads;
  f32x4 sum = {};
  for (int tile = 0; tile < args.heads; tile += 16) {
    const int head = min(tile + i, args.heads - 1);
    const char* q = q_row + head * head_dim;
    f32x4 dots = {};
    for (int step = 0; step < k_steps; ++step)
      dots =
          __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(k[step], operand8(q + 32 * step + 8 * g), dots, 0, 0, 0);
#if defined(ATTEST_FAULT_WEIGHT_SCALE_MISSING)
    const float of_head = weights[head];
#else
    const float of_head = weights[head] * q_scale[head];
#endif
    const float weight = tile + i < args.heads ? of_head : 0.0F;
    for (int r = 0; r < 4; ++r) {
#if defined(ATTEST_FAULT_RELU_MISSING)
      sum[r] += weight * dots[r];
#else
      sum[r] += weight * fmaxf(dots[r], 0.0F);
#endif
    }
  }
  for (int r = 0; r < 4; ++r) {
    float x = sum[r];
    x += exchange_xor<1>(x);
    x += exchange_xor<2>(x);
    x += exchange_xor<4>(x);
    x += exchange_xor<8>(x);
    sum[r] = x;
  }

  // Lane (i, g) with i < 4 writes key 4g + i.
  const int column = first + 4 * g + i;
  if (i >= 4 || column >= args.width) return;
  const float mine = i == 0 ? sum[0] : i == 1 ? sum[1] : i == 2 ? sum[2] : sum[3];
  float logit = -__builtin_inff();
  if (column >= begin && column < end) {
    logit = mine * *key_at(column).scale;
#if defined(ATTEST_FAULT_FNUZ_AS_OCP)
    logit *= 2.0F;  // the same byte is twice as much with the other bias
#endif
  }
  logits[column] = logit;
}

}  // namespace attest::kernels

extern "C" __global__ __launch_bounds__(attest::contract::indexer_threads) void indexer_logits_prefill(
    attest::contract::IndexerLogitsArgs args) {
  const int row = static_cast<int>(blockIdx.x);
#if defined(ATTEST_FAULT_ROW_START_IGNORED)
  const int begin = 0;
#else
  const int begin = args.row_begin[row];
#endif
  attest::kernels::indexer_logits(args, row, begin, args.row_end[row], attest::kernels::GatheredKeys{args});
}

extern "C" __global__ __launch_bounds__(attest::contract::indexer_threads) void indexer_logits_decode(
    attest::contract::IndexerLogitsArgs args) {
  const int row = static_cast<int>(blockIdx.x);
#if defined(ATTEST_FAULT_ODD_NEXT_N)
  // Rows in pairs, as if every request had an even number of them.
  const int pairs = (args.next_n + 1) / 2;
  const int request = min(row / 2 / pairs, static_cast<int>(gridDim.x) / args.next_n - 1);
#else
  const int request = row / args.next_n;
#endif
  const int end = args.kv_lens[request] - args.next_n + (row - row / args.next_n * args.next_n) + 1;
  const attest::kernels::PagedKeys keys{args, args.block_table + std::int64_t{request} * args.table_stride};
  attest::kernels::indexer_logits(args, row, 0, end, keys);
}
