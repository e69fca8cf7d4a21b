// SPDX-License-Identifier: MIT
//
// add_product promises the bits of the textbook loop; here is the loop.
#include "reference/matrix_product.h"

#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace attest::reference;

namespace {

/// Values whose sums round at every step: 53 random bits, exponents over 40 binades.
Matrix rough_matrix(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed) {
  Matrix m(rows, columns);
  std::uint64_t state = seed;
  for (Eigen::Index i = 0; i < m.size(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    m.data()[i] = std::ldexp(static_cast<double>(static_cast<std::int64_t>(state)),
                             static_cast<int>((state >> 33) % 40) - 80);
  }
  return m;
}

enum class Order { ascending, descending, fused };

void textbook(const Matrix& a, const Matrix& b, Matrix& c, Order order = Order::ascending) {
  for (Eigen::Index i = 0; i < c.rows(); ++i)
    for (Eigen::Index j = 0; j < c.cols(); ++j)
      for (Eigen::Index step = 0; step < a.cols(); ++step) {
        const Eigen::Index p = order == Order::descending ? a.cols() - 1 - step : step;
        if (order == Order::fused)
          c(i, j) = std::fma(a(i, p), b(p, j), c(i, j));
        else
          c(i, j) += a(i, p) * b(p, j);
      }
}

bool same_bits(const Matrix& x, const Matrix& y) {
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const double a = x.data()[i], b = y.data()[i];
    if (!(a == b && std::signbit(a) == std::signbit(b)) && !(a != a && b != b)) return false;
  }
  return x.rows() == y.rows() && x.cols() == y.cols();
}

}  // namespace

TEST_CASE("products have the bits of the textbook loop, whatever the instruction set") {
  rc::prop("random shapes", [] {
    const auto rows = *rc::gen::inRange(0, 40), depth = *rc::gen::inRange(0, 80),
               columns = *rc::gen::inRange(0, 50);
    const std::uint64_t seed = *rc::gen::arbitrary<std::uint32_t>();
    const Matrix a = rough_matrix(rows, depth, seed), b = rough_matrix(depth, columns, seed + 1),
                 start = rough_matrix(rows, columns, seed + 2);
    Matrix expected = start;
    textbook(a, b, expected);
    for (const Simd simd : supported_simd()) {
      Matrix c = start;
      add_product(a, b, c, simd);
      REQUIRE(same_bits(c, expected));
    }
  });
}

TEST_CASE("blocking the depth does not show in the bits") {
  for (const int depth : {255, 256, 257, 511, 513, 1000})
    for (const Simd simd : supported_simd()) {
      const Matrix a = rough_matrix(19, depth, 1), b = rough_matrix(depth, 37, 2);
      Matrix expected = Matrix::Zero(19, 37), c = expected;
      textbook(a, b, expected);
      add_product(a, b, c, simd);
      CHECK(same_bits(c, expected));
    }
}

TEST_CASE("fp32 products have the bits of the textbook loop too") {
  rc::prop("random shapes", [] {
    const auto rows = *rc::gen::inRange(0, 40), depth = *rc::gen::inRange(0, 300),
               columns = *rc::gen::inRange(0, 70);
    const std::uint64_t seed = *rc::gen::arbitrary<std::uint32_t>();
    const MatrixF a = rough_matrix(rows, depth, seed).cast<float>(),
                  b = rough_matrix(depth, columns, seed + 1).cast<float>();
    MatrixF expected = MatrixF::Zero(rows, columns);
    for (Eigen::Index i = 0; i < rows; ++i)
      for (Eigen::Index j = 0; j < columns; ++j)
        for (Eigen::Index p = 0; p < depth; ++p) expected(i, j) += a(i, p) * b(p, j);
    for (const Simd simd : supported_simd()) {
      MatrixF c = MatrixF::Zero(rows, columns);
      add_product(a, b, c, simd);
      REQUIRE(c == expected);
    }
  });
}

TEST_CASE("another order of additions, or a fused one, would be seen") {
  const Matrix a = rough_matrix(8, 64, 1), b = rough_matrix(64, 16, 2);
  Matrix c = Matrix::Zero(8, 16);
  add_product(a, b, c);
  for (const Order order : {Order::descending, Order::fused}) {
    Matrix other = Matrix::Zero(8, 16);
    textbook(a, b, other, order);
    CHECK_FALSE(same_bits(c, other));
  }
}

TEST_CASE("products of blocks leave everything around them alone") {
  const Matrix a = rough_matrix(30, 40, 1), b = rough_matrix(50, 60, 2);
  Matrix c = rough_matrix(33, 44, 3);
  Matrix expected = c;
  const Matrix a_block = a.block(3, 5, 11, 17), b_block = b.block(7, 2, 17, 21);
  Matrix c_block = c.block(9, 10, 11, 21);
  textbook(a_block, b_block, c_block);
  expected.block(9, 10, 11, 21) = c_block;
  add_product(a.block(3, 5, 11, 17), b.block(7, 2, 17, 21), c.block(9, 10, 11, 21));
  CHECK(same_bits(c, expected));
}

TEST_CASE("NaN and infinity stay in their row and column") {
  Matrix a = rough_matrix(21, 30, 1), b = rough_matrix(30, 35, 2);
  a(4, 7) = std::numeric_limits<double>::quiet_NaN();
  b(9, 33) = std::numeric_limits<double>::infinity();
  for (const Simd simd : supported_simd()) {
    Matrix c = Matrix::Zero(21, 35);
    add_product(a, b, c, simd);
    for (int i = 0; i < 21; ++i)
      for (int j = 0; j < 35; ++j) REQUIRE(std::isfinite(c(i, j)) == (i != 4 && j != 33));
  }
}

TEST_CASE("products that do not fit are refused") {
  Matrix c = Matrix::Zero(2, 4);
  CHECK_THROWS_WITH(add_product(Matrix::Zero(2, 3), Matrix::Zero(4, 4), c),
                    Catch::Contains("[2, 4] += [2, 3] * [4, 4]"));
  CHECK_THROWS(add_product(Matrix::Zero(3, 3), Matrix::Zero(3, 4), c));
  CHECK_THROWS(add_product(Matrix::Zero(2, 3), Matrix::Zero(3, 5), c));
}
