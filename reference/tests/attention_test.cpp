// SPDX-License-Identifier: MIT
//
// The reference against something plainer than itself: one scalar loop in long double for each output
// element, written from the formulas and not from attention.cpp; then cases whose answer is known in closed
// form. The last test plants mistakes in the plain loop and demands that the comparison sees each of them.
#include "reference/attention.h"

#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

using namespace attest::reference;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
/// attend sums in double: 576 + kv_len terms of 2^-53 each, with room.
constexpr double tolerance = 1e-12;

struct Shape {
  int q_len = 1, heads = 1, kv_len = 0;
  bool causal = true;
};

struct Problem {
  Shape shape;
  AttentionScales scales;
  Matrix q, k;
};

/// Uniform in [-1, 1), counter-based: splitmix64 of the index.
Matrix random_matrix(std::uint64_t seed, Eigen::Index rows, Eigen::Index columns) {
  Matrix m(rows, columns);
  for (Eigen::Index i = 0; i < m.size(); ++i) {
    std::uint64_t z = (seed << 32) + static_cast<std::uint64_t>(i) + 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    m.data()[i] = static_cast<double>(static_cast<std::int64_t>(z ^ (z >> 31))) * 0x1p-63;
  }
  return m;
}

Problem random_problem(std::uint64_t seed, Shape shape, double spread = 1) {
  return {shape,
          {0.0721687836487032, 0.5, 1.25},
          spread * random_matrix(2 * seed, Eigen::Index{shape.q_len} * shape.heads, row_width),
          random_matrix(2 * seed + 1, shape.kv_len, row_width)};
}

RequestAttention attend(const Problem& p) {
  return attest::reference::attend(p.q, p.k, p.scales, p.shape.q_len, p.shape.heads, p.shape.causal);
}

/// The mistakes that the comparison must see.
enum class Mistake {
  none,
  mask_late,
  mask_early,
  top_left_mask,
  no_q_scale,
  v_unscaled,
  v_from_the_end,
  first_row_for_all,
  rows_swapped
};

struct Plain {
  std::vector<std::vector<long double>> out;  ///< [R][512]
  std::vector<long double> lse,
      magnitude;  ///< magnitude: largest sum w|v| of the row, what errors are relative to
  std::vector<std::vector<long double>> weights;
};

Plain plain_attention(const Problem& p, Mistake mistake = Mistake::none) {
  const auto [q_len, heads, kv_len, causal] = p.shape;
  Plain result;
  for (int position = 0; position < q_len; ++position)
    for (int head = 0; head < heads; ++head) {
      int row = position * heads + head;
      if (mistake == Mistake::first_row_for_all) row = head;
      if (mistake == Mistake::rows_swapped) row = head * q_len + position;
      const auto sees = [&, position = position](int key) {
        if (!causal) return true;
        if (mistake == Mistake::mask_late) return key <= kv_len - q_len + position + 1;
        if (mistake == Mistake::mask_early) return key < kv_len - q_len + position;
        if (mistake == Mistake::top_left_mask) return key <= position;
        return key <= kv_len - q_len + position;
      };

      std::vector<long double> score(static_cast<std::size_t>(kv_len)), weight(score.size(), 0.0L);
      long double max = -infinity, sum = 0;
      for (int key = 0; key < kv_len; ++key) {
        if (!sees(key)) continue;
        long double dot = 0;
        for (int d = 0; d < 576; ++d)
          dot += static_cast<long double>(p.q(row, d)) * static_cast<long double>(p.k(key, d));
        score[key] = dot * p.scales.sm_scale * p.scales.kv_scale;
        if (mistake != Mistake::no_q_scale) score[key] *= p.scales.q_scale;
        max = std::max(max, score[key]);
      }
      for (int key = 0; key < kv_len; ++key)
        if (sees(key)) sum += weight[key] = std::exp(score[key] - max);

      std::vector<long double> out(512, 0.0L);
      long double magnitude = 0;
      for (int d = 0; d < 512; ++d) {
        long double absolute = 0;
        for (int key = 0; key < kv_len; ++key) {
          if (!sees(key)) continue;
          const int column = mistake == Mistake::v_from_the_end ? d + 64 : d;
          const long double scale = mistake == Mistake::v_unscaled ? 1.0L : p.scales.kv_scale;
          const long double term = weight[key] / sum * p.k(key, column) * scale;
          out[d] += term;
          absolute += std::abs(term);
        }
        magnitude = std::max(magnitude, absolute);
      }
      for (long double& w : weight) w = sum > 0 ? w / sum : 0.0L;
      result.out.push_back(out);
      result.weights.push_back(weight);
      result.magnitude.push_back(magnitude);
      result.lse.push_back(sum > 0 ? max + std::log(sum) : -static_cast<long double>(infinity));
    }
  return result;
}

