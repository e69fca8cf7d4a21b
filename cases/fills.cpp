// SPDX-License-Identifier: MIT
//
// A fault is visible only in data that makes it matter. With N(0,1) everywhere one token of thousands moves
// the output by less than its rounding; so beside `normal` there are families in which one token, one column
// or one unmasked slot decides. The first 512 columns of a cache row are V and part of K, so a family that
// wants V free sets the first 512 columns of q to zero and makes the scores with the 64 rope columns.
//
//   family            cache row: V | rope           q: nope | rope         scores
//   normal            N | N                         N | N                  N(0, 576 sm^2)
//   mean_shifted      mu_d + N/2                    N | N                  a common offset per row
//   outlier_channels  N, 4 channels x 20..50        N | N                  large, by few columns
//   needle            +-1 | +-c                     0 | g * signs of a key 20..28 there, else N(0, 3^2)
//   position_coded    e_pi(token) | N               0 | 3 N                N(0, 1.7^2) at sm = 192^-0.5
//   constant_scores   +-1 | N                       0 | 0                  0
//   wide_scores       N | N                         N x 20..200 per row    mostly one key takes all
//   negative_offset   N | -h c (.85..1.10)          0 | h g (.93..1.05)    -39..-20
//   deep_offset       the same, five times as far                          -196..-104
//   tiny              +-2^-126..2^-110,             N * s | N * s          about N(0, 1.5^2)
//                     fp8 +-2^-10..2^-6
//   cancelling        +-N in pairs | N + N/8        0 | 3 N                nearly equal in a pair
//   saturating        1/5 at +-max, else N          N * s                  about N(0, 2^2)
//   exact             m_d + noise | N               0 | 0                  0
//
// N is a fresh N(0,1), real: divided by the scale before it is stored. +-1, one-hot, tiny and exact V are
// stored values: the format holds them exactly, whatever the scale. h are signs per column.
//
// Promised scores hold after rounding to fp8, which moves each factor by 1/16 at most: for negative_offset
// 30 * (.93 * .85) * (15/16)^2 = 20.8 and 30 * (1.05 * 1.10) * (17/16)^2 = 39.1, for deep_offset 5 times
// that. They need factors that are normal numbers of the format, which `scores_reachable` decides.
//
// `exact`: weights are 1/n for n visible tokens, so out_d = kv_scale * mean over j < n of v_jd must be a bf16
// number for every n that some query position sees, from n0 = kv_len - q_len + 1 to kv_len. Per column there
// is a mean m, one of -2, -1, 1, 2. Rows from n0 on are equal to m; the rows before are paired from the last
// one down, and a pair is m + r, m - r with r in -14..14 (an unpaired first row is m). So the mean is m for
// every such n, all values are integers of magnitude at most 16 (exact in fp8), and sums stay below 2^24
// (exact in f32). m is not 0 because a kernel may merge splits as sums of averages, whose f32 residue a
// rounding to bf16 hides only beside something larger. With a shared prefix n0 is the smallest of the
// members'.
#include "cases/fills.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "cases/narrow.h"

