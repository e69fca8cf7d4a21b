// SPDX-License-Identifier: MIT
#include "cases/random.h"

#include <Random123/philox.h>

#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "reference/simd.h"

namespace attest::cases {
namespace {

constexpr int rounds = 7;
constexpr int quantiles = 32768;

philox4x32_ctr_t block(std::uint32_t index, std::uint32_t row, std::uint32_t request, std::uint32_t draw,
                       std::uint64_t seed) {
  const philox4x32_ctr_t counter = {{index, row, request, draw}};
  const philox4x32_key_t key = {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  return philox4x32_R(rounds, counter, key);
}

/// The same for the blocks from `first` on, written one after the other. Four words of a block in four 64-bit
/// lanes, whose upper halves hold whatever the products left there: a round is then two multiplications, two
/// shifts and two exclusive ors for eight blocks of a 512-bit vector, with nothing to shuffle until the end.
/// Random123's function for one block does not vectorise in a loop; the tests hold the two together.
[[gnu::always_inline]] inline void many_blocks(std::uint32_t first, std::size_t count, std::uint32_t row,
                                               std::uint32_t request, std::uint32_t draw, std::uint64_t seed,
                                               std::byte* out) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t v0 = first + static_cast<std::uint32_t>(i), v1 = row, v2 = request, v3 = draw;
    auto key0 = static_cast<std::uint32_t>(seed);
    auto key1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < rounds; ++round) {
      const std::uint64_t product0 = std::uint64_t{PHILOX_M4x32_0} * static_cast<std::uint32_t>(v0);
      const std::uint64_t product1 = std::uint64_t{PHILOX_M4x32_1} * static_cast<std::uint32_t>(v2);
      v0 = (product1 >> 32) ^ v1 ^ key0;
      v1 = product1;
      v2 = (product0 >> 32) ^ v3 ^ key1;
      v3 = product0;
      key0 += PHILOX_W32_0;
      key1 += PHILOX_W32_1;
    }
    const std::uint64_t low = static_cast<std::uint32_t>(v0) | v1 << 32;
    const std::uint64_t high = static_cast<std::uint32_t>(v2) | v3 << 32;
    std::memcpy(out + 16 * i, &low, sizeof low);
    std::memcpy(out + 16 * i + 8, &high, sizeof high);
  }
}

/// table[k] = x with P(|N(0,1)| < x) = (k + 1/2) / 32768.
///
/// Simpson's rule on the density in steps of h = 2^-9, the density itself by its recurrence
/// exp(-(x+d)^2/2) = exp(-x^2/2) * exp(-x d) * exp(-d^2/2) in steps of d = h/2; inside a step the inverse is
/// one Newton step from its start with the density at the middle of the way, an error of the order h^3 <
/// 1e-8.
std::unique_ptr<const std::array<float, quantiles>> integrate_quantiles() {
  constexpr double h = 0x1p-9;
  constexpr double d = h / 2;
  // exp(-d^2/2) and exp(-d^2) with d = 2^-10: four terms leave 1e-26.
  constexpr auto exp_small = [](double t) { return 1.0 + t * (1.0 + t / 2 * (1.0 + t / 3 * (1.0 + t / 4))); };
  constexpr double start_ratio = exp_small(-d * d / 2);
  constexpr double ratio_ratio = exp_small(-d * d);
  constexpr double two_over_root_two_pi = 0.79788456080286535588;

  auto table = std::make_unique<std::array<float, quantiles>>();
  double density = two_over_root_two_pi;  // of |N|, at x
  double ratio = start_ratio;             // density(x + d) / density(x)
  double probability = 0;                 // P(|N| < x)
  double x = 0;
  int k = 0;
  while (k < quantiles) {
    const double middle = density * ratio;
    ratio *= ratio_ratio;
    const double end = middle * ratio;
    ratio *= ratio_ratio;
    const double step = h / 6 * (density + 4 * middle + end);
    for (; k < quantiles; ++k) {
      const double missing = (k + 0.5) / quantiles - probability;
      if (missing >= step) break;
      const double part = missing / step;  // the density is nearly linear inside the step
      const double mean_density = density + (end - density) * part / 2;
      (*table)[static_cast<std::size_t>(k)] = static_cast<float>(x + missing / mean_density);
    }
    probability += step;
    density = end;
    x += h;
  }
  return table;
}

}  // namespace

void Counter::halves(int first, int count, std::uint16_t* out) const {
  const std::uint32_t begin = static_cast<std::uint32_t>(first) / 8;
  const std::size_t blocks = static_cast<std::size_t>(count) / 8;
  reference::run_for(reference::widest_simd(), [=, this]() __attribute__((always_inline)) {
    many_blocks(begin, blocks, row_, request_, draw_, seed_, reinterpret_cast<std::byte*>(out));
  });
}

std::uint32_t Counter::word(std::uint32_t i) const {
  return block(i / 4, row_, request_, draw_, seed_).v[i % 4];
}

void normals(const std::uint16_t* halves, int count, float* out) {
  static const std::unique_ptr<const std::array<float, quantiles>> table = integrate_quantiles();
  const float* magnitude = table->data();
  reference::run_for(reference::widest_simd(), [=]() __attribute__((always_inline)) {
    for (int i = 0; i < count; ++i) {
      const std::uint32_t sign = (std::uint32_t{halves[i]} & 0x8000U) << 16;
      out[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude[halves[i] & 0x7fffU]) | sign);
    }
  });
}

}  // namespace attest::cases