/// Largest deviation of the outputs and lse, relative to sum w|v| and to 1 + |lse|; infinite where one is
/// empty.
double distance(const RequestAttention& got, const Plain& want) {
  long double worst = 0;
  REQUIRE(got.out.rows() == std::ssize(want.out));
  REQUIRE(got.out.cols() == 512);
  for (Eigen::Index r = 0; r < got.out.rows(); ++r) {
    for (int d = 0; d < 512; ++d) {
      const long double error = std::abs(got.out(r, d) - want.out[r][d]);
      if (error > 0) worst = std::max(worst, error / want.magnitude[r]);
    }
    if (got.lse[r] != static_cast<double>(want.lse[r]))
      worst = std::max(worst, std::abs(got.lse[r] - want.lse[r]) / (1 + std::abs(want.lse[r])));
  }
  return static_cast<double>(worst);
}

Problem one_row(int kv_len) {
  return random_problem(7, {1, 1, kv_len, true});
}

}  // namespace

TEST_CASE("attention agrees with a scalar long double loop") {
  rc::prop("random shapes", [] {
    const Shape shape{*rc::gen::inRange(0, 7), *rc::gen::inRange(1, 5), *rc::gen::inRange(0, 40),
                      *rc::gen::arbitrary<bool>()};
    const Problem p = random_problem(*rc::gen::arbitrary<std::uint32_t>(), shape,
                                     *rc::gen::element(0.0, 1.0, 20.0, 1000.0));
    const RequestAttention got = attend(p);
    const Plain want = plain_attention(p);
    REQUIRE(distance(got, want) < tolerance);
    for (Eigen::Index r = 0; r < got.weights.rows(); ++r)
      for (int key = 0; key < shape.kv_len; ++key)
        REQUIRE(std::abs(got.weights(r, key) - want.weights[r][key]) < tolerance);
  });
}

TEST_CASE("attention agrees with a scalar long double loop across block boundaries") {
  for (const int kv_len : {63, 64, 65, 255, 256, 257, 513, 1025}) {
    INFO("kv_len " << kv_len);
    const Problem p = random_problem(3, {3, 5, kv_len, true});
    CHECK(distance(attend(p), plain_attention(p)) < tolerance);
  }
}

TEST_CASE("all parts of the result belong together") {
  const Problem p = random_problem(11, {4, 3, 50, true}, 5);
  const RequestAttention got = attend(p);
  REQUIRE(got.scores.rows() == 12);
  REQUIRE(got.scores.cols() == 50);
  for (int r = 0; r < 12; ++r) {
    const int visible = 50 - 4 + r / 3 + 1;
    CHECK(got.visible[r] == visible);
    CHECK(got.row_max[r] == got.scores.row(r).maxCoeff());
    double sum = 0;
    for (int key = 0; key < 50; ++key) {
      if (key >= visible) {
        CHECK(got.scores(r, key) == -infinity);
        CHECK(got.weights(r, key) == 0);
        continue;
      }
      CHECK(got.weights(r, key) == Approx(std::exp(got.scores(r, key) - got.lse[r])).epsilon(1e-13));
      sum += std::exp(got.scores(r, key) - got.row_max[r]);
    }
    CHECK(got.row_sum[r] == Approx(sum).epsilon(1e-13));
    CHECK(got.lse[r] == Approx(got.row_max[r] + std::log(got.row_sum[r])).epsilon(1e-14));
    CHECK(got.weights.row(r).sum() == Approx(1).epsilon(1e-14));
  }
}

TEST_CASE("one key: the output is its value") {
  const Problem p = one_row(1);
  const RequestAttention got = attend(p);
  CHECK(got.weights(0, 0) == 1);
  for (int d = 0; d < 512; ++d) CHECK(got.out(0, d) == 1.25 * p.k(0, d));
  CHECK(got.lse[0] == got.scores(0, 0));
  CHECK(got.row_sum[0] == 1);
}

