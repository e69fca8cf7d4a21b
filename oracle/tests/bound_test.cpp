// SPDX-License-Identifier: MIT
#include <catch2/catch.hpp>
#include <cmath>
#include <stdexcept>
#include <string>

#include "oracle/mla_bound.h"
#include "oracle/precision.h"
#include "oracle/rounding_grid.h"
#include "oracle/tests/random_cases.h"
#include "oracle/verdict.h"
#include "reference/formats.h"

using namespace attest;
using namespace attest::oracle;
using namespace attest::oracle::testing;

namespace {

Matrix random_matrix(Dice& dice, Eigen::Index rows, Eigen::Index columns, double scale) {
  Matrix m(rows, columns);
  for (Eigen::Index i = 0; i < m.size(); ++i) {
    double sum = 0;
    for (int k = 0; k < 12; ++k) sum += static_cast<double>(dice.below(1 << 20)) / (1 << 20);
    m.data()[i] = scale * (sum - 6);
  }
  return m;
}

/// The equations of mla_bound.cpp for one element, in long double, term by term.
struct PlainBound {
  long double element, deviation, lse;
};
PlainBound plain(const reference::RequestAttention& a, const Matrix& q, const Matrix& k,
                 const reference::AttentionScales& scales, const PrecisionProfile& p, Eigen::Index r,
                 Eigen::Index d) {
  using real = long double;
  const real u = 0x1p-24L, e = p.exp2_ulp, uP = p.p_roundoff, eta = p.p_floor, acc = p.accumulator,
             up = p.partial_roundoff;
  const int n = a.visible[static_cast<std::size_t>(r)];
  const real T = std::ceil(static_cast<real>(n) / p.tile), N = n + T;
  const real kv = scales.kv_scale, sigma = scales.sm_scale * scales.q_scale * kv, l = a.row_sum[r];
  real score = 0, largest = 0;
  for (int j = 0; j < n; ++j) {
    if (a.weights(r, j) > 1e-30) score = std::max<real>(score, std::abs(a.scores(r, j)));
    for (int c = 0; c < 512; ++c) largest = std::max<real>(largest, std::abs(k(j, c)));
  }
  const real th = 3 * u * (score + std::abs(a.row_max[r]) + std::abs(a.lse[r]));
  real GA = 0, GQ = 0, F = 0, D = 0, W2d = 0, W2f = 0;
  for (int j = 0; j < n; ++j) {
    const real w = a.weights(r, j), A = sigma * q.row(r).norm() * k.row(j).norm(), v = std::abs(k(j, d));
    const real f = w > 0 ? std::min<real>(1, std::max<real>(uP, eta / (w * l))) : eta > 0 ? 1 : uP;
    const real c = w * l < eta ? 1 : 1 / 3.0L;
    const real dW = 576 * acc * A + th + 2 * u * (e + 1) * (1 + T);
    const real dP = 0.35L * std::sqrt(576.0L) * acc * A + 2 * u * (e + 1) * std::sqrt(1 + T);
    GA += kv * w * (f + dW) * v;
    GQ += kv * kv * w * w * (c * f * f + dP * dP) * v * v;
    F += w * f;
    D += w * dW;
    W2d += w * w * dP * dP;
    W2f += w * w * c * f * f;
  }
  const real o = std::abs(a.out(r, d)), R = p.row_sum == RowSum::from_rounded ? 1 : 0;
  const real A1 = std::min(GA / uP, kv * largest), S = std::sqrt(3 * GQ) / uP;
  const real floor = 0x1p-126L * (2 * kv * (1 + n / l) + 2) +
                     (2e-29L * std::sqrt(static_cast<real>(n)) + 1e-30L * n) * kv * largest;
  const real worst = 1.02L * (GA + o * (D + R * F) + (N + 17) * acc * A1 + o * (n + 17 + T) * u + 6 * u * o +
                              up * 1.01L * (A1 + o)) +
                     floor;
  const real noise = std::sqrt(N) * u * std::min(A1, std::sqrt(static_cast<real>(n)) * S + o);
  const real sig =
      std::sqrt(GQ + o * o * (W2d + R * W2f) + noise * noise + up * up / 3 * (S * S + o * o)) + floor;
  const real coherent = (1 - R) * F * o + 2 * th * (A1 + o) + o * u * (8 * std::sqrt(N) + 8);
  const real base = 1.5L * u * (std::abs(a.row_max[r]) + std::abs(a.lse[r]) + 1) + 2 * u * (e + 2);
  const real lse_worst = 1.02L * (D + R * F) + (n + 17 + T) * u + base;
  const real lse_random = 8 * std::sqrt(W2d + R * W2f) + R * F + th / 3 + std::sqrt(N) * u / 2 + base;
  return {std::min(1.5L * worst, 8 * sig + coherent + floor), sig, std::min(lse_random, 1.5L * lse_worst)};
}

}  // namespace

