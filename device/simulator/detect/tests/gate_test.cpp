// SPDX-License-Identifier: MIT
#include "device/simulator/detect/gate.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>

namespace attest::device::sim::detect {

TEST_CASE("A signature has the bit of every register of the set and of no other") {
  std::mt19937 random(3);
  const auto check = [&](unsigned registers, auto bit_of, auto update) {
    std::array<std::uint64_t, 8> words{};
    std::uint64_t signature = 0;
    for (int step = 0; step < 4000; ++step) {
      const auto changed = static_cast<unsigned>(random() % registers);
      // Mostly clearing, so that bits go away again.
      const std::uint64_t bit = std::uint64_t{1} << (changed % 64);
      words[changed / 64] = random() % 3 == 0 ? words[changed / 64] | bit : words[changed / 64] & ~bit;
      update(signature, words, changed);
      std::uint64_t expected = 0;
      for (unsigned k = 0; k < registers; ++k)
        if ((words[k / 64] >> (k % 64) & 1) != 0) expected |= bit_of(k);
      REQUIRE(signature == expected);
    }
  };
  for (const unsigned rows : {24u, 64u, 72u, 128u, 136u, 256u, 264u, 512u}) {
    const RowsPerBit share = RowsPerBit::of(rows);
    check(
        rows, [&](unsigned k) { return row_bit(k, share); },
        [&](auto& s, const auto& w, unsigned k) { update_row_signature(s, w, k, share); });
  }
  check(scalar::count, scalar_bit,
        [](auto& s, const auto& w, unsigned k) { update_scalar_signature(s, w, k); });
}

TEST_CASE("Registers that an instruction names meet the set that holds one of them") {
  for (unsigned first = 0; first < 500; first += 7) {
    RegisterList<2> list;
    list.add(first, 5);
    std::uint64_t expected = 0;
    for (unsigned k = first; k < first + 5; ++k) expected |= row_bit(k, RowsPerBit::of(512));
    CHECK(row_signature(list, RowsPerBit::of(512)) == expected);
  }
  RegisterList<2> scalars;
  scalars.add(scalar::scc, 1);
  scalars.add(operand::vcc, 2);
  CHECK(scalar_signature(scalars) == (scalar_bit(scalar::scc) | scalar_bit(operand::vcc)));
}

}  // namespace attest::device::sim::detect
