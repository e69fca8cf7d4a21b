// SPDX-License-Identifier: MIT
//
// The positions of the k largest scores of a row, k up to 2048 of up to millions: a radix selection by one
// workgroup per row.
//
// Problem. Sorting a row moves all of it for the sake of k entries, and a heap of 2048 does not fit a lane.
// A selection only has to find the k-th largest score; then one more pass picks what is above it.
//
// Keys. With the sign bit set for positive floats and all bits flipped for negative ones, unsigned integers
// compare as the floats do, infinities and NaN of either sign included, and no float comparison is needed.
//
// Selection. Four passes, eight bits of the key each from the top. A pass counts, among the keys that agree
// with what is known of the k-th so far, how often each value of the next eight bits occurs (256 counters in
// LDS, one atomic per key). The counters summed from above say in which of them the k-th largest lies and how
// many of its keys are still wanted: the next eight bits, and the next rank. After four passes the key is
// known whole, `threshold`, and `wanted` says how many of the keys equal to it belong to the result.
//
// Collection. In order of position, 256 at a time: what is above the threshold, and of what equals it the
// first `wanted`. Places come from counting: ballots inside a wave, four totals in LDS between waves. So the
// result is ascending and the same in every launch, and no buffer for ties can overflow: ties are counted,
// not stored. (Buffers that do: https://github.com/sgl-project/sglang/issues/36807.) The totals alternate
// between two places, which makes one barrier per 256 keys enough.
//
// A row of k scores or less needs no selection.
//
// Source: Alabi, Blanchard, Gordon, Steinbach, "Fast k-selection algorithms for graphics processing units",
// ACM JEA 17 (2012), radix selection.
//
// The ATTEST_FAULT_ blocks are planted defects; device/kernels/faults/ says what each imitates.

#include "device/contracts/attest/topk_args.h"
#include "device/kernels/gfx9.h"

