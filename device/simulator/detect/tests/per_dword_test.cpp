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

}  // namespace attest::device::sim::detect
