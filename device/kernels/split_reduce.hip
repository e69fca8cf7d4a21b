// SPDX-License-Identifier: MIT
//
// Stage 2 of split-KV decode: merges the splits of each row into its output and log-sum-exp.
//
// A split s of a row holds o_s, its output normalised over its own keys, and lse_s, the natural logarithm of
// the sum of its exponentials. The whole row is then
//
//   M = max_s lse_s,  w_s = exp(lse_s - M),  W = sum_s w_s
//   out = sum_s w_s o_s / W,   lse = M + ln W
//
// A split that saw no key has lse_s = -inf and is left out altogether: its weight is zero, but what an
// earlier stage may have left in o_s is not promised to be finite. When every split is empty so is the row:
// out 0, lse -inf, and no -inf minus -inf.
//
// One wave per row. Lane s holds the weight of split s, so maximum and sum are five exchanges among 32 lanes;
// then all lanes walk the splits together, eight of the 512 columns each, with the weight broadcast from its
// lane.
//
// Source: FlashAttention, arXiv:2205.14135, section 3.1 (merging softmax statistics); Flash-Decoding.

#include "device/contracts/attest/mla_decode_args.h"
#include "device/kernels/gfx9.h"

namespace attest::kernels {

constexpr int columns_per_lane = contract::kv_lora_rank / 64;

__device__ void split_reduce(const contract::SplitReduceArgs& args) {
  const int wave = uniform(static_cast<int>(threadIdx.x) / 64);
  const int lane = static_cast<int>(threadIdx.x) % 64;
  const int row = static_cast<int>(blockIdx.x) * contract::rows_per_reduce + wave;
  if (row >= args.rows) return;
#if defined(ATTEST_FAULT_SPLIT_FORGOTTEN)
  const int splits = args.num_splits - 1;
#else
  const int splits = args.num_splits;
#endif

  const std::int64_t first = std::int64_t{row} * args.num_splits;
  float lse = -__builtin_inff();
  if (lane < splits) lse = args.partial_lse[first + lane];

  float max = lse;
  max = fmaxf(max, exchange_xor<1>(max));
  max = fmaxf(max, exchange_xor<2>(max));
  max = fmaxf(max, exchange_xor<4>(max));
  max = fmaxf(max, exchange_xor<8>(max));
  max = fmaxf(max, exchange_xor<16>(max));

  const float origin = max == -__builtin_inff() ? 0.0F : max;
  const float weight = exp2_hw((lse - origin) * log2_e);
  float sum = weight;
  sum += exchange_xor<1>(sum);
  sum += exchange_xor<2>(sum);
  sum += exchange_xor<4>(sum);
  sum += exchange_xor<8>(sum);
  sum += exchange_xor<16>(sum);

  const float* part = args.partial_out + first * contract::kv_lora_rank + columns_per_lane * lane;
  f32x4 low = {};
  f32x4 high = {};
  for (int split = 0; split < splits; ++split, part += contract::kv_lora_rank) {
    const float split_weight = from_lane(weight, split);
    if (split_weight == 0.0F) continue;
    low += split_weight * reinterpret_cast<const f32x4*>(part)[0];
    high += split_weight * reinterpret_cast<const f32x4*>(part)[1];
  }

  // Lanes 32.. added up 32 zeros; every lane takes what the first one has.
  const float total = from_lane(sum, 0);
  const float normalise = total == 0.0F ? 0.0F : 1.0F / total;
  low *= normalise;
  high *= normalise;
  auto* out = static_cast<std::uint16_t*>(args.out) + std::int64_t{row} * contract::kv_lora_rank;
  reinterpret_cast<u32x4*>(out)[lane] = {pack_bf16(low[0], low[1]), pack_bf16(low[2], low[3]),
                                         pack_bf16(high[0], high[1]), pack_bf16(high[2], high[3])};
  if (lane == 0 && args.lse != nullptr) {
    args.lse[row] = total == 0.0F ? -__builtin_inff() : max + log2_hw(total) * ln_2;
  }
}

}  // namespace attest::kernels

extern "C" __global__ __launch_bounds__(attest::contract::threads) void split_reduce(
    attest::contract::SplitReduceArgs args) {
  attest::kernels::split_reduce(args);
}
