// SPDX-License-Identifier: MIT
//
// Scores for topk. A score is a function of (row, position in the row's range): where the range lies changes
// nothing. The fills make what selections have stumbled over: plateaus of equal scores longer than a buffer
// for ties (https://github.com/sgl-project/sglang/pull/30645), scores that fall into one bucket of a coarse
// key (https://github.com/sgl-project/sglang/issues/36807), infinities and NaN, sorted rows.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "cases/case.h"
#include "cases/inputs.h"
#include "cases/ops/topk.h"
#include "cases/random.h"

namespace attest::cases {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::size_t chunk = 512;

float signed_nan(bool negative) {
  return std::bit_cast<float>(negative ? 0xffc00000U : 0x7fc00000U);
}

/// One row's scores.
class Row {
 public:
  Row(const Case& c, std::uint32_t row, int n, int k) : fill_(c.data.fill), seed_(c.seed), row_(row), n_(n) {
    const Counter draw(seed_, Draw::score_choice, row, 0);
    mostly_low_ = draw.below(0, 4) == 0;
    // A twentieth of k winners among zeros.
    winners_ = n == 0 ? 0 : static_cast<std::uint32_t>(std::int64_t{65536} * std::max(k / 20, 1) / n);
  }

  void fill(float* out) const {
    std::array<std::uint16_t, chunk> halves;
    std::array<float, chunk> normal;
    for (std::size_t at = 0; at < static_cast<std::size_t>(n_); at += chunk) {
      Counter(seed_, Draw::score, row_, static_cast<std::uint32_t>(at / chunk))
          .halves(0, chunk, halves.data());
      normals(halves.data(), chunk, normal.data());
      const std::size_t here = std::min(chunk, static_cast<std::size_t>(n_) - at);
      for (std::size_t i = 0; i < here; ++i) out[at + i] = value(at + i, halves[i], normal[i]);
    }
  }

 private:
  [[nodiscard]] float value(std::size_t position, std::uint32_t half, float normal) const {
    switch (fill_) {
      case Fill::mean_shifted:
        return 4096.0F + normal / 2;
      case Fill::constant_scores:
        return 1.0F;
      case Fill::few_values:
        return static_cast<float>(static_cast<int>(2 * normal)) / 2;
      case Fill::zero_ties:
        return half < winners_ ? 1.0F + static_cast<float>(position % 64) : 0.0F;
      case Fill::infinities:
        if (mostly_low_) return half % 8 == 0 ? normal : -infinity;
        return half % 8 == 0 ? -infinity : half % 16 == 1 ? infinity : normal;
      case Fill::nans:
        return half % 16 == 0 ? signed_nan(false) : half % 16 == 1 ? signed_nan(true) : normal;
      case Fill::ascending:
        return static_cast<float>(position);
      case Fill::descending:
        return -static_cast<float>(position);
      default:
        return normal;
    }
  }

  Fill fill_;
  std::uint64_t seed_;
  std::uint32_t row_;
  int n_;
  bool mostly_low_ = false;
  std::uint32_t winners_ = 0;
};

/// Columns that belong to no row: NaN of both signs, so that one of them would win and the other lose.
void poison(const Case& c, std::vector<float>& logits) {
  const std::vector<std::byte> bytes =
      poison_bytes(c, c.memory.unused, Format::f32, logits.size(), "unused_logits");
  for (std::size_t i = 0; i < logits.size(); ++i) {
    std::uint32_t bits = 0;
    for (std::size_t b = 0; b < 4; ++b) bits |= std::to_integer<std::uint32_t>(bytes[4 * i + b]) << (8 * b);
    if (c.memory.unused == Poison::nan && i % 2 == 0) bits &= 0x7fffffffU;
    logits[i] = std::bit_cast<float>(bits);
  }
}

}  // namespace

TopKInputs materialise(const Case& c, const TopK& p) {
  TopKInputs in;
  in.next_n = p.requests.front().q_len;
  int keys_before = 0;
  int longest = 0;
  for (const Request& r : p.requests) {
    in.kv_lens.push_back(r.kv_len);
    longest = std::max(longest, r.kv_len);
    for (int i = 0; i < r.q_len; ++i) {
      const int begin = p.form == TopKForm::prefill ? keys_before : 0;
      in.row_begin.push_back(begin);
      in.row_end.push_back(begin + r.kv_len - r.q_len + i + 1);
    }
    keys_before += r.kv_len;
  }
  in.width = std::max(p.form == TopKForm::prefill ? keys_before : longest, 1);
  in.row_stride = in.width + p.row_padding;

  const std::size_t rows = in.row_begin.size();
  in.logits.resize(rows * static_cast<std::size_t>(in.row_stride));
  poison(c, in.logits);
  for (std::size_t row = 0; row < rows; ++row) {
    const int n = std::max(in.row_end[row] - in.row_begin[row], 0);
    Row(c, static_cast<std::uint32_t>(row), n, p.k)
        .fill(in.logits.data() + row * static_cast<std::size_t>(in.row_stride) + in.row_begin[row]);
  }
  return in;
}

}  // namespace attest::cases
