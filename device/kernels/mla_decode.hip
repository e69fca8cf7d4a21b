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
// Splits. Split z of n takes ceil(tiles / n) tiles. With more than one split, each writes its normalised
// output and its natural-log LSE in fp32 and split_reduce.hip merges them; a split without a visible key
// writes 0 and -inf.
//
// What 16 rows do with a stream of keys, the products and the softmax, is in mla_rows.h.
//
// Sources: DeepSeek-V2, arXiv:2405.04434, section 2.1.2 (absorption); Flash-Decoding (splits).
//
// The ATTEST_FAULT_ blocks are planted defects, one per build variant; device/kernels/faults/ says what
// each imitates.

#include "device/kernels/mla_rows.h"

namespace attest::kernels {

using contract::MlaDecodeArgs;

/// The tokens of a request, through its page list.
template <int row_bytes>
struct PagedKeys {
  static constexpr bool holes = false;
  const char* pool;
  const std::int32_t* pages;
  std::uint32_t page_stride;
  int page_size;
  int row_end;

  __device__ const char* row(int token) const {
    const int entry = divide(token, page_size);
    const std::uint32_t page = static_cast<std::uint32_t>(pages[entry]);
    const std::uint32_t in_page = static_cast<std::uint32_t>(token - entry * page_size) * row_bytes;
#if defined(ATTEST_FAULT_OFFSET_32BIT)
    const std::uint32_t offset = page * page_stride + in_page;
#else
    const std::uint64_t offset = std::uint64_t{page} * page_stride + in_page;
#endif
    return pool + offset;
  }
  __device__ bool visible(int token) const { return token < row_end; }
};

template <typename Q, typename KV>
__device__ void mla_decode(const MlaDecodeArgs& args) {
  __shared__ Shared shared;
  const int i = static_cast<int>(threadIdx.x) % 16;
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

  const RowsOut rows_out{args.out,
                         args.lse,
                         args.partial_out,
                         args.partial_lse,
                         args.num_splits,
                         split,
                         std::int64_t{q_begin} * args.heads + row,
                         row < rows};
  if (split_begin >= split_end) return rows_out.write_empty();

  const PagedKeys<PlainRows<KV>::bytes> keys{static_cast<const char*>(args.kv_pool),
                                             args.kv_page_indices + kv_begin, args.page_stride, page_size,
                                             row_end};
  const char* q = static_cast<const char*>(args.q) + std::int64_t{q_row} * (row_width * Q::bytes);
  attend<Q, PlainRows<KV>>(shared, q, keys, split_begin, split_end, args.score_scale, args.out_scale,
                           rows_out);
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
