// SPDX-License-Identifier: MIT
//
// Random small cases for the oracle's tests, from a seed.
#pragma once

#include <cstdint>

#include "cases/case.h"

namespace attest::oracle::testing {

inline constexpr cases::Fill all_fills[] = {
    cases::Fill::normal,      cases::Fill::mean_shifted,    cases::Fill::outlier_channels,
    cases::Fill::needle,      cases::Fill::position_coded,  cases::Fill::constant_scores,
    cases::Fill::wide_scores, cases::Fill::negative_offset, cases::Fill::deep_offset,
    cases::Fill::tiny,        cases::Fill::cancelling,      cases::Fill::saturating,
    cases::Fill::exact};

/// splitmix64: enough for choosing shapes.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  int between(int low, int high) { return low + below(high - low + 1); }
  template <class T, std::size_t N>
  T of(const T (&choices)[N]) {
    return choices[below(static_cast<int>(N))];
  }

 private:
  std::uint64_t state_;
};

/// A valid case with the given fill; mostly short contexts, at most `most_rows_times_keys` of work.
inline cases::Case random_case(std::uint64_t seed, cases::Fill fill, int work = 6000) {
  Dice dice(seed * 1000003 + static_cast<std::uint64_t>(fill) * 7919 + 17);
  for (;;) {
    cases::Case c;
    c.seed = dice.next();
    c.data.fill = fill;
    cases::MlaDecode p;
    p.heads = dice.of({1, 2, 3, 4, 5, 8, 16});
    p.page_size = dice.of({1, 1, 2, 7, 16, 32, 64});
    p.num_splits = dice.of({1, 1, 2, 3, 4, 7, 16});
    p.causal = dice.below(4) != 0;
    p.return_lse = dice.below(4) != 0;
    const int batch = dice.of({1, 1, 1, 2, 3});
    for (int b = 0; b < batch; ++b) {
      cases::Request r;
      r.q_len = dice.of({1, 1, 1, 2, 3, 4, 5, 6, 7});
      if (dice.below(12) == 0) r.q_len = 0;
      r.kv_len = dice.below(4) == 0   ? dice.between(0, 12)
                 : dice.below(8) == 0 ? dice.between(200, 2048)
                                      : dice.between(1, 200);
      p.requests.push_back(r);
    }
    if (dice.below(3) == 0) {
      p.kv_format = cases::Format::fp8_e4m3fnuz;
      if (dice.below(2) == 0) p.q_format = cases::Format::fp8_e4m3fnuz;
      const bool power = fill == cases::Fill::exact || fill == cases::Fill::constant_scores;
      p.kv_scale = power ? dice.of({0.25F, 1.0F, 2.0F}) : dice.of({0.06F, 0.37F, 1.0F, 3.1F});
      if (p.q_format != cases::Format::bf16) p.q_scale = dice.of({0.5F, 1.0F, 1.7F});
    }
    c.memory.placement = dice.of({cases::Placement::ordered, cases::Placement::shuffled,
                                  cases::Placement::reversed, cases::Placement::beyond_4gib});
    c.memory.unused = dice.of({cases::Poison::nan, cases::Poison::nan, cases::Poison::large,
                               cases::Poison::stale, cases::Poison::inf, cases::Poison::zero});
    c.memory.output =
        dice.of({cases::Poison::nan, cases::Poison::nan, cases::Poison::large, cases::Poison::zero});
    c.memory.prefix_sharing = dice.below(5) == 0;
    long total = 0;
    bool queries = false;
    for (const cases::Request& r : p.requests) {
      total += static_cast<long>(r.q_len) * p.heads * r.kv_len;
      queries = queries || r.q_len > 0;
    }
    c.problem = p;
    if (!queries || total > work) continue;
    try {
      cases::validate(c);
    } catch (const cases::CaseError&) {
      continue;  // scores that an fp8 q cannot reach
    }
    return c;
  }
}

}  // namespace attest::oracle::testing