TEST_CASE("two keys: the weights are the logistic function of the difference of scores") {
  Problem p = one_row(2);
  p.scales = {1, 1, 1};
  p.q.setZero();
  p.q(0, 575) = 1;
  p.k.setZero();
  p.k(0, 575) = 2;
  p.k(1, 575) = 2 + std::log(3.0);
  p.k(0, 0) = 4;
  p.k(1, 511) = 8;
  const RequestAttention got = attend(p);
  CHECK(got.weights(0, 0) == Approx(0.25).epsilon(1e-15));
  CHECK(got.weights(0, 1) == Approx(0.75).epsilon(1e-15));
  CHECK(got.out(0, 0) == Approx(1).epsilon(1e-15));
  CHECK(got.out(0, 511) == Approx(6).epsilon(1e-15));
  CHECK(got.out.row(0).segment(1, 510).isZero(0));
  CHECK(got.lse[0] == Approx(2 + std::log(4.0)).epsilon(1e-15));
}

TEST_CASE("the scales multiply: scores by all three, outputs by kv_scale") {
  Problem p = one_row(1);
  p.q.setZero();
  p.k.setZero();
  p.q(0, 600 - 576) = 3;
  p.k(0, 600 - 576) = 5;
  p.scales = {0.5, 7, 11};
  const RequestAttention got = attend(p);
  CHECK(got.scores(0, 0) == 3.0 * 5 * 0.5 * 7 * 11);
  CHECK(got.out(0, 24) == 55);
}

TEST_CASE("constant scores: the output is the mean of the values") {
  for (const int kv_len : {2, 3, 64, 4096}) {
    Problem p = one_row(kv_len);
    p.q.setZero();
    const RequestAttention got = attend(p);
    const double weight = 1.0 / kv_len;
    CHECK((got.weights.array() == weight).all());
    const Eigen::RowVectorXd mean = 1.25 * p.k.leftCols(512).colwise().mean();
    CHECK((got.out.row(0) - mean).cwiseAbs().maxCoeff() < tolerance);
    CHECK(got.lse[0] == Approx(std::log(static_cast<double>(kv_len))).epsilon(1e-15));
  }
}

TEST_CASE("equal keys: the output is their value whatever the scores") {
  Problem p = random_problem(5, {3, 2, 100, true}, 50);
  for (int key = 1; key < 100; ++key) p.k.row(key) = p.k.row(0);
  const RequestAttention got = attend(p);
  for (int r = 0; r < 6; ++r)
    for (int d = 0; d < 512; ++d) CHECK(got.out(r, d) == Approx(1.25 * p.k(0, d)).epsilon(1e-13));
}

TEST_CASE("a dominating key takes everything") {
  Problem p = one_row(300);
  p.k.row(123) = 1e4 * p.q.row(0);
  const RequestAttention got = attend(p);
  CHECK(got.weights(0, 123) == 1);
  for (int d = 0; d < 512; ++d) CHECK(got.out(0, d) == 1.25 * p.k(123, d));
  CHECK(got.lse[0] == got.scores(0, 123));
}

TEST_CASE("scores far beyond the range of exp do not overflow") {
  for (const double offset : {-1e5, 1e5}) {
    Problem p = random_problem(9, {2, 2, 200, true});
    p.q.col(575).setConstant(1);
    for (int key = 0; key < 200; ++key) p.k(key, 575) = offset / (0.0721687836487032 * 0.5 * 1.25) + key % 3;
    const RequestAttention got = attend(p);
    CHECK(got.out.allFinite());
    CHECK(got.lse.allFinite());
    CHECK(std::abs(got.lse[0] - offset) < 10);
    // scores of 1e5 lose digits themselves: 1e5 * 2^-53 * a few is what the weights can differ by
    CHECK(distance(got, plain_attention(p)) < 1e-9);
  }
  Problem p = random_problem(9, {2, 2, 200, true}, 1e6);
  const RequestAttention got = attend(p);
  CHECK(got.scores.rightCols(4).maxCoeff() > 1e5);
  CHECK(got.out.allFinite());
}

