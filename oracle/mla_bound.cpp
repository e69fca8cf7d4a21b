// SPDX-License-Identifier: MIT
//
// The error of a correct attention kernel, from its data
// ======================================================
//
// The problem. A decode kernel computes o = kv_scale * sum_j w_j v_j in f32 with P rounded to bf16 or fp8.
// How far may its y be from the exact o? A fixed tolerance is the obvious answer and it fails: outputs, and
// the weight of a single token, shrink like 1/kv_len, a tolerance does not, so at 8192 tokens "1e-2" accepts
// a causal mask that is off by one. A worst-case forward bound (Higham, Accuracy and Stability of Numerical
// Algorithms, 2nd ed., section 3.1) adapts to the data but assumes that all roundings of P conspire; they do
// not, and their sum grows like sqrt(n_eff) where the bound grows like n_eff. It goes blind in its own way.
// So two bounds are computed, and the smaller one holds: one certain, one with independent roundings (Higham
// and Mary, SIAM J. Sci. Comput. 41(5), 2019) eight deviations wide.
//
// Where errors enter. u = 2^-24. With s_j the scores, m their maximum, l = sum exp(s_j - m), w_j = exp(s_j -
// m) / l, a kernel works with weights p_j (1 + theta_j), the same in numerator and row sum, and rounds P on
// the way into the matrix unit, p_j (1 + theta_j) (1 + phi_j), which only the numerator sees unless the row
// sum is taken from the rounded P. To first order, numerator over row sum gives
//
//   y - o = sum_j w_j theta_j (v_j - o) + sum_j w_j phi_j v_j              row sum from the unrounded P
//   y - o = sum_j w_j (theta_j + phi_j) (v_j - o)                          row sum from the rounded P
//
// and what all tokens have in common cancels: a wrong running maximum costs nothing, only differences count.
//
// theta_j, the score. 576 (in general: depth) exact products are summed in an accumulator of roundoff `a`: at
// most 576 a sum|q_i k_ij|, and sum|q_i k_ij| <= ||q|| ||k_j|| needs norms, no further matrix product. A_j =
// |sigma| ||q|| ||k_j||, sigma the product of the scales. Scaling and the subtraction of the maximum round
// quantities of size |s_j|, |m| and, when splits are merged, |lse|: th = 3u (max|s_j| + |m| + |lse|), over tokens that
// matter (w_j > 1e-30). exp2 adds 2ue, and each of at most T = ceil(n / tile) rescalings multiplies
// everything before it by a factor wrong by 2u(e + 1). Together
//
//   dW_j = 576 a A_j + th + 2u(e + 1)(1 + T)                               certain
//   dP_j = 0.35 sqrt(576) a A_j + 2u(e + 1) sqrt(1 + T)                    one deviation
//
// (th is left out of dP: it may be common to many tokens, and is treated as coherent below. 0.35: a rounding
// to nearest of relative size at most a, uniform, has deviation a/sqrt(3), and partial sums are mostly
// smaller than their norm bound.)
//
// phi_j, the rounding of P. |phi_j| <= f_j = min(1, max(uP, eta / (w_j l))). eta is the absolute floor of a
// format with few exponents: half the smallest subnormal, for P scaled to a maximum of 1. A token with w_j l
// < eta is flushed, and its phi is -1, not random: its variance is f^2. Otherwise a rounding is uniform in
// its cell: f^2 / 3. c_j is that factor, 1 or 1/3.
//
// Lists of slots (mla_sparse). A key that occurs c times has one score and, relative to the same maximum, one
// P: its c roundings are one rounding of c w, whose variance is c^2 w^2 f^2, so each occurrence counts c
// times in the sums of squares. Holes are no keys; the tiles that rescale are those with a key, at most T =
// min(n, ceil(places / tile)).
//
// The two sums that need all tokens are matrix products of the shape of P V:
//
//   GA_d = kv_scale   sum_j w_j   (f_j + dW_j)         |v_jd|              certain: all errors align
//   GQ_d = kv_scale^2 sum_j w_j^2 (c_j f_j^2 + dP_j^2) v_jd^2              variance
//
// and everything else follows from row sums F = sum w f, D = sum w dW, W2d = sum w^2 dP^2, W2f = sum w^2 c
// f^2 and from A1 = min(GA / uP, kv_scale max|v|) >= sum w|v| and S = sqrt(3 GQ) / uP >= sqrt(sum w^2 v^2),
// which both products give away for free. With N = n + T additions of P V, [r] = 1 when the row sum is of
// rounded P, and up the roundoff of the partials that splits leave behind:
//
//   Ewc = 1.02 (GA + |o| (D + [r] F) + (N + 17) a A1 + |o| (n + 17 + T) u + 6u|o| + 1.01 up (A1 + |o|)) +
//   floor sig^2 = GQ + o^2 (W2d + [r] W2f) + (sqrt(N) u min(A1, sqrt(n) S + |o|))^2 + up^2/3 (S^2 + o^2) +
//   floor^2 coh = [not r] F|o| + 2 th (A1 + |o|) + |o| u (8 sqrt(N) + 8) Epr = 8 sig + coh + floor E   =
//   min(1.5 Ewc, Epr)
//
// 17 and 6u pay for the row sum's reduction across lanes, the division, the descale and the merge of up to 32
// splits; 2 % for second order terms. The coherent part: tokens of equal score round equally, so a common
// share of phi, at most F, survives averaging as a factor on o. floor pays for flushing of subnormals in the
// kernel and for what the f32 products below drop: 2^-126 (2 kv_scale (1 + n/l) + 2) + (2e-29 sqrt(n) + 1e-30
// n) kv_scale max|v|.
//
// The lse is m + ln l and has no V in it; one lost token moves it by its whole weight:
//
//   base = 1.5u (|m| + |lse| + 1) + 2u (e + 2)
//   Lwc  = 1.02 (D + [r] F) + (n + 17 + T) u + base
//   Lpr  = 8 sqrt(W2d + [r] W2f) + [r] F + th/3 + sqrt(N) u / 2 + base
//   El   = min(Lpr, 1.5 Lwc)
//
// Cost. GA and GQ are as large as P V itself, so they are made in f32, a block of keys at a time while it is
// in cache. All terms are positive, so the products lose no more than n u in relative terms. Range is the
// problem: w^2 underflows f32 when w < 1e-19. The weights of GQ carry a factor 1e20, V is divided by its
// largest row norm, weights below 1e-30 are dropped (a subnormal operand costs a hundred times a normal one,
// and the floor pays for them), and the element formulas run in the same units: 1e10 / (kv_scale * that
// norm).
//
// A kernel that computes in f32 may overflow where fp64 does not. If |q||k_j| or the unnormalised sum l sum
// w|v| can reach 2^127, nothing is claimed about the row.
#include "oracle/mla_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "reference/matrix_product.h"

