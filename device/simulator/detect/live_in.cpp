// SPDX-License-Identifier: MIT
#include "device/simulator/detect/live_in.h"

#include "device/simulator/detect/successors.h"

namespace attest::device::sim::detect {
namespace {

constexpr ScalarSet every{~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}};

ScalarSet set_of(const auto& list) {
  ScalarSet set{};
  for (const Registers& r : list)
    for (unsigned code = r.first; code < unsigned{r.first} + r.count; ++code)
      set[code / 64] |= std::uint64_t{1} << (code % 64);
  return set;
}

}  // namespace

ScalarSet live_in(const Program& program, const std::vector<Effects>& effects) {
  const std::uint32_t size = program.size();
  std::vector<ScalarSet> reads(size), writes(size), live(size);
  for (std::uint32_t k = 0; k < size; ++k) {
    reads[k] = effects[k].relative ? every : set_of(effects[k].scalar_reads);
    if (!effects[k].relative) writes[k] = set_of(effects[k].scalar_writes);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t k = size; k-- > 0;) {
      const Successors next = successors(program, k);
      ScalarSet now = next.anywhere ? every : ScalarSet{};
      for (unsigned n = 0; n < next.count; ++n)
        for (std::size_t w = 0; w < now.size() && next.index[n] < size; ++w) now[w] |= live[next.index[n]][w];
      for (std::size_t w = 0; w < now.size(); ++w) now[w] = reads[k][w] | (now[w] & ~writes[k][w]);
      changed = changed || now != live[k];
      live[k] = now;
    }
  }
  return program.entry() < size ? live[program.entry()] : every;
}

}  // namespace attest::device::sim::detect