TEST_CASE("rows without keys are empty") {
  SECTION("kv_len 0") {
    for (const bool causal : {true, false}) {
      const Problem p = random_problem(1, {2, 3, 0, causal});
      const RequestAttention got = attend(p);
      REQUIRE(got.out.rows() == 6);
      CHECK(got.out.isZero(0));
      CHECK((got.lse.array() == -infinity).all());
      CHECK((got.row_max.array() == -infinity).all());
      CHECK(got.row_sum.isZero(0));
      CHECK(got.visible == std::vector<int>(6, 0));
    }
  }
  SECTION("kv_len below q_len: the leading positions see nothing") {
    const Problem p = random_problem(2, {5, 2, 3, true});
    const RequestAttention got = attend(p);
    CHECK(got.visible == std::vector<int>{0, 0, 0, 0, 1, 1, 2, 2, 3, 3});
    CHECK(got.out.topRows(4).isZero(0));
    CHECK((got.lse.head(4).array() == -infinity).all());
    CHECK(got.lse.tail(6).allFinite());
    CHECK(distance(got, plain_attention(p)) < tolerance);
  }
  SECTION("q_len 0") {
    const RequestAttention got = attend(random_problem(3, {0, 2, 10, true}));
    CHECK(got.out.rows() == 0);
    CHECK(got.visible.empty());
  }
}

TEST_CASE("the causal edge is where it should be for every q_len") {
  for (int q_len = 1; q_len <= 16; ++q_len)
    for (const int kv_len : {0, 1, q_len - 1, q_len, q_len + 1, 40}) {
      INFO("q_len " << q_len << ", kv_len " << kv_len);
      Problem p = random_problem(q_len, {q_len, 2, kv_len, true});
      p.q.setZero();                                                      // equal weights: 1 / visible
      for (int key = 0; key < kv_len; ++key) p.k(key, key) = 1000 + key;  // column `key` is seen or not
      p.scales.kv_scale = 1;
      const RequestAttention got = attend(p);
      for (int position = 0; position < q_len; ++position)
        for (int head = 0; head < 2; ++head) {
          const int last_seen = kv_len - q_len + position;
          const int r = position * 2 + head;
          REQUIRE(got.visible[r] == std::max(0, last_seen + 1));
          for (int key = 0; key < kv_len; ++key) {
            REQUIRE((got.weights(r, key) > 0) == (key <= last_seen));
            const bool in_output = std::abs(got.out(r, key)) > 900.0 / kv_len;
            REQUIRE(in_output == (key <= last_seen));
          }
        }
      p.shape.causal = false;
      for (const int visible : attend(p).visible) REQUIRE(visible == kv_len);
    }
}

TEST_CASE("position i of many is a single query with that many keys, to the bit") {
  const Problem p = random_problem(17, {6, 3, 70, true}, 4);
  const RequestAttention together = attend(p);
  for (int position = 0; position < 6; ++position) {
    const int visible = 70 - 6 + position + 1;
    const RequestAttention alone = attest::reference::attend(p.q.middleRows(position * 3, 3),
                                                             p.k.topRows(visible), p.scales, 1, 3, true);
    CHECK((together.out.middleRows(position * 3, 3).array() == alone.out.array()).all());
    CHECK((together.lse.segment(position * 3, 3).array() == alone.lse.array()).all());
  }
}

TEST_CASE("the bits of the results are pinned") {
  // Another machine, compiler, C library or block size must give the same ones.
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](const double* values, Eigen::Index count) {
    for (Eigen::Index i = 0; i < count; ++i)
      hash = (hash ^ std::bit_cast<std::uint64_t>(values[i])) * 0x100000001b3;
  };
  for (const int kv_len : {1, 70, 700}) {
    const RequestAttention got = attend(random_problem(23, {3, 5, kv_len, true}, 6));
    add(got.weights.data(), got.weights.size());
    add(got.out.data(), got.out.size());
    add(got.lse.data(), got.lse.size());
  }
  CHECK(hash == 0x4fd3e761eadf66a8);
}

TEST_CASE("non-finite inputs reach exactly the rows that see them") {
  for (const double bad : {not_a_number, infinity, -infinity})
    for (const int column : {0, 511, 575}) {
      INFO("value " << bad << " in column " << column);
      Problem p = random_problem(4, {4, 2, 20, true});
      const RequestAttention clean = attend(p);
      p.k(18, column) = bad;  // seen by positions 2 and 3
      const RequestAttention got = attend(p);
      CHECK((got.out.topRows(4).array() == clean.out.topRows(4).array()).all());
      CHECK((got.lse.head(4).array() == clean.lse.head(4).array()).all());
      for (int r = 4; r < 8; ++r) {
        const double score = got.scores(r, 18);
        if (bad != bad || score == infinity) {
          CHECK(got.out.row(r).array().isNaN().all());
          CHECK(std::isnan(got.lse[r]));
        } else {  // a score of -inf weighs 0; only 0 * inf in its own column shows
          CHECK(score == -infinity);
          CHECK(got.weights(r, 18) == 0);
          CHECK(std::isfinite(got.lse[r]));
          CHECK(got.out.row(r).array().isNaN().count() == (column < 512 ? 1 : 0));
        }
      }
    }
  Problem p = random_problem(4, {2, 2, 20, true});
  p.q(1, 7) = not_a_number;
  const RequestAttention got = attend(p);
  CHECK(got.out.row(1).array().isNaN().all());
  CHECK(got.out.row(0).allFinite());
  CHECK(got.out.bottomRows(2).allFinite());
}

