// SPDX-License-Identifier: MIT
//
// Merges partial attention states of the same query rows: chunks of a long context, splits, shards of other
// ranks. For a row with states s of output o_s and log-sum-exp lse_s
//
//   M = max_s lse_s,  w_s = b^(lse_s - M),  W = sum_s w_s
//   out = sum_s w_s o_s / W,   lse = M + log_b W                       b = e, or 2 where the producer uses it
//
// Where this goes wrong in the field is at the edges. A state without keys reports -inf or +inf, depending on
// who wrote it; +inf taken as a number makes it the maximum and every weight NaN. When all states are empty,
// M is -inf, and -inf minus -inf is NaN: such a row is 0 with an lse of -inf. The output of an empty state is
// not read at all: nobody promises that it is finite.
//
// One wave per row. Lane s holds the weight of state s, so maximum and sum are five exchanges among 32 lanes;
// then all lanes walk the states together, two columns each, with the weight broadcast from its lane. Each
// state brings its own strides. A lane reads its columns of all states before it writes them, so the result
// may replace a state.
//
// Source: FlashAttention, arXiv:2205.14135, section 3.1. The ATTEST_FAULT_ blocks are planted defects, one
// per build variant; device/kernels/faults/ says what each imitates.

#include "device/contracts/attest/merge_states_args.h"
#include "device/kernels/gfx9.h"

namespace attest::kernels {

struct PairBf16 {
  __device__ static f32x2 load(const void* base, std::int64_t element) {
    const std::uint32_t pair =
        *reinterpret_cast<const std::uint32_t*>(static_cast<const std::uint16_t*>(base) + element);
    return {__builtin_bit_cast(float, pair << 16), __builtin_bit_cast(float, pair & 0xffff0000u)};
  }
  __device__ static void store(void* base, std::int64_t element, f32x2 value) {
    *reinterpret_cast<std::uint32_t*>(static_cast<std::uint16_t*>(base) + element) =
        pack_bf16(value[0], value[1]);
  }
};
struct PairF32 {
  __device__ static f32x2 load(const void* base, std::int64_t element) {
    const float* at = static_cast<const float*>(base) + element;
    return {at[0], at[1]};
  }
  __device__ static void store(void* base, std::int64_t element, f32x2 value) {
    float* at = static_cast<float*>(base) + element;
    at[0] = value[0];
    at[1] = value[1];
  }
};

template <typename State, typename Out>
__device__ void merge_states(const contract::MergeStatesArgs& args) {
  const int wave = uniform(static_cast<int>(threadIdx.x) / 64);
  const int lane = static_cast<int>(threadIdx.x) % 64;
  const int row = static_cast<int>(blockIdx.x) * contract::rows_per_merge + wave;
  if (row >= args.tokens * args.heads) return;
  const int token = static_cast<int>(static_cast<unsigned>(row) / static_cast<unsigned>(args.heads));
  const int head = row - token * args.heads;
  const std::int64_t lse_at = token * args.lse_token_stride + head * args.lse_head_stride;
#if defined(ATTEST_FAULT_SKIPS_STATE_16)
  const int states = args.states == 16 ? 15 : args.states;
#else
  const int states = args.states;
#endif

  float lse = -__builtin_inff();
  if (lane < states) lse = args.state[lane].lse[lse_at];
#if defined(ATTEST_FAULT_PLUS_INF_IS_A_MAXIMUM)
  const bool has_keys = lse != -__builtin_inff();
#else
  const bool has_keys = __builtin_fabsf(lse) != __builtin_inff();
  if (!has_keys) lse = -__builtin_inff();
#endif
#if defined(ATTEST_FAULT_EMPTY_LSE_ZERO)
  if (lane < states && !has_keys) lse = 0.0F;
#endif

  float max = lse;
  max = fmaxf(max, exchange_xor<1>(max));
  max = fmaxf(max, exchange_xor<2>(max));
  max = fmaxf(max, exchange_xor<4>(max));
  max = fmaxf(max, exchange_xor<8>(max));
  max = fmaxf(max, exchange_xor<16>(max));

#if defined(ATTEST_FAULT_BOTH_EMPTY_NAN)
  const float origin = max;
#else
  const float origin = max == -__builtin_inff() ? 0.0F : max;
#endif
#if defined(ATTEST_FAULT_BASE_MIXED)
  const float to_base_two = 1.0F;
#else
  const float to_base_two = args.base_two != 0 ? 1.0F : log2_e;
#endif
  const float weight = lane < states ? exp2_hw((lse - origin) * to_base_two) : 0.0F;
  float sum = weight;
  sum += exchange_xor<1>(sum);
  sum += exchange_xor<2>(sum);
  sum += exchange_xor<4>(sum);
  sum += exchange_xor<8>(sum);
  sum += exchange_xor<16>(sum);
  // Lanes 32.. looked at no state; every lane takes what the first one has.
  const float total = from_lane(sum, 0);
  const float normalise = total == 0.0F ? 0.0F : 1.0F / total;
  const float readable = has_keys ? 1.0F : 0.0F;

  // Every lane walks every round, its columns in range or not: a compiler may compute what a lane broadcasts
  // as late as inside the loop, and a lane that is off by then has not computed it.
  for (int round = 0; round < args.head_dim; round += 128) {
    const int column = round + 2 * lane;
    const bool in_range = column < args.head_dim;
    f32x2 out = {};
    for (int s = 0; s < states; ++s) {
      const float state_weight = from_lane(weight, s);
      if (state_weight == 0.0F || from_lane(readable, s) == 0.0F) continue;
#if defined(ATTEST_FAULT_FIRST_STRIDES)
      const contract::MergedStateArgs& strides = args.state[0];
#else
      const contract::MergedStateArgs& strides = args.state[s];
#endif
      if (!in_range) continue;
      out += state_weight * State::load(args.state[s].out,
                                        token * strides.token_stride + head * strides.head_stride + column);
    }
    if (!in_range) continue;
    Out::store(args.out, token * args.out_token_stride + head * args.out_head_stride + column,
               out * normalise);
  }
  if (lane == 0 && args.lse != nullptr) {
    args.lse[lse_at] =
        total == 0.0F ? -__builtin_inff() : max + log2_hw(total) * (args.base_two != 0 ? 1.0F : ln_2);
  }
}

}  // namespace attest::kernels

#define ATTEST_MERGE(name, state, out)                                                 \
  extern "C" __global__ __launch_bounds__(attest::contract::merge_threads) void name(  \
      attest::contract::MergeStatesArgs args) {                                        \
    attest::kernels::merge_states<attest::kernels::state, attest::kernels::out>(args); \
  }
ATTEST_MERGE(merge_states_bf16_bf16, PairBf16, PairBf16)
ATTEST_MERGE(merge_states_bf16_f32, PairBf16, PairF32)
ATTEST_MERGE(merge_states_f32_bf16, PairF32, PairBf16)
ATTEST_MERGE(merge_states_f32_f32, PairF32, PairF32)
