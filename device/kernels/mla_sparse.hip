// SPDX-License-Identifier: MIT
//
// Sparse MLA attention for gfx942 (CDNA3): every query token attends to its own list of cache slots, as the
// indexer of DeepSeek-V3.2 selects them.
//
// Rows. Tokens share no keys, so a workgroup takes 16 heads of one token; with 8 heads half of the matrix
// rows repeat the last head and are not stored. What the 16 rows do with the keys is in mla_rows.h.
//
// Lists. Entry e of a token is slot indices[token * topk + e], for e below lengths[token]; what lies behind
// must not be looked at. An entry that is no slot of the pool is a hole, wherever it stands: it is not
// fetched, since there may be nothing to fetch, and its score is -inf. So a tile may have no key at all, the
// first one too, and the running maximum may still be -inf when a tile has been done.
//
// The ds layout. A row is 512 fp8, four f32 scales and 64 bf16. Staging multiplies by the scale of the 128
// columns and rounds to bf16; chunk n of a thread is in scale n / 2, for every thread.
//
// Splits. As in mla_decode: split z of n takes ceil(tiles / n) tiles of the list, holes included.
//
// Sources: DeepSeek-V3.2-Exp (sparse attention); deepseek-ai/FlashMLA (list and layout conventions).
//
// The ATTEST_FAULT_ blocks are planted defects, one per build variant; device/kernels/faults/ says what
// each imitates.

#include "device/contracts/attest/mla_sparse_args.h"
#include "device/kernels/mla_rows.h"

namespace attest::kernels {

using contract::MlaSparseArgs;

/// fp8 on its way to bf16, times a factor.
__device__ inline u32x4 scaled_bf16_from_fp8(u32x2 fp8, float scale) {
  u32x4 bf16;
  for (int word = 0; word < 2; ++word) {
    const f32x2 low = __builtin_amdgcn_cvt_pk_f32_fp8(static_cast<int>(fp8[word]), false);
    const f32x2 high = __builtin_amdgcn_cvt_pk_f32_fp8(static_cast<int>(fp8[word]), true);
    bf16[2 * word] = pack_bf16(low.x * scale, low.y * scale);
    bf16[2 * word + 1] = pack_bf16(high.x * scale, high.y * scale);
  }
  return bf16;
}

/// Rows of the 656-byte layout, as PlainRows.
struct DsRows {
  static constexpr int bytes = contract::ds_row_bytes;
  static constexpr int latent_chunks = contract::kv_lora_rank / chunk / threads_per_row;  // 8
  u32x2 latent[latent_chunks];
  f32x4 scales;
  u32x4 rope;

  __device__ void fetch(const char* row, int c) {
    const auto* from = reinterpret_cast<const u32x2*>(row) + c;
    for (int n = 0; n < latent_chunks; ++n) latent[n] = from[threads_per_row * n];
    scales = *reinterpret_cast<const f32x4*>(row + contract::ds_scales_offset);
#if defined(ATTEST_FAULT_DS_ROPE_OFFSET)
    constexpr int rope_offset = contract::ds_scales_offset;
#else
    constexpr int rope_offset = contract::ds_rope_offset;
#endif
    rope = reinterpret_cast<const u32x4*>(row + rope_offset)[c];
  }
  __device__ void clear() {
    for (int n = 0; n < latent_chunks; ++n) latent[n] = {};
    scales = {};
    rope = {};
  }
  __device__ u32x4 to_bf16(int n) const {
    if (n == latent_chunks) return rope;
#if defined(ATTEST_FAULT_FNUZ_AS_OCP)
    return scaled_bf16_from_fp8(latent[n], 2.0F * scales[n / 2]);
#elif defined(ATTEST_FAULT_DS_FIRST_SCALE)
    return scaled_bf16_from_fp8(latent[n], scales[0]);
#else
    return scaled_bf16_from_fp8(latent[n], scales[n / 2]);
#endif
  }
};

#if defined(ATTEST_FAULT_FNUZ_AS_OCP)
/// Bias 7 where the bytes have 8: twice the value.
struct Fp8Cache : Fp8 {
  __device__ static u32x4 to_bf16(Chunk fp8) { return scaled_bf16_from_fp8(fp8, 2.0F); }
};
#else
using Fp8Cache = Fp8;
#endif

/// The slots of a query token's list.
template <int row_bytes>
struct ListedKeys {
  static constexpr bool holes = true;
  const char* pool;
  const std::int32_t* list;
  std::uint32_t page_stride;
  int page_size;
  int num_slots;
  int end;  ///< of the range of this split