namespace attest::cases {
namespace {

constexpr float fp8_max = 240.0F;
constexpr std::uint32_t stale_source = 0x40000000U;

/// Rope columns of q that take part in a promised score: all but one in each group of eight. Which one is the
/// row's own, so that rows differ even where fp8 has few numbers to differ in.
constexpr int active_columns = RowMaker::rope_width / 8 * 7;

struct Magnitudes {
  float q = 1, k = 1;
};

/// Rope magnitudes with active_columns * score_scale * q * k = score. The k one is a power of two; when q has
/// range to spare (bf16) it is 1, else the two share the load.
Magnitudes split_score(const MlaDecode& p, double score) {
  const double product = score / (active_columns * score_scale(p));
  int k_exponent = 0;
  if (p.q_format != Format::bf16) {
    const int exponent = std::ilogb(product) + 1;
    k_exponent = std::clamp(exponent >= 0 ? exponent / 2 : -((1 - exponent) / 2), -5, 7);
  }
  const double k = std::ldexp(1.0, k_exponent);
  return {static_cast<float>(product / k), static_cast<float>(k)};
}

/// |score| at the centre of what the fill promises; 0 when it promises none.
double promised_score(Fill fill) {
  switch (fill) {
    case Fill::needle:
      return 24;
    case Fill::negative_offset:
      return 30;
    case Fill::deep_offset:
      return 150;
    default:
      return 0;
  }
}

float plus_minus_one(std::uint16_t half) {
  return (half & 0x8000U) != 0 ? -1.0F : 1.0F;
}

/// [0, 1)
float unit(std::uint16_t half) {
  return static_cast<float>(half) * 0x1p-16F;
}

float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

}  // namespace

double score_scale(const MlaDecode& p) {
  return double{p.sm_scale} * double{p.q_scale} * double{p.kv_scale};
}

bool scores_reachable(const MlaDecode& p, Fill fill) {
  const double score = promised_score(fill);
  if (score == 0 || p.q_format == Format::bf16) return true;
  const Magnitudes m = split_score(p, score);
  return m.q >= 0x1p-6F && m.q <= 192.0F;  // normal numbers with room for the spread on both sides
}

RowMaker::RowMaker(const Case& c) : RowMaker(std::get<MlaDecode>(c.problem), c) {}

RowMaker::RowMaker(MlaDecode like, const Case& c)
    : problem_(std::move(like)),
      fill_(c.data.fill),
      seed_(c.seed),
      sharing_(sharing(problem_, c.memory)),
      q_unit_(1.0F / problem_.q_scale),
      kv_unit_(1.0F / problem_.kv_scale) {
  const double score = promised_score(fill_);
  const Magnitudes magnitudes = score == 0 ? Magnitudes{} : split_score(problem_, score);
  q_magnitude_ = magnitudes.q;
  k_magnitude_ = magnitudes.k;

  const Counter draw(seed_, Draw::kv_mean, 0, 0);
  Halves halves;
  draw.halves(0, width, halves.data());
  switch (fill_) {
    case Fill::mean_shifted:
      normals(halves.data(), width, column_.data());
      break;
    case Fill::outlier_channels: {
      column_.fill(1.0F);
      // Three channels of V and one of rope, in quarters that do not overlap: 20, 30, 40, 50 in any order.
      const std::uint32_t turn = halves[8] % 4;
      for (std::uint32_t i = 0; i < 4; ++i) {
        const std::uint32_t channel = i < 3 ? i * 170U + halves[i] % 170U : 512U + halves[3] % 64U;
        column_[channel] = 20.0F + 10.0F * static_cast<float>((i + turn) % 4);
      }
      break;
    }
    case Fill::negative_offset:
    case Fill::deep_offset:
      for (std::size_t d = 0; d < width; ++d) column_[d] = plus_minus_one(halves[d]);
      break;
    case Fill::tiny: {
      double sum_of_squares = 0;
      for (std::size_t d = 0; d < width; ++d) {
        column_[d] = problem_.kv_format == Format::bf16 ? power_of_two(-126 + halves[d] % 16) : 0x1p-10F;
        // mean square of 1 + u, u in [0,1): 7/3; of 1..15 (fp8): 1240/15
        const double mean_square = problem_.kv_format == Format::bf16 ? 7.0 / 3.0 : 1240.0 / 15.0;
        sum_of_squares += mean_square * double{column_[d]} * double{column_[d]};
      }
      q_spread_ = static_cast<float>(1.5 / (score_scale(problem_) * std::sqrt(sum_of_squares)));
      break;
    }
    case Fill::saturating: {
      const double max = problem_.kv_format == Format::bf16 ? 448.0 : 240.0;
      q_spread_ = static_cast<float>(2.0 / (score_scale(problem_) * max * std::sqrt(width / 5.0)));
      break;
    }
    case Fill::exact: {
      int shared_rows = 1 << 30;
      for (const Request& r : problem_.requests) {
        const int first_seen =
            problem_.causal && r.q_len > 0 ? std::max(1, r.kv_len - r.q_len + 1) : r.kv_len;
        exact_noisy_rows_.push_back(std::min(first_seen, r.kv_len));
        if (sharing_.member(r)) shared_rows = std::min(shared_rows, exact_noisy_rows_.back());
      }
      for (std::size_t i = 0; i < problem_.requests.size(); ++i) {
        if (sharing_.member(problem_.requests[i])) exact_noisy_rows_[i] = shared_rows;
      }
      break;
    }
    default:
      break;
  }
}

Counter RowMaker::kv_counter(std::uint32_t source, int token) const {
  return {seed_, Draw::kv, source, static_cast<std::uint32_t>(token)};
}

void RowMaker::kv_row(int request, int token, float* out) const {
  const Request& r = problem_.requests[static_cast<std::size_t>(request)];
  if (fill_ == Fill::exact) return exact_kv_row(request, token, out);
  if (fill_ == Fill::cancelling) {
    return cancelling_kv_row(static_cast<std::uint32_t>(sharing_.owner(r, request, token & ~1)), token, out);
  }
  const auto source = static_cast<std::uint32_t>(sharing_.owner(r, request, token));
  Halves halves;
  kv_counter(source, token).halves(0, width, halves.data());
  v_and_rope(source, token, halves, out);
}

void RowMaker::kv_row(int request, int token, Format format, std::byte* out) const {
  if ((fill_ == Fill::normal || fill_ == Fill::wide_scores) && kv_unit_ == 1) {
    const Request& r = problem_.requests[static_cast<std::size_t>(request)];
    Halves halves;
    kv_counter(static_cast<std::uint32_t>(sharing_.owner(r, request, token)), token)
        .halves(0, width, halves.data());
    return narrow_normals(format, halves.data(), width, out);
  }
  std::array<float, width> values;
  kv_row(request, token, values.data());
  narrow(format, values.data(), width, out);
}

void RowMaker::stale_kv_row(std::uint32_t slot, float* out) const {
  const int token = static_cast<int>(slot & 0x1ffffU);
  const std::uint32_t source = stale_source + (slot >> 17);
  if (fill_ == Fill::cancelling) return cancelling_kv_row(source, token, out);
  Halves halves;
  kv_counter(source, token).halves(0, width, halves.data());
  if (fill_ == Fill::exact) exact_v(source, halves.data(), 1, out);
  v_and_rope(source, token, halves, out);
}

void RowMaker::v_and_rope(std::uint32_t source, int token, const Halves& halves, float* out) const {
  switch (fill_) {
    case Fill::few_values:
    case Fill::zero_ties:
    case Fill::infinities:
    case Fill::nans:
    case Fill::ascending:
    case Fill::descending:
      throw std::logic_error("attention has no data of scores");  // validate refuses these
    case Fill::normal:
    case Fill::wide_scores:
      normals(halves.data(), width, out);
      for (int d = 0; d < width; ++d) out[d] *= kv_unit_;
      return;
    case Fill::mean_shifted:
      normals(halves.data(), width, out);
      for (std::size_t d = 0; d < width; ++d) out[d] = (column_[d] + 0.5F * out[d]) * kv_unit_;
      return;
    case Fill::outlier_channels:
      normals(halves.data(), width, out);
      for (std::size_t d = 0; d < width; ++d) out[d] *= column_[d] * kv_unit_;
      return;
    case Fill::needle:
      for (std::size_t d = 0; d < v_width; ++d) out[d] = plus_minus_one(halves[d]);
      for (std::size_t d = v_width; d < width; ++d) out[d] = k_magnitude_ * plus_minus_one(halves[d]);
      return;
    case Fill::negative_offset:
    case Fill::deep_offset: {
      normals(halves.data(), v_width, out);
      for (int d = 0; d < v_width; ++d) out[d] *= kv_unit_;
      const float of_token = 0.87F + 0.21F * unit(halves[v_width]);
      for (std::size_t d = v_width; d < width; ++d) {
        out[d] = -column_[d] * k_magnitude_ * (of_token + 0.04F * (unit(halves[d]) - 0.5F));
      }
      return;
    }
    case Fill::tiny:
      for (std::size_t d = 0; d < width; ++d) {
        const float magnitude = problem_.kv_format == Format::bf16
                                    ? 1.0F + unit(static_cast<std::uint16_t>(halves[d] << 1))
                                    : 1.0F + static_cast<float>(halves[d] % 15U);
        out[d] = plus_minus_one(halves[d]) * magnitude * column_[d];
      }
      return;
    case Fill::saturating: {
      const float max = problem_.kv_format == Format::bf16 ? 448.0F : fp8_max;
      normals(halves.data(), width, out);
      for (std::size_t d = 0; d < width; ++d) {
        const bool at_max =
            (halves[d] * 40503U & 0xffffU) < 13107U;  // 40503 = odd golden ratio * 2^16: a permutation
        const float value = out[d] * kv_unit_;
        out[d] = at_max ? std::copysign(max, value) : value;
      }
      return;
    }
    case Fill::position_coded: {
      // Zeros of either sign where the format has both: a decoder that takes bf16 -0 for a large number
      // shows.
      for (std::size_t d = 0; d < v_width; ++d) out[d] = std::copysign(0.0F, plus_minus_one(halves[d]));
      const Counter draw(seed_, Draw::kv_mean, source, 1);
      const std::uint32_t column =
          ((draw.word(0) | 1U) * static_cast<std::uint32_t>(token) + draw.word(1)) % v_width;
      out[column] = 1.0F;
      break;
    }
    case Fill::constant_scores:
      for (std::size_t d = 0; d < v_width; ++d) out[d] = plus_minus_one(halves[d]);
      break;
    case Fill::exact:       // V is made by the caller
    case Fill::cancelling:  // has a maker of its own
      break;
  }
  normals(halves.data() + v_width, rope_width, out + v_width);
  for (int d = v_width; d < width; ++d) out[d] *= kv_unit_;
}

void RowMaker::exact_v(std::uint32_t source, const std::uint16_t* noise_of_pair, int sign, float* v) const {
  std::array<std::uint16_t, v_width> means;
  Counter(seed_, Draw::kv_mean, source, 2).halves(0, v_width, means.data());
  constexpr std::array<float, 4> mean_values = {-2, -1, 1, 2};
  for (std::size_t d = 0; d < v_width; ++d) {
    const int noise = sign == 0 ? 0 : static_cast<int>((std::uint32_t{noise_of_pair[d]} * 29U) >> 16) - 14;
    v[d] = mean_values[means[d] & 3U] + static_cast<float>(sign * noise);
  }
}

void RowMaker::exact_kv_row(int request, int token, float* out) const {
  const Request& r = problem_.requests[static_cast<std::size_t>(request)];
  const auto source = static_cast<std::uint32_t>(sharing_.owner(r, request, token));
  Halves halves;
  kv_counter(source, token).halves(0, width, halves.data());
  v_and_rope(source, token, halves, out);

  const int from_last = exact_noisy_rows_[static_cast<std::size_t>(request)] - 1 - token;
  const int lower_row = from_last % 2 == 0 ? token - 1 : token;
  const auto mean_source = static_cast<std::uint32_t>(sharing_.member(r) ? sharing_.first_member : request);
  if (from_last < 0 || lower_row < 0) return exact_v(mean_source, nullptr, 0, out);
  const auto pair_source = static_cast<std::uint32_t>(sharing_.owner(r, request, lower_row));
  if (pair_source != source || lower_row != token) {
    kv_counter(pair_source, lower_row).halves(0, v_width, halves.data());
  }
  exact_v(mean_source, halves.data(), lower_row == token ? 1 : -1, out);
}

void RowMaker::cancelling_kv_row(std::uint32_t pair_source, int token, float* out) const {
  Halves of_pair;
  kv_counter(pair_source, token & ~1).halves(0, width, of_pair.data());
  normals(of_pair.data(), width, out);
  const float sign = (token & 1) != 0 ? -1.0F : 1.0F;
  for (int d = 0; d < v_width; ++d) out[d] *= sign * kv_unit_;
  std::array<std::uint16_t, rope_width> own;
  std::array<float, rope_width> difference;
  // Columns 576.. of the draw: the pair's lower row has used its first 576.
  kv_counter(pair_source, token).halves(width, rope_width, own.data());
  normals(own.data(), rope_width, difference.data());
  for (std::size_t d = 0; d < rope_width; ++d) {
    out[v_width + d] = (out[v_width + d] + 0.125F * difference[d]) * kv_unit_;
  }
}

/// The edges where kernels read one token too many or too few: the last visible token, the first, the first
/// hidden one, both sides of tile and page borders; else any.
int RowMaker::needle_token(int request, int position, int head) const {
  const Request& r = problem_.requests[static_cast<std::size_t>(request)];
  const Counter draw(seed_, Draw::q_choice, static_cast<std::uint32_t>(request),
                     static_cast<std::uint32_t>(position * 128 + head));
  const int visible = std::clamp(problem_.causal ? r.kv_len - r.q_len + position + 1 : r.kv_len, 0, r.kv_len);
  const auto below = [&](std::uint32_t i, int bound) {
    return static_cast<int>(draw.below(i, static_cast<std::uint32_t>(std::max(bound, 1))));
  };
  int token = 0;
  switch (below(0, 8)) {
    case 0:
    case 1:
      token = visible - 1;
      break;
    case 2:
      token = 0;
      break;
    case 3:
      token = visible;
      break;
    case 4: {
      const int tile = 16 << below(1, 4);
      token = below(2, visible / tile + 1) * tile - below(3, 2);
      break;
    }
    case 5:
      token = below(1, visible / problem_.page_size + 1) * problem_.page_size - below(2, 2);
      break;
    default:
      token = below(1, visible);
      break;
  }
  return std::clamp(token, 0, std::max(r.kv_len - 1, 0));
}

void RowMaker::q_row(int request, int position, int head, float* out) const {
  // The place of a row among 128 heads, not among the case's: fewer heads leave the others' values alone.
  const auto row = static_cast<std::uint32_t>(position * 128 + head);
  const Counter draw(seed_, Draw::q, static_cast<std::uint32_t>(request), row);
  Halves halves;
  switch (fill_) {
    case Fill::few_values:
    case Fill::zero_ties:
    case Fill::infinities:
    case Fill::nans:
    case Fill::ascending:
    case Fill::descending:
      throw std::logic_error("attention has no data of scores");  // validate refuses these
    case Fill::constant_scores:
    case Fill::exact:
      std::fill(out, out + width, 0.0F);
      return;
    case Fill::normal:
    case Fill::mean_shifted:
    case Fill::outlier_channels:
    case Fill::wide_scores:
    case Fill::tiny:
    case Fill::saturating: {
      float factor = q_spread_ != 0 ? q_spread_ : q_unit_;
      if (fill_ == Fill::wide_scores) {
        constexpr std::array<float, 6> factors = {20, 32, 50, 80, 126, 200};
        const Counter choice(seed_, Draw::q_choice, static_cast<std::uint32_t>(request), row);
        factor *= factors[choice.below(0, 6)];
      }
      draw.halves(0, width, halves.data());
      normals(halves.data(), width, out);
      for (int d = 0; d < width; ++d) out[d] *= factor;
      return;
    }
    case Fill::position_coded:
    case Fill::cancelling:
      std::fill(out, out + v_width, 0.0F);
      draw.halves(v_width, rope_width, halves.data());
      normals(halves.data(), rope_width, out + v_width);
      for (int d = v_width; d < width; ++d) out[d] *= 3.0F * q_unit_;
      return;
    case Fill::needle:
    case Fill::negative_offset:
    case Fill::deep_offset: {
      std::fill(out, out + v_width, 0.0F);
      draw.halves(v_width, rope_width, halves.data());
      Halves signs;
      if (fill_ == Fill::needle) {
        const Request& r = problem_.requests[static_cast<std::size_t>(request)];
        const int token = needle_token(request, position, head);
        const auto source = static_cast<std::uint32_t>(sharing_.owner(r, request, token));
        kv_counter(source, token).halves(v_width, rope_width, signs.data());
      }
      const float of_row = q_magnitude_ * (0.95F + 0.08F * unit(halves[0]));
      for (std::size_t d = 0; d < rope_width; ++d) {
        const float sign = fill_ == Fill::needle ? plus_minus_one(signs[d]) : column_[v_width + d];
        const bool silent = d % 8 == halves[d / 8 + 1] % 8U;
        out[v_width + d] = silent ? 0.0F : sign * (of_row + q_magnitude_ * 0.04F * (unit(halves[d]) - 0.5F));
      }
      return;
    }
  }
}

void RowMaker::q_row(int request, int position, int head, Format format, std::byte* out) const {
  const bool plain = fill_ == Fill::normal || fill_ == Fill::mean_shifted || fill_ == Fill::outlier_channels;
  if (plain && q_unit_ == 1) {
    Halves halves;
    Counter(seed_, Draw::q, static_cast<std::uint32_t>(request),
            static_cast<std::uint32_t>(position * 128 + head))
        .halves(0, width, halves.data());
    return narrow_normals(format, halves.data(), width, out);
  }
  std::array<float, width> values;
  q_row(request, position, head, values.data());
  narrow(format, values.data(), width, out);
}

}  // namespace attest::cases
