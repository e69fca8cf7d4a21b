// SPDX-License-Identifier: MIT
#include "reference/merge.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "reference/attention.h"

using namespace attest::reference;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Matrix rows(std::initializer_list<std::initializer_list<double>> values) {
  Matrix m(static_cast<Eigen::Index>(values.size()), static_cast<Eigen::Index>(values.begin()->size()));
  Eigen::Index r = 0;
  for (const auto& row : values) {
    Eigen::Index c = 0;
    for (const double value : row) m(r, c++) = value;
    ++r;
  }
  return m;
}

}  // namespace

TEST_CASE("Closed forms: sums 2 and 6 weigh 1/4 and 3/4, in either base") {
  const Matrix out = rows({{10, -4}, {2, 4}});
  for (const bool base_two : {false, true}) {
    const auto log = [&](double x) { return base_two ? std::log2(x) : std::log(x); };
    const MergedState merged = merge_states({log(2), log(6)}, out, base_two);
    CHECK(merged.out[0] == Approx(4).epsilon(1e-14));
    CHECK(merged.out[1] == Approx(2).epsilon(1e-14));
    CHECK(merged.lse == Approx(log(8)).epsilon(1e-14));
    CHECK(merged.weights[0] == Approx(0.25).epsilon(1e-14));
    CHECK_FALSE(merged.empty);
  }
  // The wrong base is another answer.
  CHECK(std::abs(merge_states({std::log(2), std::log(6)}, out, true).out[0] - 4) > 0.1);
}

TEST_CASE("States without keys have no say, whatever their sign and whatever they hold") {
  const Matrix out = rows({{not_a_number, not_a_number}, {3, 5}, {infinity, not_a_number}});
  const MergedState merged = merge_states({infinity, -7, -infinity}, out, false);
  CHECK(merged.out == std::vector<double>{3, 5});
  CHECK(merged.lse == -7);
  for (const double first : {infinity, -infinity}) {
    const MergedState none = merge_states({first, -infinity}, rows({{not_a_number}, {not_a_number}}), false);
    CHECK(none.empty);
    CHECK(none.out == std::vector<double>{0});
    CHECK(none.lse == -infinity);
  }
  CHECK(std::isnan(merge_states({0, not_a_number}, rows({{1}, {1}}), false).out[0]));
  CHECK(std::isnan(merge_states({0, not_a_number}, rows({{1}, {1}}), false).lse));
}

TEST_CASE("Large gaps neither overflow nor vanish") {
  CHECK(merge_states({5000, -5000}, rows({{1}, {9}}), false).out[0] == 1);
  CHECK(merge_states({1e38, 1e38}, rows({{1}, {9}}), false).out[0] == 5);
  CHECK(merge_states({-5000, -5000 + std::log(3)}, rows({{0}, {4}}), false).out[0] == Approx(3));
}

TEST_CASE("Attention over parts, merged, is attention over all keys") {
  const Eigen::Index keys = 23;
  Matrix q(1, row_width), k(keys, row_width);
  for (Eigen::Index i = 0; i < q.size(); ++i) q.data()[i] = std::sin(0.7 * static_cast<double>(i));
  for (Eigen::Index i = 0; i < k.size(); ++i) k.data()[i] = std::cos(0.31 * static_cast<double>(i % 7919));
  const AttentionScales scales{0.05, 1, 1};
  const RequestAttention whole = attend(q, k, scales, 1, 1, false);
  const Eigen::Index cuts[] = {0, 4, 4, 17, keys};  // one of them without keys
  Matrix out(4, kv_lora_rank);
  std::vector<double> lse;
  for (Eigen::Index part = 0; part < 4; ++part) {
    const RequestAttention a =
        attend(q, k.middleRows(cuts[part], cuts[part + 1] - cuts[part]), scales, 1, 1, false);
    out.row(part) = a.out.row(0);
    lse.push_back(a.lse[0]);
  }
  const MergedState merged = merge_states(lse, out, false);
  CHECK(merged.lse == Approx(whole.lse[0]).epsilon(1e-13));
  for (Eigen::Index d = 0; d < kv_lora_rank; ++d)
    CHECK(merged.out[static_cast<std::size_t>(d)] == Approx(whole.out(0, d)).margin(1e-13));
}

TEST_CASE("Sizes that do not fit are refused") {
  CHECK_THROWS_AS(merge_states({}, Matrix(0, 3), false), std::invalid_argument);
  CHECK_THROWS_AS(merge_states({1, 2}, Matrix::Zero(3, 3), false), std::invalid_argument);
}
