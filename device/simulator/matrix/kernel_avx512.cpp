// SPDX-License-Identifier: MIT
#include <immintrin.h>

#include "device/simulator/matrix/kernel_list.h"
#include "device/simulator/matrix/kernel_narrow.h"

namespace attest::device::sim::matrix {
namespace {

/// Sixteen lanes of 32 bits.
struct Avx512 {
  using I = __m512i;
  using F = __m512;
  static constexpr int width = 16;

  static I load(const void* at) { return _mm512_loadu_si512(at); }
  static F load_float(const float* at) { return _mm512_loadu_ps(at); }
  static void store(void* at, I x) { _mm512_storeu_si512(at, x); }
  static I set1(int x) { return _mm512_set1_epi32(x); }
  /// A one the compiler does not recognise: it would turn min(x, 1) into a slower comparison.
  static I one() {
    I x = set1(1);
    asm("" : "+v"(x));
    return x;
  }
  static F set1_float(float x) { return _mm512_set1_ps(x); }
  static F as_float(I x) { return _mm512_castsi512_ps(x); }
  static I as_int(F x) { return _mm512_castps_si512(x); }

  static I and_(I x, I y) { return _mm512_and_si512(x, y); }
  static I or_(I x, I y) { return _mm512_or_si512(x, y); }
  static I add(I x, I y) { return _mm512_add_epi32(x, y); }
  static I sub(I x, I y) { return _mm512_sub_epi32(x, y); }
  static I max(I x, I y) { return _mm512_max_epi32(x, y); }
  static I max_u(I x, I y) { return _mm512_max_epu32(x, y); }
  static I min_u(I x, I y) { return _mm512_min_epu32(x, y); }
  static I min(I x, I y) { return _mm512_min_epi32(x, y); }
  static I where(I mask, I yes, I no) { return _mm512_ternarylogic_epi32(mask, yes, no, 0xca); }
  static I greater(I x, I y) { return _mm512_movm_epi32(_mm512_cmpgt_epi32_mask(x, y)); }
  template <int n>
  static I sll(I x) {
    return _mm512_slli_epi32(x, n);
  }
  template <int n>
  static I srl(I x) {
    return _mm512_srli_epi32(x, n);
  }
  template <int n>
  static I sra(I x) {
    return _mm512_srai_epi32(x, n);
  }
  static I sllv(I x, I n) { return _mm512_sllv_epi32(x, n); }
  static I srlv(I x, I n) { return _mm512_srlv_epi32(x, n); }
  static I srav(I x, I n) { return _mm512_srav_epi32(x, n); }
  static bool any(I x) { return _mm512_test_epi32_mask(x, x) != 0; }

  static I add16(I x, I y) { return _mm512_adds_epi16(x, y); }
  static I sub16(I x, I y) { return _mm512_sub_epi16(x, y); }
  static I subtract_saturated16(I x, I y) { return _mm512_subs_epi16(x, y); }
  static I max16(I x, I y) { return _mm512_max_epi16(x, y); }
  static I min16(I x, I y) { return _mm512_min_epi16(x, y); }
  static I where_zero16(I test, I yes, I no) {
    return _mm512_mask_mov_epi16(no, _mm512_testn_epi16_mask(test, test), yes);
  }
  static I add8(I x, I y) { return _mm512_adds_epi8(x, y); }
  static I sub8(I x, I y) { return _mm512_sub_epi8(x, y); }
  static I max8(I x, I y) { return _mm512_max_epi8(x, y); }
  static I max_u8(I x, I y) { return _mm512_max_epu8(x, y); }
  static I equal8(I x, I y) { return _mm512_movm_epi8(_mm512_cmpeq_epi8_mask(x, y)); }
  static I where_zero8(I test, I yes, I no) {
    return _mm512_mask_mov_epi8(no, _mm512_testn_epi8_mask(test, test), yes);
  }

  static F mul(F x, F y) { return _mm512_mul_ps(x, y); }
  static F subtract(F x, F y) { return _mm512_sub_ps(x, y); }
  static F from_int(I x) { return _mm512_cvtepi32_ps(x); }
  static I truncate_to_int(F x) { return _mm512_cvttps_epi32(x); }
  static I floor_to_int(F x) {
    return _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  }
  /// 32 less the bits the rule keeps below T: 32 - lzcnt(abs(T)).
  static I dropped_bits(I t) {
    return _mm512_sub_epi32(_mm512_set1_epi32(32), _mm512_lzcnt_epi32(_mm512_abs_epi32(t)));
  }

  /// x * 2^(e-24) with one rounding, overflow and subnormals as IEEE 754 has them.
  static I scale_to_float(I x, I e) {
    const I biased = add(e, set1(1023 - 24));
    const __m256 low = scale_half(_mm512_castsi512_si256(x), _mm512_castsi512_si256(biased));
    const __m256 high = scale_half(_mm512_extracti64x4_epi64(x, 1), _mm512_extracti64x4_epi64(biased, 1));
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_castps_si256(low)), _mm256_castps_si256(high), 1);
  }
  static __m256 scale_half(__m256i x, __m256i biased) {
    const __m512d scale = _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_cvtepi32_epi64(biased), 52));
    return _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_cvtepi32_pd(x), scale));
  }

  static int reduce_max_u8(I x) {
    const __m256i half = _mm256_max_epu8(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    const __m128i quarter = _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    const __m128i bytes =
        _mm_and_si128(_mm_max_epu8(quarter, _mm_srli_epi16(quarter, 8)), _mm_set1_epi16(0xff));
    return 0xff - (_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_sub_epi16(_mm_set1_epi16(0xff), bytes))) & 0xffff);
  }
  static int reduce_max16(I x) {
    const __m256i half = _mm256_max_epi16(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    const __m128i quarter = _mm_max_epi16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    const __m128i flipped = _mm_sub_epi16(_mm_set1_epi16(0x7fff), quarter);  // unsigned, order reversed
    return 0x7fff - (_mm_cvtsi128_si32(_mm_minpos_epu16(flipped)) & 0xffff);
  }
  static int reduce_min16(I x) { return -reduce_max16(_mm512_sub_epi16(_mm512_set1_epi16(-1), x)) - 1; }

  static constexpr bool has_dot16 = true;
  /// acc + x0 y0 + x1 y1 over the two sixteen-bit halves of a lane.
  static I dot16(I acc, I x, I y) { return _mm512_dpwssd_epi32(acc, x, y); }
  static I sllv16(I x, I n) { return _mm512_sllv_epi16(x, n); }
  static I negative16(I x) { return _mm512_srai_epi16(x, 15); }
  static I xor_(I x, I y) { return _mm512_xor_si512(x, y); }
};

struct Narrow {
  template <Element a, Element b, int M, int K, int Blocks>
  static Kernel kernel() {
    if constexpr (a == Element::xf32)
      return plain_kernel<a, b, M, K, Blocks>;
    else
      return narrow_kernel<Avx512, a, b, M, K, Blocks>;
  }
};

}  // namespace

Kernel avx512_kernel(const KernelShape& shape) {
  return find_kernel<Narrow, true>(shape);
}

}  // namespace attest::device::sim::matrix
