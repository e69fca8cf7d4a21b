// SPDX-License-Identifier: MIT
//
// What the kernels need of gfx942 beyond C++: vector types, matrix instructions, lane exchanges, number
// formats.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>

namespace attest::kernels {

typedef float f32x2 __attribute__((ext_vector_type(2)));
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef short bf16x4 __attribute__((ext_vector_type(4)));  ///< bits of four bf16: an MFMA operand
typedef std::uint32_t u32x2 __attribute__((ext_vector_type(2)));
typedef std::uint32_t u32x4 __attribute__((ext_vector_type(4)));  ///< 16 bytes: eight bf16

inline constexpr float log2_e = 1.44269504088896340736F;
inline constexpr float ln_2 = 0.69314718055994530942F;

/// The bits of a float. By value: clang 19 compiles __builtin_bit_cast of a vector's element (v.y, v[1]) as
/// if it were the first one.
__device__ inline std::uint32_t bits(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}

/// D[16x16] = A[16x16] B[16x16] + C, bf16 times bf16 into f32, by one wave. Lane l = 16 g + i holds
/// A[i][4g..4g+3], B[4g..4g+3][i] and, of C and D, [4g..4g+3][i].
__device__ inline f32x4 mfma_16x16x16_bf16(bf16x4 a, bf16x4 b, f32x4 c) {
  return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, 0, 0, 0);
}

/// The value of lane `l ^ mask`, mask 1..31.
template <int mask>
__device__ inline float exchange_xor(float x) {
  return __builtin_bit_cast(float,
                            __builtin_amdgcn_ds_swizzle(__builtin_bit_cast(int, x), mask << 10 | 0x1f));
}

/// The value of lane `l ^ 32`.
__device__ inline float exchange_halves(float x) {
  const int other = static_cast<int>(threadIdx.x % 64) ^ 32;
  return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(4 * other, __builtin_bit_cast(int, x)));
}

/// `x` of the first active lane, told to the compiler as uniform.
__device__ inline int uniform(int x) {
  return __builtin_amdgcn_readfirstlane(x);
}

/// `x` of lane `lane`, which is the same number everywhere.
__device__ inline float from_lane(float x, int lane) {
  return __builtin_bit_cast(float, __builtin_amdgcn_readlane(__builtin_bit_cast(int, x), lane));
}

/// 2^x and log2 x as the hardware gives them, within one ulp.
__device__ inline float exp2_hw(float x) {
  return __builtin_amdgcn_exp2f(x);
}
__device__ inline float log2_hw(float x) {
  return __builtin_amdgcn_logf(x);
}

/// The low (high) halves of `first` and `second`, `first` in bits 15..0.
__device__ inline std::uint32_t low_halves(std::uint32_t first, std::uint32_t second) {
  return __builtin_amdgcn_perm(second, first, 0x05040100u);
}
__device__ inline std::uint32_t high_halves(std::uint32_t first, std::uint32_t second) {
  return __builtin_amdgcn_perm(second, first, 0x07060302u);
}

/// Two floats rounded to nearest even, `low` in bits 15..0. NaN stays NaN.
__device__ inline std::uint32_t pack_bf16(float low, float high) {
  typedef __bf16 pair __attribute__((ext_vector_type(2)));
  return __builtin_bit_cast(std::uint32_t, __builtin_convertvector((f32x2){low, high}, pair));
}

/// The same for values whose NaNs, if any, have clear low halves, at half the price. That holds for all that
/// is computed from bf16 and fp8 alone: a NaN is then an operand's, widened, or the quiet NaN of an invalid
/// operation. Otherwise the addition could carry a NaN into the sign and leave a zero.
__device__ inline std::uint32_t pack_bf16_clean(float low, float high) {
  const auto rounded = [](float x) { return bits(x) + 0x7fffu + (bits(x) >> 16 & 1u); };
  return high_halves(rounded(low), rounded(high));
}

/// Eight fp8 e4m3 FNUZ as eight bf16. Exact: bf16 has more exponent and more mantissa, so the upper half of
/// the f32 is the whole value.
__device__ inline u32x4 bf16_from_fp8(u32x2 fp8) {
  u32x4 bf16;
  for (int word = 0; word < 2; ++word) {
    const f32x2 low = __builtin_amdgcn_cvt_pk_f32_fp8(static_cast<int>(fp8[word]), false);
    const f32x2 high = __builtin_amdgcn_cvt_pk_f32_fp8(static_cast<int>(fp8[word]), true);
    bf16[2 * word] = high_halves(bits(low.x), bits(low.y));
    bf16[2 * word + 1] = high_halves(bits(high.x), bits(high.y));
  }
  return bf16;
}

/// How eight neighbouring elements of a row lie in memory.
struct Bf16 {
  using Chunk = u32x4;
  static constexpr int bytes = 2;
  __device__ static u32x4 to_bf16(Chunk chunk) { return chunk; }
};
struct Fp8 {
  using Chunk = u32x2;
  static constexpr int bytes = 1;
  __device__ static u32x4 to_bf16(Chunk chunk) { return bf16_from_fp8(chunk); }
};

}  // namespace attest::kernels
