// SPDX-License-Identifier: MIT
//
// A persistent schedule, made, run and merged (the lists are in work_plan_args.h).
//
// Planning. The rows of each request are cut into tiles of what one work can hold, the keys that a tile sees
// into blocks of the granularity; all blocks in order are dealt out to the workgroups in equal shares. Where
// a share ends inside a tile the tile is split, and merged later. A tile that is one piece is written to its
// final place. This is a loop over a few hundred entries with a carried state: one lane does it, as one lane
// does in AITER's planner.
//
// Reuse. A plan depends on every length of the batch and on nothing else that changes between calls. So it is
// kept together with all of them, in the same memory, and made again unless they are all the same: a plan
// cannot outlive its key, and no two batches share one.
//
// Running. Under a causal bound a piece may lie behind what its first rows see. Such a row has no key in the
// piece: its partial is (0, -inf), and the loop goes on to the next row and the next work.
//
// Source: the design of AITER's persistent MLA decode (ROCm/aiter, csrc/kernels/mla/metadata) as far as the
// lists go; the planner is our own.

#include "device/contracts/attest/work_plan_args.h"
#include "device/kernels/gfx9.h"

namespace attest::kernels {

using contract::WorkPlanArgs;
constexpr float minus_infinity = -__builtin_inff();

__device__ inline int ceil_div(int a, int b) {
  return (a + b - 1) / b;
}

/// One lane.
__device__ bool plan_is_current(const WorkPlanArgs& args) {
#if defined(ATTEST_FAULT_WEAK_KEY)
  int longest = 0;
  for (int r = 0; r < args.batch; ++r) longest = max(longest, args.kv_indptr[r + 1] - args.kv_indptr[r]);
  const bool same =
      args.header[contract::plan_key] == args.batch && args.header[contract::plan_key + 1] == longest;
  args.header[contract::plan_key] = args.batch;
  args.header[contract::plan_key + 1] = longest;
  return same;
#else
  std::int32_t* key = args.header + contract::plan_key;
  bool same = key[0] == args.batch;
  key[0] = args.batch;
  for (int i = 0; i <= args.batch; ++i) {
    std::int32_t* entry = key + 1 + 2 * i;
    same = same && entry[0] == args.qo_indptr[i] && entry[1] == args.kv_indptr[i];
    entry[0] = args.qo_indptr[i];
    entry[1] = args.kv_indptr[i];
  }
#if defined(ATTEST_FAULT_MEMO_OUTLIVES_PLAN)
  std::uint32_t hash = 2166136261U;
  for (int i = 0; i <= args.batch; ++i)
    hash = ((hash ^ static_cast<std::uint32_t>(args.qo_indptr[i])) * 16777619U ^
            static_cast<std::uint32_t>(args.kv_indptr[i])) *
           16777619U;
  same = args.memo[0] == static_cast<int>(hash) && args.memo[1] == args.batch;
  args.memo[0] = static_cast<int>(hash);
  args.memo[1] = args.batch;
#endif
  return same;
#endif
}

/// Keys that the last row of [first, last) of a request sees.
__device__ inline int visible_keys(const WorkPlanArgs& args, int q_len, int kv_len, int last) {
  const int visible = args.causal != 0 ? kv_len - (q_len - last) : kv_len;
  return visible < 0 ? 0 : visible;
}

__device__ void build(const WorkPlanArgs& args) {
  if (threadIdx.x != 0 || plan_is_current(args)) return;
  int longest = 0;
  std::int64_t blocks = 0;
  for (int r = 0; r < args.batch; ++r) {
    const int q_len = args.qo_indptr[r + 1] - args.qo_indptr[r];
    const int kv_len = args.kv_indptr[r + 1] - args.kv_indptr[r];
    longest = max(longest, q_len);
    for (int first = 0; first < q_len; first += args.tile_tokens)
      blocks +=
          ceil_div(visible_keys(args, q_len, kv_len, min(first + args.tile_tokens, q_len)), args.granularity);
  }
#if defined(ATTEST_FAULT_QLEN_GATE_MISSING)
  const bool persistent = true;
#else
  const bool persistent = longest <= args.persistent_q_len;
#endif
  const int share = max(1, static_cast<int>((blocks + args.slots - 1) / args.slots));
  int slot = 0, left = share, works = 0, partial_row = 0, pieces = 0, merged = 0;
  args.work_indptr[0] = 0;
  args.reduce_indptr[0] = 0;
  for (int r = 0; r < args.batch && persistent; ++r) {
    const int q_len = args.qo_indptr[r + 1] - args.qo_indptr[r];
    const int kv_begin = args.kv_indptr[r];
    const int kv_len = args.kv_indptr[r + 1] - kv_begin;
#if defined(ATTEST_FAULT_QLEN_GATE_MISSING)
    const int tile_tokens = longest <= args.persistent_q_len ? args.tile_tokens : q_len;
#else
    const int tile_tokens = args.tile_tokens;
#endif
    for (int first = 0; first < q_len; first += tile_tokens) {
      const int last = min(first + tile_tokens, q_len);
      const int visible = visible_keys(args, q_len, kv_len, last);
      const int needed = ceil_div(visible, args.granularity);
      bool split = needed == 0;
      for (int done = 0; done < needed;) {
        if (left == 0) {
          args.work_indptr[++slot] = works;
          left = share;
        }
        const int taken = min(left, needed - done);
        split = taken < needed;
        std::int32_t* work = args.work_info_set + 8 * works++;
        work[0] = r;
        work[1] = split ? partial_row : -1;
        work[2] = args.qo_indptr[r] + first;
        work[3] = args.qo_indptr[r] + last;
        work[4] = kv_begin + done * args.granularity;
        work[5] = kv_begin + min((done + taken) * args.granularity, visible);
        work[6] = kv_begin + kv_len - work[5];
        work[7] = 0;
        if (split) {
          args.reduce_partial_map[pieces++] = partial_row;
          partial_row += last - first;
        }
        done += taken;
        left -= taken;
      }
      if (split) {
        args.reduce_final_map[2 * merged] = args.qo_indptr[r] + first;
        args.reduce_final_map[2 * merged + 1] = args.qo_indptr[r] + last;
        args.reduce_indptr[++merged] = pieces;
      }
    }
  }
  for (int s = slot + 1; s <= args.slots; ++s) args.work_indptr[s] = works;
  for (int t = merged + 1; t <= args.max_tiles; ++t) args.reduce_indptr[t] = pieces;
  args.header[contract::plan_persistent] = persistent ? 1 : 0;
  args.header[contract::plan_works] = works;
  args.header[contract::plan_merged_tiles] = merged;
  args.header[contract::plan_pieces] = pieces;
}

/// Row `row` of request `r` over keys [begin, end) and no further than it sees. Lane = column. False: no key.
__device__ bool attend(const WorkPlanArgs& args, int r, int row, int begin, int end, float& out, float& lse) {
  const int after = args.qo_indptr[r + 1] - row - 1;  // query rows behind this one
  const int bound = args.causal != 0 ? args.kv_indptr[r + 1] - after : args.kv_indptr[r + 1];
  end = min(end, bound);
  float sum = 0.0F;
  float accumulated = 0.0F;
  for (int key = begin; key < end; ++key) {
    const float weight = exp2_hw(static_cast<float>(args.scores[key]));
    sum += weight;
    accumulated +=
        weight * args.values[std::int64_t{key} * contract::plan_columns + static_cast<int>(threadIdx.x)];
  }
  const bool any = end > begin;
  out = any ? accumulated / sum : 0.0F;
#if defined(ATTEST_FAULT_EMPTY_SPLIT_LSE_ZERO)
  lse = any ? log2_hw(sum) * ln_2 : 0.0F;
#else
  lse = any ? log2_hw(sum) * ln_2 : minus_infinity;
#endif
  return any;
}

__device__ inline void store(float* out, float* lse, int row, float value, float row_lse) {
  out[std::int64_t{row} * contract::plan_columns + static_cast<int>(threadIdx.x)] = value;
  if (threadIdx.x == 0) lse[row] = row_lse;
}

/// Rows dealt out one by one: any q_len, no splits.
__device__ void run_without_plan(const WorkPlanArgs& args) {
  int r = 0;
  for (int row = static_cast<int>(blockIdx.x); row < args.qo_indptr[args.batch]; row += args.slots) {
    while (row >= args.qo_indptr[r + 1]) ++r;
    float out, lse;
    const bool any = attend(args, r, row, args.kv_indptr[r], args.kv_indptr[r + 1], out, lse);
    store(args.out, args.lse, row, out, any ? lse : minus_infinity);
  }
}

__device__ void run(const WorkPlanArgs& args) {
  if (args.header[contract::plan_persistent] == 0) return run_without_plan(args);
  const int slot = static_cast<int>(blockIdx.x);
  const int last = args.work_indptr[slot + 1];
  for (int w = args.work_indptr[slot]; w < last; ++w) {
    const std::int32_t* work = args.work_info_set + 8 * w;
    const int rows = min(work[3] - work[2], args.tile_tokens);
    for (int i = 0; i < rows; ++i) {
      float out, lse;
      const bool any = attend(args, work[0], work[2] + i, work[4], work[5], out, lse);
#if defined(ATTEST_FAULT_EMPTY_WORK_ENDS)
      if (!any) return;
#else
      (void)any;
#endif
      if (work[1] < 0)
        store(args.out, args.lse, work[2] + i, out, lse);
      else
        store(args.partial_out, args.partial_lse, work[1] + i, out, lse);
    }
  }
}

__device__ void merge(const WorkPlanArgs& args) {
  const int tile = static_cast<int>(blockIdx.x);
  if (args.header[contract::plan_persistent] == 0 || tile >= args.header[contract::plan_merged_tiles]) return;
  const int begin = args.reduce_indptr[tile];
  int end = args.reduce_indptr[tile + 1];
#if defined(ATTEST_FAULT_SIXTEENTH_SPLIT_SKIPPED)
  if (end - begin == 16) --end;
#endif
  const int first = args.reduce_final_map[2 * tile];
  for (int row = first; row < args.reduce_final_map[2 * tile + 1]; ++row) {
    float most = minus_infinity;
    for (int i = begin; i < end; ++i)
      most = fmaxf(most, args.partial_lse[args.reduce_partial_map[i] + row - first]);
    if (most == minus_infinity) {
      store(args.out, args.lse, row, 0.0F, minus_infinity);
      continue;
    }
    float sum = 0.0F;
    float out = 0.0F;
    for (int i = begin; i < end; ++i) {
      const std::int64_t partial = args.reduce_partial_map[i] + row - first;
      const float weight = exp2_hw((args.partial_lse[partial] - most) * log2_e);
      if (weight == 0.0F) continue;
      sum += weight;
      out += weight * args.partial_out[partial * contract::plan_columns + static_cast<int>(threadIdx.x)];
    }
    store(args.out, args.lse, row, out / sum, most + log2_hw(sum) * ln_2);
  }
}

}  // namespace attest::kernels

extern "C" __global__ __launch_bounds__(64) void work_plan_build(attest::contract::WorkPlanArgs args) {
  attest::kernels::build(args);
}
extern "C" __global__ __launch_bounds__(64) void work_plan_run(attest::contract::WorkPlanArgs args) {
  attest::kernels::run(args);
}
extern "C" __global__ __launch_bounds__(64) void work_plan_merge(attest::contract::WorkPlanArgs args) {
  attest::kernels::merge(args);
}
