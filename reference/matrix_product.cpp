// SPDX-License-Identifier: MIT
#include "reference/matrix_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace attest::reference {
namespace {

using Index = std::ptrdiff_t;

template <typename Real>
struct View {
  const Real* data;
  Index stride;  ///< elements from one row to the next
};

template <typename Real>
struct Problem {
  View<Real> a, b;
  Real* c;
  Index c_stride;
  Index rows, columns, depth;
};

/// Native vectors of `bytes` bytes: one of doubles, one of floats.
template <typename Real, int bytes>
struct VectorOf;
template <>
struct VectorOf<double, 16> {
  using type [[gnu::vector_size(16)]] = double;
};
template <>
struct VectorOf<double, 32> {
  using type [[gnu::vector_size(32)]] = double;
};
template <>
struct VectorOf<double, 64> {
  using type [[gnu::vector_size(64)]] = double;
};
template <>
struct VectorOf<float, 16> {
  using type [[gnu::vector_size(16)]] = float;
};
template <>
struct VectorOf<float, 32> {
  using type [[gnu::vector_size(32)]] = float;
};
template <>
struct VectorOf<float, 64> {
  using type [[gnu::vector_size(64)]] = float;
};

/// A panel of B that stays in the first-level cache while all rows of A pass: 256 rows of two 64-byte vectors
/// are 32 KiB.
constexpr Index panel_depth = 256;

/// One tile, c in registers: c[rows][vectors * lanes] += a[rows][depth] * panel[depth][vectors * lanes].
template <typename Real, typename Vector, int rows, int vectors>
[[gnu::always_inline]] inline void multiply_tile(View<Real> a, const Real* panel, Index depth, Real* c,
                                                 Index c_stride) {
  constexpr Index lanes = sizeof(Vector) / sizeof(Real);
  Vector sum[rows][vectors];
#pragma GCC unroll 8
  for (Index i = 0; i < rows; ++i)
#pragma GCC unroll 8
    for (Index v = 0; v < vectors; ++v) std::memcpy(&sum[i][v], c + i * c_stride + v * lanes, sizeof(Vector));
  for (Index p = 0; p < depth; ++p, panel += vectors * lanes) {
#pragma GCC unroll 8
    for (Index i = 0; i < rows; ++i) {
      const Real factor = a.data[i * a.stride + p];
#pragma GCC unroll 8
      for (Index v = 0; v < vectors; ++v) {
        Vector b;
        std::memcpy(&b, panel + v * lanes, sizeof b);
        sum[i][v] += factor * b;
      }
    }
  }
#pragma GCC unroll 8
  for (Index i = 0; i < rows; ++i)
#pragma GCC unroll 8
    for (Index v = 0; v < vectors; ++v) std::memcpy(c + i * c_stride + v * lanes, &sum[i][v], sizeof(Vector));
}

/// `count` rows by tiles of `rows`, then of half as many, down to 1.
template <typename Real, typename Vector, int rows, int vectors>
[[gnu::always_inline]] inline void multiply_rows(View<Real> a, Index count, const Real* panel, Index depth,
                                                 Real* c, Index c_stride) {
  for (; count >= rows; count -= rows, a.data += rows * a.stride, c += rows * c_stride)
    multiply_tile<Real, Vector, rows, vectors>(a, panel, depth, c, c_stride);
  if constexpr (rows > 1) multiply_rows<Real, Vector, rows / 2, vectors>(a, count, panel, depth, c, c_stride);
}

template <int vector_bytes, int rows, int vectors, typename Real>
[[gnu::always_inline]] inline void multiply(const Problem<Real>& problem) {
  using Vector = typename VectorOf<Real, vector_bytes>::type;
  constexpr Index width = vectors * static_cast<Index>(sizeof(Vector) / sizeof(Real));
  alignas(64) Real panel[panel_depth * width];
  std::vector<Real> narrow_c;  // the last columns of c, widened to a whole tile

  for (Index p = 0; p < problem.depth; p += panel_depth) {
    const Index depth = std::min(panel_depth, problem.depth - p);
    const View<Real> a{problem.a.data + p, problem.a.stride};
    for (Index j = 0; j < problem.columns; j += width) {
      const Index columns = std::min(width, problem.columns - j);
      const Real* b = problem.b.data + p * problem.b.stride + j;
      Real* c = problem.c + j;
      if (columns == width) {
        for (Index k = 0; k < depth; ++k)
          std::memcpy(panel + k * width, b + k * problem.b.stride, sizeof(Real) * width);
        multiply_rows<Real, Vector, rows, vectors>(a, problem.rows, panel, depth, c, problem.c_stride);
      } else {
        std::fill_n(panel, depth * width, Real{0});
        for (Index k = 0; k < depth; ++k) std::copy_n(b + k * problem.b.stride, columns, panel + k * width);
        narrow_c.assign(static_cast<std::size_t>(problem.rows * width), Real{0});
        for (Index i = 0; i < problem.rows; ++i)
          std::copy_n(c + i * problem.c_stride, columns, narrow_c.data() + i * width);
        multiply_rows<Real, Vector, rows, vectors>(a, problem.rows, panel, depth, narrow_c.data(), width);
        for (Index i = 0; i < problem.rows; ++i)
          std::copy_n(narrow_c.data() + i * width, columns, c + i * problem.c_stride);
      }
    }
  }
}

// Tiles fill the registers of each target: 16 sums of 32 registers, 8 of 16; enough of them in flight to hide
// the latency of an addition (4 cycles, 2 a cycle).
template <typename Real>
void multiply_sse2(const Problem<Real>& problem) {
  multiply<16, 4, 2>(problem);
}
#if defined(__x86_64__)
template <typename Real>
[[gnu::target("avx2")]] void multiply_avx2(const Problem<Real>& problem) {
  multiply<32, 4, 2>(problem);
}
template <typename Real>
[[gnu::target("avx512f,avx512dq")]] void multiply_avx512(const Problem<Real>& problem) {
  multiply<64, 8, 2>(problem);
}
#else
template <typename Real>
void multiply_avx2(const Problem<Real>& problem) {
  multiply_sse2(problem);
}
template <typename Real>
void multiply_avx512(const Problem<Real>& problem) {
  multiply_sse2(problem);
}
#endif

template <typename ConstBlockOf, typename MutableBlockOf>
void check_and_multiply(const ConstBlockOf& a, const ConstBlockOf& b, MutableBlockOf& c, Simd simd) {
  if (a.cols() != b.rows() || c.rows() != a.rows() || c.cols() != b.cols())
    throw std::invalid_argument(fmt::format("add_product: [{}, {}] += [{}, {}] * [{}, {}] does not fit",
                                            c.rows(), c.cols(), a.rows(), a.cols(), b.rows(), b.cols()));
  if (a.rows() == 0 || a.cols() == 0 || b.cols() == 0) return;
  const Problem<typename MutableBlockOf::Scalar> problem{{a.data(), a.outerStride()},
                                                         {b.data(), b.outerStride()},
                                                         c.data(),
                                                         c.outerStride(),
                                                         a.rows(),
                                                         b.cols(),
                                                         a.cols()};
  switch (simd) {
    case Simd::sse2:
      return multiply_sse2(problem);
    case Simd::avx2:
      return multiply_avx2(problem);
    case Simd::avx512:
      return multiply_avx512(problem);
  }
}

}  // namespace

void add_product(const ConstBlock& a, const ConstBlock& b, MutableBlock c, Simd simd) {
  check_and_multiply(a, b, c, simd);
}

void add_product(const ConstBlockF& a, const ConstBlockF& b, MutableBlockF c, Simd simd) {
  check_and_multiply(a, b, c, simd);
}

}  // namespace attest::reference
