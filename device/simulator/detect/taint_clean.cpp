// SPDX-License-Identifier: MIT
#include "device/simulator/detect/taint_clean.h"

namespace attest::device::sim::detect {

bool clean_in_clean_out(const Instruction& i, const Effects& e) {
  // s_movrel writes another register than it names; DPP and v_writelane leave lanes of EXEC as they were.
  return !e.relative && !e.dpp && i.op != Op::v_writelane_b32;
}

void write_clean(WaveTaint& taint, const Step& step) {
  const Effects& e = step.effects;
  const std::uint64_t written = e.exec_masked ? step.wave.exec() : ~std::uint64_t{0};
  for (const Registers& r : e.vector_writes) {
    if (!taint.dirty_rows(r)) continue;
    for (unsigned row = r.first; row < unsigned{r.first} + r.count; ++row)
      taint.clean_row(row, r.bytes, written);
  }
  for (const Registers& r : e.scalar_writes)
    for (unsigned code = r.first; code < unsigned{r.first} + r.count && code <= scalar::scc; ++code)
      taint.clean_scalar(code);
}

}  // namespace attest::device::sim::detect
