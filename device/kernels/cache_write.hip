// SPDX-License-Identifier: MIT
//
// New tokens into the slots of a paged cache: bf16, fp8 with one scale, the 656-byte rows of DeepSeek's
// sparse attention, and the indexer's cache. One wave per token.
//
// Slots. slot / page_size is the page, the rest the place in it. A pool may exceed 4 GiB, so a page's offset
// takes 64 bits. Tokens that pad a batch have slot -1 and leave no trace.
//
// Group scales. A lane holds neighbouring columns of one group of 128, so the largest magnitude of a group is
// a few exchanges among 16 or 64 lanes, and no LDS is needed. The quotient is an IEEE division, or a
// multiplication by the rounded reciprocal where the caller asks for that: the two may differ by one step of
// fp8, and a cache compared byte for byte has to know which.
//
// Conversion. v_cvt_pk_fp8_f32 rounds to nearest even and knows FNUZ, whose only zero is 0x00. It turns what
// overflows into NaN, so values are clamped to the largest number first.
//
// The ATTEST_FAULT_ blocks are planted defects; device/kernels/faults/ says what each imitates.

#include "device/contracts/attest/cache_write_args.h"
#include "device/kernels/gfx9.h"

namespace attest::kernels {

using contract::CacheWriteArgs;

constexpr int latent_width = 512;
constexpr int rope_width = 64;
constexpr int indexer_width = 128;
constexpr float fnuz_max = 240.0F;
#if defined(ATTEST_FAULT_DS_ROPE_OFFSET)
constexpr int ds_rope_at = latent_width;  // over the scales
#else
constexpr int ds_rope_at = latent_width + 16;
#endif
constexpr int ds_row_bytes = 656;

__device__ inline float bf16_low(std::uint32_t pair) {
  return __builtin_bit_cast(float, pair << 16);
}
__device__ inline float bf16_high(std::uint32_t pair) {
  return __builtin_bit_cast(float, pair & 0xffff0000u);
}

#if defined(ATTEST_FAULT_OCP_BYTES)
/// e4m3fn, by hand: bias 7, to nearest even, at most 240.
__device__ inline std::uint32_t ocp_byte(float x) {
  const std::uint32_t sign = bits(x) >> 24 & 0x80u;
  const float magnitude = __builtin_fabsf(x);
  if (magnitude < 0x1p-6F) return sign | static_cast<std::uint32_t>(__builtin_rintf(magnitude * 0x1p9F));
  const std::uint32_t b = bits(magnitude);
  return sign | ((b + 0x7ffffu + (b >> 20 & 1u)) >> 20) - ((127u - 7u) << 3);
}
#endif

/// Two values as two bytes, `low` in bits 7..0.
__device__ inline std::uint32_t fp8_pair(float low, float high) {
  low = fminf(fmaxf(low, -fnuz_max), fnuz_max);
  high = fminf(fmaxf(high, -fnuz_max), fnuz_max);
#if defined(ATTEST_FAULT_OCP_BYTES)
  return ocp_byte(low) | ocp_byte(high) << 8;
#else
  std::uint32_t pair =
      static_cast<std::uint32_t>(__builtin_amdgcn_cvt_pk_fp8_f32(low, high, 0, false)) & 0xffffu;
#if defined(ATTEST_FAULT_NEGATIVE_ZERO)
  if ((pair & 0xffu) == 0 && (bits(low) & 0x80000000u)) pair |= 0x80u;
  if ((pair & 0xff00u) == 0 && (bits(high) & 0x80000000u)) pair |= 0x8000u;
#endif
  return pair;
#endif
}

/// x / scale as the caller wants it formed.
struct Divider {
  float scale, inverse;
  bool reciprocal;
  __device__ Divider(float s, bool multiply) : scale(s), inverse(1.0F / s), reciprocal(multiply) {}
  __device__ float operator()(float x) const { return reciprocal ? x * inverse : x / scale; }
  __device__ std::uint32_t bytes(std::uint32_t bf16_pair) const {
    return fp8_pair((*this)(bf16_low(bf16_pair)), (*this)(bf16_high(bf16_pair)));
  }
};

__device__ inline float group_scale(const CacheWriteArgs& args, float amax) {
#if defined(ATTEST_FAULT_OCP_CEILING)
  const float ceiling = 448.0F;
#else
  const float ceiling = args.ceiling;
#endif
  const float scale = fmaxf(fmaxf(amax, args.amax_floor) / ceiling, args.scale_floor);
  if (args.power_of_two == 0) return scale;
  const std::uint32_t b = bits(scale);
  return __builtin_bit_cast(float, ((b >> 23) + ((b & 0x7fffffu) != 0 ? 1u : 0u)) << 23);
}

__device__ inline float largest_of_16_lanes(float x) {
  x = fmaxf(x, exchange_xor<1>(x));
  x = fmaxf(x, exchange_xor<2>(x));
  x = fmaxf(x, exchange_xor<4>(x));
  return fmaxf(x, exchange_xor<8>(x));
}

struct Place {
  char* page;
  int offset;  ///< tokens
  bool skip;
};

__device__ inline Place place_of(const CacheWriteArgs& args, std::int64_t token) {
  const std::int64_t slot = args.slots[token];
#if !defined(ATTEST_FAULT_MINUS_ONE_WRITTEN)
  if (slot < 0) return {nullptr, 0, true};
#endif
  const std::int64_t page = slot / args.page_size;
#if defined(ATTEST_FAULT_OFFSET_32BIT)
  const std::uint64_t offset =
      static_cast<std::uint32_t>(page) * static_cast<std::uint32_t>(args.page_stride);
#else
  const std::uint64_t offset = static_cast<std::uint64_t>(page) * args.page_stride;
#endif
  return {static_cast<char*>(args.pool) + offset, static_cast<int>(slot - page * args.page_size), false};
}

__device__ inline const std::uint32_t* latent_of(const CacheWriteArgs& args, std::int64_t token) {
  return static_cast<const std::uint32_t*>(args.latent) + token * (latent_width / 2);
}
__device__ inline const std::uint32_t* rope_of(const CacheWriteArgs& args, std::int64_t token) {
  return static_cast<const std::uint32_t*>(args.rope) + token * (rope_width / 2);
}

__device__ void write_bf16(const CacheWriteArgs& args) {
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t token = blockIdx.x;
  const Place place = place_of(args, token);
  if (place.skip) return;
  auto* row = reinterpret_cast<std::uint32_t*>(place.page + std::int64_t{place.offset} *
                                                                (2 * (latent_width + rope_width)));
  for (int i = lane; i < latent_width / 2; i += 64) row[i] = latent_of(args, token)[i];
  if (lane < rope_width / 2) row[latent_width / 2 + lane] = rope_of(args, token)[lane];
}

__device__ void write_fp8(const CacheWriteArgs& args) {
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t token = blockIdx.x;
  const Place place = place_of(args, token);
  if (place.skip) return;
#if defined(ATTEST_FAULT_UNIT_SCALE)
  const Divider divide(1.0F, false);
#else
  const Divider divide(args.kv_scale, args.reciprocal != 0);
#endif
  char* row = place.page + std::int64_t{place.offset} * (latent_width + rope_width);
  auto* words = reinterpret_cast<std::uint32_t*>(row);
  for (int i = lane; i < latent_width / 4; i += 64) {
    const std::uint32_t* pairs = latent_of(args, token) + 2 * i;
    words[i] = divide.bytes(pairs[0]) | divide.bytes(pairs[1]) << 16;
  }
  if (lane < rope_width / 4) {
    const std::uint32_t* pairs = rope_of(args, token) + 2 * lane;
    words[latent_width / 4 + lane] = divide.bytes(pairs[0]) | divide.bytes(pairs[1]) << 16;
  }
}

/// Lane l has the columns 8l..8l+7, so a group is sixteen lanes.
__device__ void write_ds_mla(const CacheWriteArgs& args) {
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t token = blockIdx.x;
  const Place place = place_of(args, token);
  if (place.skip) return;
  std::uint32_t pairs[4];
  float amax = 0.0F;
  for (int i = 0; i < 4; ++i) {
    pairs[i] = latent_of(args, token)[4 * lane + i];
    amax = fmaxf(amax, fmaxf(__builtin_fabsf(bf16_low(pairs[i])), __builtin_fabsf(bf16_high(pairs[i]))));
  }
  const float scale = group_scale(args, largest_of_16_lanes(amax));
  const Divider divide(scale, args.reciprocal != 0);
  char* row = place.page + std::int64_t{place.offset} * ds_row_bytes;
  auto* words = reinterpret_cast<std::uint32_t*>(row);
  words[2 * lane] = divide.bytes(pairs[0]) | divide.bytes(pairs[1]) << 16;
  words[2 * lane + 1] = divide.bytes(pairs[2]) | divide.bytes(pairs[3]) << 16;
  if (lane % 16 == 0) reinterpret_cast<float*>(row + latent_width)[lane / 16] = scale;
  if (lane < rope_width / 2)
    reinterpret_cast<std::uint32_t*>(row + ds_rope_at)[lane] = rope_of(args, token)[lane];
}

/// Lane l has the columns 2l and 2l + 1 of the one group.
__device__ void write_indexer(const CacheWriteArgs& args) {
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t token = blockIdx.x;
  const Place place = place_of(args, token);
  if (place.skip) return;
  const std::uint32_t pair =
      static_cast<const std::uint32_t*>(args.latent)[token * (indexer_width / 2) + lane];
  float amax = largest_of_16_lanes(fmaxf(__builtin_fabsf(bf16_low(pair)), __builtin_fabsf(bf16_high(pair))));
  amax = fmaxf(amax, exchange_xor<16>(amax));
  amax = fmaxf(amax, exchange_halves(amax));
  const float scale = group_scale(args, amax);
  const Divider divide(scale, args.reciprocal != 0);
#if defined(ATTEST_FAULT_INTERLEAVED)
  char* values = place.page + std::int64_t{place.offset} * (indexer_width + 4);
  char* scale_at = values + indexer_width;
#else
  char* values = place.page + std::int64_t{place.offset} * indexer_width;
  char* scale_at = place.page + std::int64_t{args.page_size} * indexer_width + 4 * place.offset;
#endif
  reinterpret_cast<std::uint16_t*>(values)[lane] = static_cast<std::uint16_t>(divide.bytes(pair));
  if (lane == 0) *reinterpret_cast<float*>(scale_at) = scale;
}

}  // namespace attest::kernels

extern "C" __global__ __launch_bounds__(attest::contract::cache_write_threads) void cache_write_bf16(
    attest::contract::CacheWriteArgs args) {
  attest::kernels::write_bf16(args);
}
extern "C" __global__ __launch_bounds__(attest::contract::cache_write_threads) void cache_write_fp8(
    attest::contract::CacheWriteArgs args) {
  attest::kernels::write_fp8(args);
}
extern "C" __global__ __launch_bounds__(attest::contract::cache_write_threads) void cache_write_ds_mla(
    attest::contract::CacheWriteArgs args) {
  attest::kernels::write_ds_mla(args);
}
extern "C" __global__ __launch_bounds__(attest::contract::cache_write_threads) void cache_write_indexer(
    attest::contract::CacheWriteArgs args) {
  attest::kernels::write_indexer(args);
}