namespace attest::kernels {

using contract::topk_threads;

constexpr int topk_waves = topk_threads / 64;
constexpr int bins = 256;

struct TopKShared {
  std::uint32_t counts[bins];
  std::uint32_t bin, rank;
  std::uint32_t above[2][topk_waves], equal[2][topk_waves];
};

__device__ inline std::uint32_t key_of(float score) {
  const std::uint32_t b = bits(score);
  return b & 0x80000000u ? ~b : b | 0x80000000u;
}

/// How many of the lanes below this one are set in `mask`.
__device__ inline std::uint32_t lanes_below(std::uint64_t mask) {
  return __builtin_amdgcn_mbcnt_hi(static_cast<std::uint32_t>(mask >> 32),
                                   __builtin_amdgcn_mbcnt_lo(static_cast<std::uint32_t>(mask), 0u));
}

__device__ inline std::uint32_t of_lane(std::uint32_t x, int lane) {
  return static_cast<std::uint32_t>(__builtin_amdgcn_ds_bpermute(4 * lane, static_cast<int>(x)));
}

/// The bin, from the top, in which the `wanted`-th count falls, and its rank inside; by one wave, four bins a
/// lane.
__device__ inline void find_bin(TopKShared& shared, std::uint32_t wanted) {
  const int lane = static_cast<int>(threadIdx.x);
  std::uint32_t count[4];
  std::uint32_t total = 0;
  for (int b = 0; b < 4; ++b) total += count[b] = shared.counts[4 * lane + b];
  std::uint32_t from_here_up = total;
  for (int step = 1; step < 64; step *= 2) {
    const std::uint32_t other = of_lane(from_here_up, lane + step < 64 ? lane + step : lane);
    if (lane + step < 64) from_here_up += other;
  }
  std::uint32_t above = from_here_up - total;
  for (int b = 3; b >= 0; --b) {
    if (above < wanted && wanted <= above + count[b]) {
      shared.bin = static_cast<std::uint32_t>(4 * lane + b);
      shared.rank = wanted - above;
    }
    above += count[b];
  }
}

/// Writes the positions of the k largest of n scores, n > k > 0, `base` added to each.
__device__ void select(TopKShared& shared, const float* scores, int n, int k, int base, std::int32_t* out) {
  const int thread = static_cast<int>(threadIdx.x);
  const int wave = uniform(thread / 64);
  // Past the end there is nothing to read, and nothing to count.
  const auto at = [&](int i) { return key_of(scores[i < n ? i : n - 1]); };
#if defined(ATTEST_FAULT_TAIL_COUNTED)
  const int counted = (n + topk_threads - 1) / topk_threads * topk_threads;
#else
  const int counted = n;
#endif

  std::uint32_t threshold = 0;
  std::uint32_t known = 0;
  std::uint32_t wanted = static_cast<std::uint32_t>(k);
#if defined(ATTEST_FAULT_COARSE_KEY)
  constexpr int last_shift = 16;
#else
  constexpr int last_shift = 0;
#endif
  for (int shift = 24; shift >= last_shift; shift -= 8) {
    shared.counts[thread] = 0;
    __syncthreads();
    for (int i = thread; i < counted; i += topk_threads) {
      const std::uint32_t key = at(i);
      if ((key & known) == threshold)
        __hip_atomic_fetch_add(&shared.counts[key >> shift & 0xffu], 1u, __ATOMIC_RELAXED,
                               __HIP_MEMORY_SCOPE_WORKGROUP);
    }
    __syncthreads();
    if (wave == 0) find_bin(shared, wanted);
    __syncthreads();
    threshold |= shared.bin << shift;
    known |= 0xffu << shift;
    wanted = shared.rank;
    __syncthreads();
  }

  std::uint32_t above_before = 0;
  std::uint32_t equal_before = 0;
  for (int first = 0, turn = 0; first < n; first += topk_threads, turn ^= 1) {
    const int i = first + thread;
    const std::uint32_t key = at(i) & known;
    const bool is_above = i < counted && key > threshold;
    const bool is_equal = i < counted && key == threshold;
    const std::uint64_t above_mask = __builtin_amdgcn_ballot_w64(is_above);
    const std::uint64_t equal_mask = __builtin_amdgcn_ballot_w64(is_equal);
    shared.above[turn][wave] = static_cast<std::uint32_t>(__builtin_popcountll(above_mask));
    shared.equal[turn][wave] = static_cast<std::uint32_t>(__builtin_popcountll(equal_mask));
    __syncthreads();
    std::uint32_t above = above_before + lanes_below(above_mask);
    std::uint32_t equal = equal_before + lanes_below(equal_mask);
    for (int w = 0; w < topk_waves; ++w) {
      if (w < wave) {
        above += shared.above[turn][w];
        equal += shared.equal[turn][w];
      }
      above_before += shared.above[turn][w];
      equal_before += shared.equal[turn][w];
    }
    if (is_above || (is_equal && equal < wanted)) {
      const std::uint32_t place = above + (equal < wanted ? equal : wanted);
#if defined(ATTEST_FAULT_TIE_BUFFER)
      if (is_above || equal < 1024u) out[place] = base + i;
#elif defined(ATTEST_FAULT_TAIL_COUNTED)
      out[place] = base + (i < n ? i : n - 1);
#else
      out[place] = base + i;
#endif
    }
    if (above_before + (equal_before < wanted ? equal_before : wanted) >= static_cast<std::uint32_t>(k))
      break;
  }
}

__device__ void topk(TopKShared& shared, const contract::TopKArgs& args, int row, int begin, int end) {
  const int thread = static_cast<int>(threadIdx.x);
#if defined(ATTEST_FAULT_ROW_START_IGNORED)
  const float* scores = args.logits + row * args.row_stride;
#else
  const float* scores = args.logits + row * args.row_stride + begin;
#endif
  std::int32_t* out = args.positions + std::int64_t{row} * args.k;
  const int n = end > begin ? end - begin : 0;
#if defined(ATTEST_FAULT_ABSOLUTE_COLUMNS)
  const int base = begin;
#else
  const int base = args.absolute != 0 ? begin : 0;
#endif
  if (n <= args.k) {
    for (int i = thread; i < args.k; i += topk_threads) out[i] = i < n ? base + i : -1;
    return;
  }
#if defined(ATTEST_FAULT_ONE_SHORT)
  if (thread == 0) out[args.k - 1] = -1;
  if (args.k > 1) select(shared, scores, n, args.k - 1, base, out);
#elif defined(ATTEST_FAULT_CHUNK_ONLY)
  constexpr int chunk = 2048;
  if (n <= chunk || args.k >= chunk) {
    select(shared, scores, n, args.k, base, out);
    return;
  }
  // Each chunk gives its share, and nobody compares chunks.
  const int chunks = (n + chunk - 1) / chunk;
  int given = 0;
  for (int c = 0; c < chunks; ++c) {
    const int size = min(chunk, n - c * chunk);
    const int share = c + 1 < chunks ? min(args.k / chunks, size) : args.k - given;
    if (share >= size)
      for (int i = thread; i < size; i += topk_threads) out[given + i] = base + c * chunk + i;
    else if (share > 0)
      select(shared, scores + c * chunk, size, share, base + c * chunk, out + given);
    given += min(share, size);
    __syncthreads();
  }
  for (int i = given + thread; i < args.k; i += topk_threads) out[i] = -1;
#else
  select(shared, scores, n, args.k, base, out);
#endif
}

__device__ inline int row_of_group() {
#if defined(ATTEST_FAULT_ROWS_16BIT)
  return static_cast<int>(blockIdx.x & 0xffffu);
#else
  return static_cast<int>(blockIdx.x);
#endif
}

}  // namespace attest::kernels

extern "C" __global__ __launch_bounds__(attest::contract::topk_threads) void topk_prefill(
    attest::contract::TopKArgs args) {
  __shared__ attest::kernels::TopKShared shared;
  const int row = attest::kernels::row_of_group();
  attest::kernels::topk(shared, args, row, args.row_begin[row], args.row_end[row]);
}

extern "C" __global__ __launch_bounds__(attest::contract::topk_threads) void topk_decode(
    attest::contract::TopKArgs args) {
  __shared__ attest::kernels::TopKShared shared;
  const int row = attest::kernels::row_of_group();
  const int request = row / args.next_n;
  const int end = args.kv_lens[request] - args.next_n + (row - request * args.next_n) + 1;
  attest::kernels::topk(shared, args, row, 0, end);
}