TEST_CASE("The bound is the equations, for every profile") {
  Dice dice(7);
  for (const char* name : {"bf16", "bf16-trunc", "bf16-any", "bf16-sumrounded", "fp8p-fnuz", "fp8p-ocp",
                           "fp32p", "bf16+part16", "fp8p-ocp+u14"}) {
    const PrecisionProfile& p = profile(name);
    for (const int kv_len : {1, 2, 40, 300}) {
      const int q_len = std::min(kv_len, 3), heads = 2;
      const double q_scale = dice.of({0.5, 1.0, 6.0});
      const Matrix q = random_matrix(dice, q_len * heads, 576, q_scale),
                   k = random_matrix(dice, kv_len, 576, 1.0);
      const reference::AttentionScales scales{0.0721687824, 1.3, dice.of({0.4, 1.0, 2.5})};
      const auto a = reference::attend(q, k, scales, q_len, heads, true);
      const Vector q_norms = row_norms(q), k_norms = row_norms(k);
      const MlaBound bound = bound_mla({a, k.leftCols(512), q_norms, k_norms, scales}, p);
      for (const Eigen::Index d : {0, 17, 511})
        for (Eigen::Index r = 0; r < q.rows(); ++r) {
          const PlainBound expected = plain(a, q, k, scales, p, r, d);
          INFO(name << " kv_len " << kv_len << " row " << r << " column " << d);
          CHECK(bound.element(r, d) == Approx(static_cast<double>(expected.element)).epsilon(1e-4));
          CHECK(bound.deviation(r, d) == Approx(static_cast<double>(expected.deviation)).epsilon(1e-4));
          CHECK(bound.lse[r] == Approx(static_cast<double>(expected.lse)).epsilon(1e-9));
        }
    }
  }
}

TEST_CASE("The bound shrinks with the context where a worst case does not") {
  Dice dice(11);
  double relative[2] = {0, 0};
  int at = 0;
  for (const int kv_len : {128, 2048}) {
    const Matrix q = random_matrix(dice, 2, 576, 1), k = random_matrix(dice, kv_len, 576, 1);
    const reference::AttentionScales scales{1 / 24.0, 1, 1};
    const auto a = reference::attend(q, k, scales, 1, 2, true);
    const MlaBound bound =
        bound_mla({a, k.leftCols(512), row_norms(q), row_norms(k), scales}, profile("bf16"));
    relative[at++] =
        bound.element.mean() / std::sqrt(a.out.squaredNorm() / static_cast<double>(a.out.size()));
    CHECK(bound.lse.maxCoeff() < 4e-5);
  }
  CHECK(relative[0] < 0.03);
  CHECK(relative[1] < relative[0]);
}

