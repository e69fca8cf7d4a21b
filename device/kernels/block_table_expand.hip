// SPDX-License-Identifier: MIT
//
// Block tables of a serving engine, expanded to the token-level lists of an attention kernel with pages of
// one token. The launches and their order are in block_table_expand_args.h.
//
// Everything follows from two prefix sums over the requests, and those from the lengths, which padding may
// change: with q_len u > 1 in every live request, padded ones get u queries and u keys, so that no row the
// attention computes is without a key. Whether that holds is one reduction over the batch
// (`dummy_query_len`). A captured graph calls this with the same pointers and other contents each time:
// nothing may survive from the last batch, so the tail of kv_indices is written every time, and the indptrs
// to their very end.
//
// Slots: token t of request r lies in kernel block K_r[t / K], whose first slot is K times its id. Division
// by the block sizes is by a uniform divisor and stays outside of the inner loop where it can.
//
// Source: vllm-project/vllm#39616 and #45227, the behaviour described there.

#include "device/contracts/attest/block_table_expand_args.h"
#include "device/kernels/gfx9.h"

namespace attest::kernels {

using contract::BlockTableExpandArgs;
constexpr int threads = contract::block_table_threads;

/// Inclusive prefix sum over the workgroup (Hillis and Steele, 1986). `sums` is LDS of `threads` words.
__device__ inline int scan(int value, int* sums) {
  const int me = static_cast<int>(threadIdx.x);
  sums[me] = value;
  __syncthreads();
  for (int distance = 1; distance < threads; distance *= 2) {
    const int left = me >= distance ? sums[me - distance] : 0;
    __syncthreads();
    sums[me] += left;
    __syncthreads();
  }
  return sums[me];
}

/// The q_len padded requests take, 0 for none. `state` is LDS of four words.
__device__ inline int dummy_query_len(const BlockTableExpandArgs& args, int* state) {
  int& shortest = state[0];
  int& longest = state[1];
  int& last_live = state[2];
  int& first_padded = state[3];
  if (threadIdx.x == 0) {
    shortest = 0x7fffffff;
    longest = 0;
    last_live = -1;
    first_padded = args.rows;
  }
  __syncthreads();
  for (int row = static_cast<int>(threadIdx.x); row < args.rows; row += threads) {
    const int q_len = args.query_start_loc[row + 1] - args.query_start_loc[row];
    if (q_len > 0) {
      atomicMin(&shortest, q_len);
      atomicMax(&longest, q_len);
      atomicMax(&last_live, row);
    } else {
      atomicMin(&first_padded, row);
    }
  }
  __syncthreads();
  const int u = args.num_tokens / args.rows;
  if (u <= 1 || u * args.rows != args.num_tokens) return 0;
  if (args.num_tokens <= args.query_start_loc[args.rows] || last_live > first_padded) return 0;
  return last_live < 0 || (shortest == u && longest == u) ? u : 0;
}

__device__ void prepare(const BlockTableExpandArgs& args) {
  __shared__ int sums[threads];
  __shared__ int state[4];
  const int dummy = dummy_query_len(args, state);
  int queries_before = 0;
  int tokens_before = 0;
  for (int first = 0; first < args.max_requests; first += threads) {
    const int row = first + static_cast<int>(threadIdx.x);
    int queries = 0;
    int length = 0;
    if (row < args.rows) {
      queries = args.query_start_loc[row + 1] - args.query_start_loc[row];
      length = args.seq_lens[row];
      if (queries == 0 && dummy > 0) {
        queries = dummy;
#if !defined(ATTEST_FAULT_DUMMY_ROWS_EMPTY)
        length = dummy;
#endif
      }
#if defined(ATTEST_FAULT_QO_INDPTR_ARANGE)
      queries = 1;
#elif defined(ATTEST_FAULT_OFFSETS_RUN_ON)
      if (queries == 0 && length == 0) queries = length = 1;
#endif
      args.scratch[row] = length;
    }
    const int queries_here = queries_before + scan(queries, sums);
    queries_before += sums[threads - 1];
    __syncthreads();
    const int tokens_here = tokens_before + scan(length, sums);
    tokens_before += sums[threads - 1];
    __syncthreads();
    if (row < args.max_requests) {
      args.qo_indptr[row + 1] = queries_here;
      args.kv_indptr[row + 1] = tokens_here;
#if defined(ATTEST_FAULT_LAST_PAGE_LEN)
      args.last_page_len[row] = length == 0 ? 1 : (length - 1) % args.manager_block + 1;
#else
      args.last_page_len[row] = 1;
#endif
    }
  }
  if (threadIdx.x == 0) args.qo_indptr[0] = args.kv_indptr[0] = 0;
}

__device__ inline int length_of(const BlockTableExpandArgs& args, int row) {
#if defined(ATTEST_FAULT_STATE_ON_BUILDER)
  return args.scratch[row];
#else
  return args.kv_indptr[row + 1] - args.kv_indptr[row];
#endif
}

__device__ void map(const BlockTableExpandArgs& args) {
  const int row = static_cast<int>(blockIdx.y);
  const int ratio = args.manager_block / args.kernel_block;
  const int blocks = (length_of(args, row) + args.kernel_block - 1) / args.kernel_block;
  const std::int32_t* from = args.block_table + std::int64_t{row} * args.table_width;
  std::int32_t* to = args.kernel_block_table + std::int64_t{row} * args.table_width * ratio;
  const int stride = static_cast<int>(gridDim.x) * threads;
  for (int i = static_cast<int>(blockIdx.x * threads + threadIdx.x); i < blocks; i += stride) {
    const int column = i / ratio;
    const int block = from[column] < 0 ? 0 : from[column];
#if defined(ATTEST_FAULT_BLOCK_RATIO_MISSING)
    to[i] = block + (i - column * ratio);
#else
    to[i] = block * ratio + (i - column * ratio);
#endif
  }
}

__device__ void fill(const BlockTableExpandArgs& args) {
  const int row = static_cast<int>(blockIdx.y);
  const int stride = static_cast<int>(gridDim.x) * threads;
  const int first = static_cast<int>(blockIdx.x * threads + threadIdx.x);
  if (row == args.rows) {
#if !defined(ATTEST_FAULT_STALE_TAIL)
    for (int i = args.kv_indptr[row] + first; i < args.index_capacity; i += stride) args.kv_indices[i] = -1;
#endif
    return;
  }
  const int length = length_of(args, row);
  const int ratio = args.manager_block / args.kernel_block;
  const std::int32_t* blocks = args.kernel_block_table + std::int64_t{row} * args.table_width * ratio;
  std::int32_t* to = args.kv_indices + args.kv_indptr[row];
  for (int t = first; t < length; t += stride) {
#if defined(ATTEST_FAULT_BLOCK_SIZE_ONE)
    to[t] = blocks[t];
#else
    const int block = t / args.kernel_block;
    to[t] = blocks[block] * args.kernel_block + (t - block * args.kernel_block);
#endif
  }
}

}  // namespace attest::kernels

extern "C" __global__ __launch_bounds__(256) void block_table_prepare(
    attest::contract::BlockTableExpandArgs args) {
  attest::kernels::prepare(args);
}
extern "C" __global__ __launch_bounds__(256) void block_table_map(
    attest::contract::BlockTableExpandArgs args) {
  attest::kernels::map(args);
}
extern "C" __global__ __launch_bounds__(256) void block_table_fill(
    attest::contract::BlockTableExpandArgs args) {
  attest::kernels::fill(args);
}
