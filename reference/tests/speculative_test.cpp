// SPDX-License-Identifier: MIT
#include "reference/speculative.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace attest::reference {
namespace {

using Tokens = std::vector<std::int32_t>;

/// One-hot rows, as a greedy target's.
std::vector<float> one_hot(int vocab, const Tokens& argmax) {
  std::vector<float> rows(argmax.size() * static_cast<std::size_t>(vocab), 0.0F);
  for (std::size_t i = 0; i < argmax.size(); ++i)
    rows[i * static_cast<std::size_t>(vocab) + static_cast<std::size_t>(argmax[i])] = 1.0F;
  return rows;
}

Tokens greedy(const Tokens& drafts, const Tokens& argmax, std::int32_t bonus) {
  const std::vector<float> p = one_hot(8, argmax);
  return verify_chain(
      {.greedy = true, .vocab = 8, .drafts = drafts, .p = p, .q = {}, .u = {}, .e = {}, .bonus = bonus});
}

/// splitmix64, for the distribution tests.
struct Draws {
  std::uint64_t state;
  double uniform() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-53;
  }
  int from(std::span<const float> p) {
    double left = uniform();
    for (std::size_t v = 0; v + 1 < p.size(); ++v) {
      left -= double{p[v]};
      if (left < 0) return static_cast<int>(v);
    }
    return static_cast<int>(p.size()) - 1;
  }
  std::array<float, 4> exponentials() {
    std::array<float, 4> e{};
    for (float& x : e) x = static_cast<float>(-std::log(1.0 - uniform()) + 1e-30);
    return e;
  }
};

/// Pearson's statistic of 4 cells, 3 degrees of freedom. 45 is exceeded once in 10^9 by chance.
double chi_square(const std::array<int, 4>& counts, std::span<const float> p) {
  int total = 0;
  for (const int n : counts) total += n;
  double sum = 0;
  for (std::size_t v = 0; v < 4; ++v) {
    const double expected = total * double{p[v]};
    sum += (counts[v] - expected) * (counts[v] - expected) / expected;
  }
  return sum;
}

}  // namespace

TEST_CASE("The greedy examples of vLLM's sampler tests") {
  CHECK(greedy({1, 2, 3}, {1, 2, 3}, 4) == Tokens{1, 2, 3, 4});
  CHECK(greedy({1, 2, 3}, {1, 5, 3}, 4) == Tokens{1, 5});
  CHECK(greedy({1, 2}, {1, 2}, 5) == Tokens{1, 2, 5});
  CHECK(greedy({}, {}, 5) == Tokens{5});
}

TEST_CASE("Acceptance includes equality, a zero draft probability rejects") {
  const std::vector<float> p = {0.25F, 0.75F, 0.0F, 0.0F}, q = {0.5F, 0.25F, 0.0F, 0.25F};
  const std::vector<float> e = {1, 1, 1, 1};
  const auto emitted = [&](std::int32_t x, double u) {
    const Tokens drafts = {x};
    const std::vector<double> us = {u};
    return verify_chain(
        {.greedy = false, .vocab = 4, .drafts = drafts, .p = p, .q = q, .u = us, .e = e, .bonus = 3});
  };
  CHECK(emitted(0, 0.5) == Tokens{0, 3});
  CHECK(emitted(0, std::nextafter(0.5, 1.0)) == Tokens{1});
  CHECK(emitted(2, 0.0) == Tokens{1});
  CHECK(emitted(3, 0.0) == Tokens{3, 3});  // p 0 and u 0: 0 >= 0
}

TEST_CASE("A residual of zero emits token 0, and NaN weighs nothing") {
  const std::vector<float> e = {1, 1, 1};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(heaviest(residual_weights(std::vector<float>{0.2F, 0.3F, 0.5F}, std::vector<float>{0.2F, 0.3F, 0.5F},
                                  {}, e)) == 0);
  CHECK(heaviest(residual_weights(std::vector<float>{nan, nan, 0.5F}, {}, {}, e)) == 2);
  CHECK(heaviest(residual_weights(std::vector<float>{nan, nan, nan}, {}, {}, e)) == 0);
}

TEST_CASE("Every emitted token follows the target, with and without draft probabilities") {
  const std::vector<float> p = {0.1F, 0.2F, 0.3F, 0.4F, 0.55F, 0.15F, 0.05F, 0.25F};
  const std::vector<float> q = {0.4F, 0.3F, 0.2F, 0.1F, 0.25F, 0.25F, 0.25F, 0.25F};
  for (const bool with_q : {true, false}) {
    Draws draws{with_q ? 1U : 2U};
    std::array<int, 4> first{}, second{};
    for (int i = 0; i < 100000; ++i) {
      const Tokens drafts = {with_q ? draws.from(std::span(q).first(4)) : 2,
                             with_q ? draws.from(std::span(q).last(4)) : 0};
      const std::vector<double> u = {draws.uniform(), draws.uniform()};
      const auto e = draws.exponentials();
      const Tokens out = verify_chain({.greedy = false,
                                       .vocab = 4,
                                       .drafts = drafts,
                                       .p = p,
                                       .q = with_q ? std::span<const float>(q) : std::span<const float>(),
                                       .u = u,
                                       .e = e,
                                       .bonus = 0});
      ++first[static_cast<std::size_t>(out[0])];
      if (out.size() > 1) ++second[static_cast<std::size_t>(out[1])];
    }
    CHECK(chi_square(first, std::span(p).first(4)) < 45);
    CHECK(chi_square(second, std::span(p).last(4)) < 45);
  }
}

TEST_CASE("A tree: children by ancestors, greedy path, and a first token that follows the target") {
  //  root - 0 (token 1) - 2 (token 3)
  //       - 1 (token 2) - 3 (token 3) - 4 (token 0)
  const std::vector<std::uint32_t> ancestors = {0b00001, 0b00010, 0b00101, 0b01010, 0b11010};
  const Tokens tokens = {1, 2, 3, 3, 0};
  CHECK(children(ancestors, -1) == std::vector<int>{0, 1});
  CHECK(children(ancestors, 0) == std::vector<int>{2});
  CHECK(children(ancestors, 1) == std::vector<int>{3});
  CHECK(children(ancestors, 4).empty());

  const std::vector<float> sharp = one_hot(4, {2, 0, 3, 1, 1, 1});
  const TreePath path = verify_tree(
      {.greedy = true, .vocab = 4, .tokens = tokens, .ancestors = ancestors, .p = sharp, .u = {}, .e = {}});
  CHECK(path.nodes == Tokens{1, 3});
  CHECK(path.tokens == Tokens{2, 3, 1});

  std::vector<float> p;
  for (int row = 0; row < 6; ++row) p.insert(p.end(), {0.1F, 0.3F, 0.25F, 0.35F});
  Draws draws{3};
  std::array<int, 4> first{}, second{};
  for (int i = 0; i < 100000; ++i) {
    std::vector<double> u(6);
    for (double& x : u) x = draws.uniform();
    const auto e = draws.exponentials();
    const TreePath out = verify_tree(
        {.greedy = false, .vocab = 4, .tokens = tokens, .ancestors = ancestors, .p = p, .u = u, .e = e});
    ++first[static_cast<std::size_t>(out.tokens[0])];
    if (!out.nodes.empty() && out.nodes[0] == 1) ++second[static_cast<std::size_t>(out.tokens[1])];
  }
  CHECK(chi_square(first, std::span(p).first(4)) < 45);
  CHECK(chi_square(second, std::span(p).first(4)) < 45);
}

}  // namespace attest::reference