TEST_CASE("shapes that do not fit are refused") {
  const Matrix q = Matrix::Zero(4, 576), k = Matrix::Zero(8, 576);
  using Catch::Contains;
  CHECK_THROWS_WITH(attest::reference::attend(q, k, {}, 3, 2, true),
                    Contains("q is [4, 576]") && Contains("[6, 576]"));
  CHECK_THROWS_WITH(attest::reference::attend(Matrix::Zero(4, 512), k, {}, 2, 2, true),
                    Contains("q is [4, 512]"));
  CHECK_THROWS_WITH(attest::reference::attend(q, Matrix::Zero(8, 512), {}, 2, 2, true),
                    Contains("k is [8, 512]"));
  CHECK_THROWS_WITH(attest::reference::attend(q, k, {}, -1, 2, true), Contains("q_len -1"));
  CHECK_THROWS_WITH(attest::reference::attend(q, k, {}, 2, 0, true), Contains("heads 0"));
}

TEST_CASE("the comparison with the plain loop sees every planted mistake") {
  const Problem p = random_problem(21, {3, 2, 37, true}, 3);
  const RequestAttention got = attend(p);
  REQUIRE(distance(got, plain_attention(p)) < tolerance);
  for (const Mistake mistake :
       {Mistake::mask_late, Mistake::mask_early, Mistake::top_left_mask, Mistake::no_q_scale,
        Mistake::v_unscaled, Mistake::v_from_the_end, Mistake::first_row_for_all, Mistake::rows_swapped}) {
    INFO("mistake " << static_cast<int>(mistake));
    CHECK(distance(got, plain_attention(p, mistake)) > 1e6 * tolerance);
  }
}

TEST_CASE("Attention with V apart and any bound per row is the definition") {
  const Eigen::Index keys = 11, rows = 5;
  Matrix q(rows, 7), k(keys, 7), v(keys, 3);
  for (Eigen::Index i = 0; i < q.size(); ++i) q.data()[i] = std::sin(1.3 * static_cast<double>(i));
  for (Eigen::Index i = 0; i < k.size(); ++i) k.data()[i] = std::cos(0.9 * static_cast<double>(i));
  for (Eigen::Index i = 0; i < v.size(); ++i) v.data()[i] = std::sin(0.4 * static_cast<double>(i) + 1);
  v(10, 0) = std::nan("");  // no row sees the last key
  const std::vector<int> visible = {0, 0, 4, 4, 10};
  const RequestAttention a = attend_visible(q, k, v, {0.7, 1, 2}, visible);
  for (Eigen::Index r = 0; r < rows; ++r) {
    double sum = 0;
    std::vector<double> out(3, 0.0);
    for (int j = 0; j < visible[static_cast<std::size_t>(r)]; ++j) {
      const double weight = std::exp(2 * 0.7 * q.row(r).dot(k.row(j)));
      sum += weight;
      for (std::size_t d = 0; d < 3; ++d) out[d] += 2 * weight * v(j, static_cast<Eigen::Index>(d));
    }
    for (std::size_t d = 0; d < 3; ++d) {
      const double expected = sum == 0 ? 0 : out[d] / sum;
      CHECK(a.out(r, static_cast<Eigen::Index>(d)) == Approx(expected).margin(1e-13));
    }
    if (sum > 0) CHECK(a.lse[r] == Approx(std::log(sum)).epsilon(1e-12));
    if (sum == 0) CHECK(std::isinf(a.lse[r]));
  }
  CHECK_THROWS_AS(attend_visible(q, k, v, {}, {0, 0, 4, 3, 10}), std::invalid_argument);
  CHECK_THROWS_AS(attend_visible(q, k, v, {}, {0, 0, 4, 4, 12}), std::invalid_argument);
  CHECK_THROWS_AS(attend_visible(q, k, v, {}, {0, 0, 4}), std::invalid_argument);
}