namespace attest::oracle {
namespace {

using Eigen::Index;
using reference::MatrixF;
using RowF = Eigen::Array<float, 1, Eigen::Dynamic>;
using Row = Eigen::Array<double, 1, Eigen::Dynamic>;

constexpr double u = 0x1p-24;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double f32_range = 0x1p127;
constexpr double negligible_weight = 1e-30;
constexpr double range_lift = 1e10;  // of element quantities; squared for GQ
constexpr Index key_block = 256;

/// The scalars of one row.
struct RowTerms {
  double n = 0, tiles = 0, additions = 0;    // n, T, N
  double row_max = 0, row_sum = 1, lse = 0;  // m, l
  double th = 0;
  double score_slope = 0;                        // A_j = score_slope * ||k_j||
  double worst_constant = 0, worst_slope = 0;    // dW_j = constant + slope ||k_j||
  double random_constant = 0, random_slope = 0;  // dP_j
  double F = 0, D = 0, W2d = 0, W2f = 0, W2 = 0, flushed = 0;
  double floor = 0;
};

RowTerms start(const BoundRequest& request, const PrecisionProfile& p, Index r) {
  const auto& a = request.attention;
  RowTerms t;
  const Index n = a.visible[static_cast<std::size_t>(r)];
  t.n = static_cast<double>(n);
  t.tiles = request.walk == 0 ? std::ceil(t.n / p.tile)
                              : std::min(t.n, std::ceil(static_cast<double>(request.walk) / p.tile));
  t.additions = t.n + t.tiles;
  t.row_max = a.row_max[r];
  t.row_sum = a.row_sum[r];
  t.lse = a.lse[r];
  double largest_score = 0;
  const double* scores = &a.scores(r, 0);
  const double* weights = &a.weights(r, 0);
  for (Index j = 0; j < n; ++j) {
    const double s = weights[j] > negligible_weight ? std::abs(scores[j]) : 0.0;
    largest_score = s > largest_score ? s : largest_score;
  }
  t.th = 3 * u * (largest_score + std::abs(t.row_max) + std::abs(t.lse));
  const double sigma = std::abs(request.scales.sm_scale * request.scales.q_scale * request.scales.kv_scale);
  const double d = request.depth;
  const double exp2_error = 2 * u * (p.exp2_ulp + 1);
  t.score_slope = sigma * request.q_norms[r];
  t.worst_slope = d * p.accumulator * t.score_slope;
  t.worst_constant = t.th + exp2_error * (1 + t.tiles);
  t.random_slope = 0.35 * std::sqrt(d) * p.accumulator * t.score_slope;
  t.random_constant = exp2_error * std::sqrt(1 + t.tiles);
  return t;
}

// The token weights of GA and GQ for keys [first, first + count) of a row, and the row sums on the way.
void token_weights(const BoundRequest& request, const PrecisionProfile& p, Index r, Index first, Index count,
                   RowTerms& t, float* certain, float* variance) {
  const double* weights = &request.attention.weights(r, first);
  const double* norms = &request.k_norms[first];
  const int* repeated = request.repetitions.empty() ? nullptr : &request.repetitions[first];
  const auto accumulate = [&](double w, double f, double cf2, double norm, Index j) {
    const double dW = t.worst_constant + t.worst_slope * norm;
    const double dP = t.random_constant + t.random_slope * norm;
    const double w2 = w * w * (repeated == nullptr ? 1 : repeated[j]);
    t.F += w * f;
    t.D += w * dW;
    t.W2 += w2;
    t.W2d += w2 * dP * dP;
    t.W2f += w2 * cf2;
    const bool counts = w >= negligible_weight;
    certain[j] = static_cast<float>(counts ? w * (f + dW) : 0.0);
    variance[j] = static_cast<float>(counts ? w2 * (cf2 + dP * dP) * (range_lift * range_lift) : 0.0);
  };
  if (p.p_floor == 0) {
    const double f = std::min(1.0, p.p_roundoff), cf2 = f * f / 3;
    for (Index j = 0; j < count; ++j) accumulate(weights[j], f, cf2, norms[j], j);
    return;
  }
  for (Index j = 0; j < count; ++j) {
    const double scaled = weights[j] * t.row_sum;
    const bool flushes = scaled < p.p_floor;
    const double f = flushes ? 1.0 : std::min(1.0, std::max(p.p_roundoff, p.p_floor / scaled));
    if (flushes) t.flushed += weights[j];
    accumulate(weights[j], f, flushes ? f * f : f * f / 3, norms[j], j);
  }
}

double lse_bound(const RowTerms& t, const PrecisionProfile& p) {
  const double rounded = p.row_sum == RowSum::from_rounded ? 1 : 0;
  const double base = 1.5 * u * (std::abs(t.row_max) + std::abs(t.lse) + 1) + 2 * u * (p.exp2_ulp + 2);
  const double worst = 1.02 * (t.D + rounded * t.F) + (t.n + 17 + t.tiles) * u + base;
  const double random = 8 * std::sqrt(t.W2d + rounded * t.W2f) + rounded * t.F + t.th / 3 +
                        std::sqrt(t.additions) * u / 2 + base;
  return std::min(random, 1.5 * worst);
}

}  // namespace

Vector row_norms(const Matrix& m) {
  return m.rowwise().norm();
}

MlaBound bound_mla(const BoundRequest& request, const PrecisionProfile& p) {
  const auto& a = request.attention;
  const Index rows = static_cast<Index>(a.visible.size());
  const Index columns = request.values.cols();
  const Index keys = request.values.rows();
  MlaBound bound;
  bound.row_class.assign(static_cast<std::size_t>(rows), RowClass::judged);
  bound.element = Matrix::Constant(rows, columns, infinity);
  bound.deviation = Matrix::Constant(rows, columns, infinity);
  bound.lse = Vector::Constant(rows, infinity);
  bound.scale = Vector::Constant(rows, infinity);
  bound.n_eff = Vector::Zero(rows);
  bound.flushed = Vector::Zero(rows);

  const double largest_norm = keys > 0 ? request.k_norms.maxCoeff<Eigen::PropagateNaN>() : 0.0;
  // A power of two, so that dividing by it is exact and cheap.
  const double unit =
      std::isfinite(largest_norm) && largest_norm > 0 ? std::ldexp(1.0, std::ilogb(largest_norm) + 1) : 1.0;
  const double per_unit = 1 / unit;
  std::vector<RowTerms> terms(static_cast<std::size_t>(rows));
  Index seen = 0;
  for (Index r = 0; r < rows; ++r) {
    RowClass& row_class = bound.row_class[static_cast<std::size_t>(r)];
    if (a.visible[static_cast<std::size_t>(r)] <= 0) {
      row_class = RowClass::empty;
      continue;
    }
    if (!std::isfinite(a.lse[r]) || !a.out.row(r).allFinite()) {
      row_class = RowClass::non_finite;
      continue;
    }
    // Non-finite V beyond this row's keys must not reach it, so such a request loses its vector form: no
    // claim.
    if (!(request.q_norms[r] * largest_norm < f32_range) ||
        !(std::abs(request.scales.sm_scale * request.scales.q_scale * request.scales.kv_scale) *
              request.q_norms[r] * largest_norm <
          f32_range)) {
      row_class = RowClass::out_of_range;
      continue;
    }
    terms[static_cast<std::size_t>(r)] = start(request, p, r);
    seen = std::max<Index>(seen, a.visible[static_cast<std::size_t>(r)]);
  }

  MatrixF certain = MatrixF::Zero(rows, columns), variance = MatrixF::Zero(rows, columns);
  const Index block = std::min(key_block, seen);
  MatrixF certain_weights(rows, block), variance_weights(rows, block);
  MatrixF magnitude(block, columns), square(block, columns);
  float largest_value = 0;
  for (Index first = 0; first < seen; first += key_block) {
    const Index count = std::min(key_block, seen - first);
    magnitude.topRows(count) =
        (request.values.middleRows(first, count).array().abs() * per_unit).cast<float>().matrix();
    square.topRows(count) = magnitude.topRows(count).cwiseAbs2();
    largest_value = std::max(largest_value, magnitude.topRows(count).maxCoeff());
    for (Index r = 0; r < rows; ++r) {
      const Index visible = bound.row_class[static_cast<std::size_t>(r)] == RowClass::judged
                                ? a.visible[static_cast<std::size_t>(r)]
                                : 0;
      const Index sees = std::clamp<Index>(visible - first, 0, count);
      if (sees > 0)
        token_weights(request, p, r, first, sees, terms[static_cast<std::size_t>(r)], &certain_weights(r, 0),
                      &variance_weights(r, 0));
      certain_weights.row(r).segment(sees, count - sees).setZero();
      variance_weights.row(r).segment(sees, count - sees).setZero();
    }
    reference::add_product(certain_weights.leftCols(count), magnitude.topRows(count), certain);
    reference::add_product(variance_weights.leftCols(count), square.topRows(count), variance);
  }

  const double kv_scale = std::abs(request.scales.kv_scale);
  const double element_unit = unit * kv_scale / range_lift;
  const bool sum_rounded = p.row_sum == RowSum::from_rounded;
  RowF o(columns), A1(columns), S2(columns), sigma(columns), worst(columns), random(columns);
  for (Index r = 0; r < rows; ++r) {
    if (bound.row_class[static_cast<std::size_t>(r)] != RowClass::judged) continue;
    RowTerms& t = terms[static_cast<std::size_t>(r)];
    bound.n_eff[r] = 1 / t.W2;
    bound.flushed[r] = t.flushed;
    bound.scale[r] = t.F + 2 * t.th;
    bound.lse[r] = lse_bound(t, p);

    const double largest_output = kv_scale * unit * static_cast<double>(largest_value);
    t.floor = 0x1p-126 * (2 * kv_scale * (1 + t.n / t.row_sum) + 2) +
              (2e-29 * std::sqrt(t.n) + 1e-30 * t.n) * largest_output;
    const auto f32 = [](double x) { return static_cast<float>(x); };
    const double N = t.additions, root_N = std::sqrt(N), up = p.partial_roundoff;
    // An all-zero V leaves no unit to measure in; the floor is the whole bound there.
    if (!(element_unit > 0) || largest_value == 0) {
      bound.element.row(r).setConstant(t.floor);
      bound.deviation.row(r).setConstant(t.floor);
      continue;
    }
    const float floor = f32(std::min(t.floor / element_unit, 1e30));
    o = (a.out.row(r).array().abs() / element_unit).cast<float>();
    const auto GA = certain.row(r).array() * f32(range_lift);
    const auto GQ = variance.row(r).array();
    A1 = (GA * f32(1 / p.p_roundoff)).min(f32(range_lift) * largest_value);
    S2 = GQ * f32(3 / (p.p_roundoff * p.p_roundoff));
    worst =
        1.02F * (GA + o * f32(t.D + (sum_rounded ? t.F : 0) + (t.n + 17 + t.tiles) * u + 6 * u + 1.01 * up) +
                 A1 * f32((N + 17) * p.accumulator + 1.01 * up)) +
        floor;
    sigma = (GQ + o.square() * f32(t.W2d + (sum_rounded ? t.W2f : 0) + up * up / 3) +
             (A1.min(f32(std::sqrt(t.n)) * S2.sqrt() + o) * f32(root_N * u)).square() + S2 * f32(up * up / 3))
                .sqrt() +
            floor;
    random = 8 * sigma + A1 * f32(2 * t.th) +
             o * f32((sum_rounded ? 0 : t.F) + 2 * t.th + u * (8 * root_N + 8)) + floor;
    bound.element.row(r) = ((1.5F * worst).min(random)).cast<double>().matrix() * element_unit;
    bound.deviation.row(r) = sigma.cast<double>().matrix() * element_unit;

    // The unnormalised sum of an online softmax is l / kv_scale times the output.
    if (!(t.row_sum * unit * static_cast<double>(largest_value) * std::max(1.0, kv_scale) < f32_range))
      bound.row_class[static_cast<std::size_t>(r)] = RowClass::out_of_range;
  }
  return bound;
}

const char* dominating_term(const BoundRequest& request, const PrecisionProfile& p, Index row, Index column) {
  const auto& a = request.attention;
  RowTerms t = start(request, p, row);
  const Index n = a.visible[static_cast<std::size_t>(row)];
  // Worst-case sizes per cause; their ratios name the cause in the probabilistic bound as well.
  double rounding = 0, scores = 0, magnitude = 0;
  for (Index j = 0; j < n; ++j) {
    const double w = a.weights(row, j), scaled = w * t.row_sum, v = std::abs(request.values(j, column));
    const double f = scaled < p.p_floor ? 1.0 : std::min(1.0, std::max(p.p_roundoff, p.p_floor / scaled));
    const double dW = t.worst_constant + t.worst_slope * request.k_norms[j];
    rounding += w * f * v;
    scores += w * dW * v;
    magnitude += w * v;
    t.F += w * f;
    t.D += w * dW;
  }
  const double kv_scale = std::abs(request.scales.kv_scale), o = std::abs(a.out(row, column));
  const double rounded = p.row_sum == RowSum::from_rounded ? 1 : 0;
  struct Term {
    double size;
    const char* name;
  };
  const std::array<Term, 6> candidates = {{
      {kv_scale * rounding + rounded * o * t.F, "P rounding"},
      {kv_scale * scores + o * t.D, "scores"},
      {(t.additions + 17) * p.accumulator * kv_scale * magnitude, "accumulation"},
      {o * (t.n + 23 + t.tiles) * u, "row sum"},
      {p.partial_roundoff * (kv_scale * magnitude + o), "split partials"},
      {0x1p-126 * (2 * kv_scale * (1 + t.n / t.row_sum) + 2), "flush to zero"},
  }};
  return std::max_element(candidates.begin(), candidates.end(),
                          [](const Term& x, const Term& y) { return x.size < y.size; })
      ->name;
}

}  // namespace attest::oracle