TEST_CASE("Rows about which nothing can be claimed are named") {
  Dice dice(3);
  const reference::AttentionScales scales{1 / 24.0, 1, 1};
  Matrix q = random_matrix(dice, 3, 576, 1), k = random_matrix(dice, 2, 576, 1);
  q(2, 0) = std::nan("");
  const auto a = reference::attend(q, k, scales, 3, 1, true);  // the first position sees no key
  const MlaBound bound = bound_mla({a, k.leftCols(512), row_norms(q), row_norms(k), scales}, profile("bf16"));
  CHECK(bound.row_class == std::vector{RowClass::empty, RowClass::judged, RowClass::non_finite});
  CHECK(std::isinf(bound.element(0, 0)));

  const Matrix huge = 1e36 * random_matrix(dice, 2, 576, 1);
  const auto b = reference::attend(huge, huge, {1e-76, 1, 1}, 1, 2, true);
  const MlaBound none =
      bound_mla({b, huge.leftCols(512), row_norms(huge), row_norms(huge), {1e-76, 1, 1}}, profile("bf16"));
  CHECK(none.row_class[0] == RowClass::out_of_range);
}

TEST_CASE("The dominating term is named") {
  Dice dice(5);
  const reference::AttentionScales scales{1 / 24.0, 1, 1};
  const Matrix q = random_matrix(dice, 1, 576, 1), k = random_matrix(dice, 64, 576, 1);
  const auto term = [&](const Matrix& queries, const char* name) {
    const auto a = reference::attend(queries, k, scales, 1, 1, true);
    const Vector q_norms = row_norms(queries), k_norms = row_norms(k);
    return std::string(dominating_term({a, k.leftCols(512), q_norms, k_norms, scales}, profile(name), 0, 3));
  };
  CHECK(term(q, "bf16") == "P rounding");
  CHECK(term(q, "fp32p") == "scores");
  CHECK(term(200 * q, "bf16") == "scores");
  CHECK(term(Matrix(1e-3 * q), "fp32p") == "accumulation");
}

TEST_CASE("Profiles by name, composed by suffix") {
  CHECK(profile("fp8p-fnuz").p_floor == 0x1p-11);
  CHECK(profile("fp8p-ocp").p_floor == 0x1p-10);
  CHECK(profile("bf16+part16").partial_roundoff == 0x1p-8);
  CHECK(profile("bf16+part16").name == "bf16+part16");
  CHECK(profile("bf16+u14+emptyinf").lse_empty == std::numeric_limits<double>::infinity());
  CHECK(profile("bf16").lse_empty == -std::numeric_limits<double>::infinity());
  CHECK(&profile("bf16") == &profile("bf16"));
  CHECK(profile_names().size() == 7);
  for (const char* bad : {"", "bf17", "bf16+", "bf16+part8", "+u14"}) {
    INFO(bad);
    CHECK_THROWS_WITH(profile(bad), Catch::Contains("known: bf16, bf16-trunc") && Catch::Contains("+part16"));
  }
}

TEST_CASE("The output grid rounds as the format does") {
  Dice dice(1);
  const RoundingGrid grid = RoundingGrid::of(cases::Format::bf16);
  CHECK(grid.max_finite == reference::max_finite(reference::Format::bf16));
  CHECK(RoundingGrid::of(cases::Format::f16).max_finite == 65504);
  CHECK(RoundingGrid::of(cases::Format::f32).step(1.0) == 0x1p-23);
  CHECK_THROWS_AS(RoundingGrid::of(cases::Format::e8m0), std::invalid_argument);
  for (int i = 0; i < 20000; ++i) {
    const double x = std::ldexp(static_cast<double>(dice.next() >> 40) - 0x1p23, dice.between(-160, 100));
    const double rounded =
        reference::decode(reference::Format::bf16,
                          reference::encode(reference::Format::bf16, x, reference::Overflow::to_special));
    CHECK(grid.nearest(x) == rounded);
  }
}

TEST_CASE("Signatures gather what one defect does to a result") {
  Verdict v;
  v.kind = VerdictKind::fail;
  v.stage = "element";
  v.diagnosis = "query rows identical";
  CHECK(signature("mla_decode", "attest/mla_decode+x", v) ==
        "mla_decode/attest/mla_decode+x/fail/result/query rows identical");
  const std::string by_element = signature("mla_decode", "k", v);
  v.stage = "lse";
  CHECK(signature("mla_decode", "k", v) == by_element);
  v.stage = "guard";
  CHECK(signature("mla_decode", "k", v) != by_element);
  CHECK(std::string(name(VerdictKind::mistrusted)) == "mistrusted");
}