  __device__ const char* row(int entry) const {
    if (entry >= end) return nullptr;
#if defined(ATTEST_FAULT_HOLES_SLOT_ZERO)
    int slot = list[entry];
    if (slot < 0 || slot >= num_slots) slot = 0;
#else
    const int slot = list[entry];
    if (slot < 0 || slot >= num_slots) return nullptr;
#endif
#if defined(ATTEST_FAULT_PAGE_PADDING_IGNORED)
    return pool + std::int64_t{slot} * row_bytes;
#else
    const int page = divide(slot, page_size);
    const std::uint32_t in_page = static_cast<std::uint32_t>(slot - page * page_size) * row_bytes;
#if defined(ATTEST_FAULT_OFFSET_32BIT)
    const std::uint32_t offset = static_cast<std::uint32_t>(page) * page_stride + in_page;
#else
    const std::uint64_t offset = std::uint64_t{static_cast<std::uint32_t>(page)} * page_stride + in_page;
#endif
    return pool + offset;
#endif
  }
  __device__ bool visible(int entry) const { return entry < end; }
};

template <typename Q, typename KV>
__device__ void mla_sparse(const MlaSparseArgs& args) {
  __shared__ Shared shared;
  const int token = static_cast<int>(blockIdx.y);
  const int split = static_cast<int>(blockIdx.z);
  if (args.total_rows != nullptr && token >= *args.total_rows) return;

#if defined(ATTEST_FAULT_TRAILING_IDS)
  const int length = args.topk;
#else
  const int length = args.lengths[token];
#endif
#if defined(ATTEST_FAULT_LIST_STRIDE)
  // Rows packed by the longest list of this batch, where the buffer has them at its full width.
  int width = 0;
  for (int t = 0; t < static_cast<int>(gridDim.y); ++t) width = max(width, args.lengths[t]);
#else
  const int width = args.topk;
#endif
  const std::int32_t* list = args.indices + std::int64_t{token} * width;

  const int first_head = static_cast<int>(blockIdx.x) * rows_per_group;
  const int head = first_head + static_cast<int>(threadIdx.x) % 16;
  const std::int64_t first_row = std::int64_t{token} * args.heads;
  const RowsOut rows{args.out,        args.lse, args.partial_out, args.partial_lse,
                     args.num_splits, split,    first_row + head, head < args.heads};

  const int tiles = divide(length + tile_tokens - 1, tile_tokens);
  const int split_tiles = divide(tiles + args.num_splits - 1, args.num_splits);
  const int begin = split * split_tiles * tile_tokens;
  const int end = min(length, (split + 1) * split_tiles * tile_tokens);
  if (begin >= end) return rows.write_empty();

  const ListedKeys<KV::bytes> keys{
      static_cast<const char*>(args.kv_pool), list, args.page_stride, args.page_size, args.num_slots, end};
  const char* q =
      static_cast<const char*>(args.q) + (first_row + min(head, args.heads - 1)) * (row_width * Q::bytes);
  attend<Q, KV>(shared, q, keys, begin, end, args.score_scale, args.out_scale, rows);
}

}  // namespace attest::kernels

extern "C" __global__ __launch_bounds__(attest::contract::threads,
                                        2) void mla_sparse_bf16_bf16(attest::contract::MlaSparseArgs args) {
  using namespace attest::kernels;
  mla_sparse<Bf16, PlainRows<Bf16>>(args);
}
extern "C" __global__ __launch_bounds__(attest::contract::threads,
                                        2) void mla_sparse_bf16_fp8(attest::contract::MlaSparseArgs args) {
  using namespace attest::kernels;
  mla_sparse<Bf16, PlainRows<Fp8Cache>>(args);
}
extern "C" __global__ __launch_bounds__(attest::contract::threads,
                                        2) void mla_sparse_fp8_fp8(attest::contract::MlaSparseArgs args) {
  using namespace attest::kernels;
  mla_sparse<Fp8, PlainRows<Fp8Cache>>(args);
}
extern "C" __global__ __launch_bounds__(attest::contract::threads,
                                        2) void mla_sparse_bf16_ds(attest::contract::MlaSparseArgs args) {
  using namespace attest::kernels;
  mla_sparse<Bf16, DsRows>(args);
}
