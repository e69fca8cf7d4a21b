// SPDX-License-Identifier: MIT
#include <immintrin.h>

#include "device/simulator/matrix/kernel_list.h"
#include "device/simulator/matrix/kernel_narrow.h"

namespace attest::device::sim::matrix {
namespace {

/// Eight lanes of 32 bits.
struct Avx2 {
  using I = __m256i;
  using F = __m256;
  static constexpr int width = 8;

  static I load(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }
  static F load_float(const float* at) { return _mm256_loadu_ps(at); }
  static void store(void* at, I x) { _mm256_storeu_si256(static_cast<__m256i*>(at), x); }
  static I set1(int x) { return _mm256_set1_epi32(x); }
  static I one() { return set1(1); }
  static F set1_float(float x) { return _mm256_set1_ps(x); }
  static F as_float(I x) { return _mm256_castsi256_ps(x); }
  static I as_int(F x) { return _mm256_castps_si256(x); }

  static I and_(I x, I y) { return _mm256_and_si256(x, y); }
  static I or_(I x, I y) { return _mm256_or_si256(x, y); }
  static I add(I x, I y) { return _mm256_add_epi32(x, y); }
  static I sub(I x, I y) { return _mm256_sub_epi32(x, y); }
  static I max(I x, I y) { return _mm256_max_epi32(x, y); }
  static I max_u(I x, I y) { return _mm256_max_epu32(x, y); }
  static I min_u(I x, I y) { return _mm256_min_epu32(x, y); }
  static I min(I x, I y) { return _mm256_min_epi32(x, y); }
  static I where(I mask, I yes, I no) { return _mm256_blendv_epi8(no, yes, mask); }
  static I greater(I x, I y) { return _mm256_cmpgt_epi32(x, y); }
  template <int n>
  static I sll(I x) {
    return _mm256_slli_epi32(x, n);
  }
  template <int n>
  static I srl(I x) {
    return _mm256_srli_epi32(x, n);
  }
  template <int n>
  static I sra(I x) {
    return _mm256_srai_epi32(x, n);
  }
  static I sllv(I x, I n) { return _mm256_sllv_epi32(x, n); }
  static I srlv(I x, I n) { return _mm256_srlv_epi32(x, n); }
  static I srav(I x, I n) { return _mm256_srav_epi32(x, n); }
  static bool any(I x) { return _mm256_testz_si256(x, x) == 0; }

  static I add16(I x, I y) { return _mm256_adds_epi16(x, y); }
  static I sub16(I x, I y) { return _mm256_sub_epi16(x, y); }
  static I subtract_saturated16(I x, I y) { return _mm256_subs_epi16(x, y); }
  static I max16(I x, I y) { return _mm256_max_epi16(x, y); }
  static I min16(I x, I y) { return _mm256_min_epi16(x, y); }
  static I where_zero16(I test, I yes, I no) {
    return _mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi16(test, _mm256_setzero_si256()));
  }
  static I add8(I x, I y) { return _mm256_adds_epi8(x, y); }
  static I sub8(I x, I y) { return _mm256_sub_epi8(x, y); }
  static I max8(I x, I y) { return _mm256_max_epi8(x, y); }
  static I max_u8(I x, I y) { return _mm256_max_epu8(x, y); }
  static I equal8(I x, I y) { return _mm256_cmpeq_epi8(x, y); }
  static I where_zero8(I test, I yes, I no) {
    return _mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi8(test, _mm256_setzero_si256()));
  }

  static F mul(F x, F y) { return _mm256_mul_ps(x, y); }
  static F subtract(F x, F y) { return _mm256_sub_ps(x, y); }
  static F from_int(I x) { return _mm256_cvtepi32_ps(x); }
  static I truncate_to_int(F x) { return _mm256_cvttps_epi32(x); }
  static I floor_to_int(F x) { return _mm256_cvtps_epi32(_mm256_floor_ps(x)); }
  /// 32 less the bits the rule keeps below T: one from 2^30, two from 2^29, else three.
  static I dropped_bits(I t) {
    const I magnitude = _mm256_abs_epi32(t);
    const I from29 = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32((1 << 29) - 1));
    const I from30 = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32((1 << 30) - 1));
    return _mm256_sub_epi32(_mm256_sub_epi32(_mm256_set1_epi32(29), from29), from30);
  }

  /// x * 2^(e-24) with one rounding, overflow and subnormals as IEEE 754 has them.
  static I scale_to_float(I x, I e) {
    const I biased = add(e, set1(1023 - 24));
    const __m128 low = scale_half(_mm256_castsi256_si128(x), _mm256_castsi256_si128(biased));
    const __m128 high = scale_half(_mm256_extracti128_si256(x, 1), _mm256_extracti128_si256(biased, 1));
    return _mm256_castps_si256(_mm256_set_m128(high, low));
  }
  static __m128 scale_half(__m128i x, __m128i biased) {
    const __m256d scale = _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_cvtepi32_epi64(biased), 52));
    return _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtepi32_pd(x), scale));
  }

  static int reduce_max_u8(I half) {
    const __m128i quarter = _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    const __m128i bytes =
        _mm_and_si128(_mm_max_epu8(quarter, _mm_srli_epi16(quarter, 8)), _mm_set1_epi16(0xff));
    return 0xff - (_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_sub_epi16(_mm_set1_epi16(0xff), bytes))) & 0xffff);
  }
  static int reduce_max16(I x) {
    const __m128i quarter = _mm_max_epi16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    const __m128i flipped = _mm_sub_epi16(_mm_set1_epi16(0x7fff), quarter);  // unsigned, order reversed
    return 0x7fff - (_mm_cvtsi128_si32(_mm_minpos_epu16(flipped)) & 0xffff);
  }
  static int reduce_min16(I x) { return -reduce_max16(_mm256_sub_epi16(_mm256_set1_epi16(-1), x)) - 1; }

  static constexpr bool has_dot16 = false;  // no shift of sixteen-bit lanes by their own counts
};

struct Narrow {
  template <Element a, Element b, int M, int K, int Blocks>
  static Kernel kernel() {
    if constexpr (a == Element::xf32)
      return plain_kernel<a, b, M, K, Blocks>;
    else
      return narrow_kernel<Avx2, a, b, M, K, Blocks>;
  }
};

}  // namespace

Kernel avx2_kernel(const KernelShape& shape) {
  return find_kernel<Narrow, true>(shape);
}

}  // namespace attest::device::sim::matrix
