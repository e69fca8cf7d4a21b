// SPDX-License-Identifier: MIT
#include "device/simulator/detect/per_dword.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>

namespace attest::device::sim::detect {

TEST_CASE("Values per dword are those of a plain array, however many there have been") {
  constexpr std::size_t dwords = 8;
  PerDword<std::uint32_t, dwords> values;
  values.clear();
  std::array<std::uint32_t, dwords> plain{};
  std::mt19937 random(1);
  for (std::uint32_t step = 1; step <= 100000; ++step) {
    const std::size_t first = random() % dwords, behind = std::min(dwords, first + 1 + random() % 3);
    // One new value for all, one of a few, one per old value.
    const auto change = [&](std::uint32_t old) {
      return step % 5 == 0 ? step : step % 5 == 1 ? old % 5 : old + 1000;
    };
    values.change(first, behind, change);
    for (std::size_t k = first; k < behind; ++k) plain[k] = change(plain[k]);
    bool same = true;
    for (std::size_t k = 0; k < dwords; ++k) same = same && values[k] == plain[k];
    INFO("step " << step);
    REQUIRE(same);
  }
  values.clear();
  CHECK(values[0] == 0);
  CHECK(values[dwords - 1] == 0);
}

TEST_CASE(
    "What was done for the dword before is not taken for another one that numbering anew gives its number") {
  // Dwords 0 and 1 share a number, so numbering anew moves those behind them one down: 3 gets the number that 2
  // had. Whichever of the `filled` it is that finds the palette full, 3 keeps its own value.
  constexpr std::size_t dwords = 8;
  for (std::uint32_t filled = 0; filled <= 8 * dwords; ++filled) {
    PerDword<std::uint32_t, dwords> values;
    values.clear();
    std::uint32_t fresh = 1;
    for (std::size_t k = 0; k < dwords; ++k) values.change(k, k + 1, [&](std::uint32_t) { return fresh++; });
    // Until they have been numbered anew once, in their order.
    for (std::uint32_t n = 0; n < 4 * dwords; ++n)
      values.change(dwords - 1, dwords, [&](std::uint32_t) { return fresh++; });
    values.change(0, 2, [](std::uint32_t) { return 1000u; });
    for (std::uint32_t n = 0; n < filled; ++n)
      values.change(dwords - 1, dwords, [&](std::uint32_t) { return fresh++; });
    const std::uint32_t second = values[2], third = values[3];
    values.change(2, 4, [](std::uint32_t old) { return old + 2000; });
    INFO("filled " << filled);
    REQUIRE(values[2] == second + 2000);
    REQUIRE(values[3] == third + 2000);
  }
}

TEST_CASE("Long runs of one value change as a plain array does") {
  constexpr std::size_t dwords = 256;
  PerDword<std::uint32_t, dwords> values;
  values.clear();
  std::array<std::uint32_t, dwords> plain{};
  std::mt19937 random(2);
  for (std::uint32_t step = 1; step <= 4000; ++step) {
    const std::size_t first = random() % dwords, behind = std::min(dwords, first + 1 + random() % 120);
    // Nothing, a value for all, and nothing but for one of a few.
    const auto change = [&](std::uint32_t old) {
      return step % 3 == 0 ? old : step % 3 == 1 ? step % 7 : old == step % 7 ? old + 10 : old;
    };
    values.change(first, behind, change);
    for (std::size_t k = first; k < behind; ++k) plain[k] = change(plain[k]);
    bool same = true;
    for (std::size_t k = 0; k < dwords; ++k) same = same && values[k] == plain[k];
    INFO("step " << step);
    REQUIRE(same);
  }
}

}  // namespace attest::device::sim::detect
