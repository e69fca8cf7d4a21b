// SPDX-License-Identifier: MIT
#include "fuzz/mutation/mutants.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "device/hip/installation.h"
#include "device/simulator/tests/file_bytes.h"

namespace attest::fuzz {
namespace {

std::vector<std::byte> file(const char* name) {
  return device::sim::file_bytes(device::hip::kernel_directory() / name);
}

}  // namespace

TEST_CASE("Every wait, barrier and s_nop of a kernel has its mutants") {
  const std::vector<std::byte> bytes = file("mla_decode.co");
  const std::vector<Mutant> mutants = timing_mutants(bytes, "mla_decode_bf16_bf16");
  std::size_t waits = 0, barriers = 0, nops = 0;
  for (const Mutant& m : mutants) {
    INFO(m.instruction << " " << m.change);
    switch (m.kind) {
      case Mutant::Kind::wait:
        ++waits;
        CHECK(m.instruction.rfind("s_waitcnt", 0) == 0);
        break;
      case Mutant::Kind::barrier:
        ++barriers;
        CHECK(m.instruction == "s_barrier");
        break;
      case Mutant::Kind::nop:
        ++nops;
        CHECK(m.instruction.rfind("s_nop", 0) == 0);
        break;
    }
    const std::vector<std::byte> changed = mutated(bytes, m);
    REQUIRE(changed.size() == bytes.size());
    std::size_t different = 0;
    for (std::size_t k = 0; k < bytes.size(); ++k) {
      if (changed[k] == bytes[k]) continue;
      ++different;
      CHECK(k >= m.offset);
      CHECK(k < m.offset + m.words.size() * 4);
    }
    CHECK(different > 0);
    CHECK(trapped(bytes, m) != bytes);
  }
  // Three barriers per tile; the compiler may have copied the loop.
  CHECK(barriers >= 3);
  CHECK(waits > 20);
  CHECK(nops > 0);
  CHECK(std::is_sorted(mutants.begin(), mutants.end(),
                       [](const Mutant& a, const Mutant& b) { return a.pc < b.pc; }));
}

TEST_CASE("What is no kernel has no mutants") {
  const std::vector<std::byte> bytes = file("mla_decode.co");
  CHECK_THROWS_WITH(timing_mutants(bytes, "mla"), Catch::Contains("no kernel mla"));
}

}  // namespace attest::fuzz
