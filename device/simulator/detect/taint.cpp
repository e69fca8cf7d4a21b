// SPDX-License-Identifier: MIT
#include "device/simulator/detect/taint.h"

namespace attest::device::sim::detect {

WaveTaint::WaveTaint(std::uint32_t vgprs, std::uint64_t defined_sgprs, const ScalarSet& read_first)
    : share_(RowsPerBit::of(vgprs)), rows_(vgprs) {
  for (std::uint32_t r = 1; r < vgprs; ++r) {
    LaneTaint taint;
    taint.all_bytes(~std::uint64_t{0});
    taint.undefined_from = origin::vector + r;
    set_row(r, taint);
  }
  for (std::uint32_t code = 0; code <= scalar::scc; ++code) {
    const bool architected = code == 102 || code == 103;  // flat_scratch
    const bool exec = code == operand::exec || code == operand::exec + 1u;
    if (exec || architected || (code < 64 && (defined_sgprs >> code & 1) != 0)) continue;
    if ((read_first[code / 64] >> (code % 64) & 1) == 0) continue;
    set_scalar32(code, {code == scalar::scc ? 1u : 0xffffffffu, 0, origin::scalar + code, origin::none});
  }
}

BitTaint WaveTaint::scalar64(std::uint32_t code) const {
  BitTaint low = scalars_[code];
  const BitTaint& high = scalars_[code + 1];
  low.adopt_origins(high);
  low.undefined |= high.undefined << 32;
  low.inexact |= high.inexact << 32;
  return low;
}

void WaveTaint::set_scalar32(std::uint32_t code, BitTaint taint) {
  scalars_[code] = taint;
  const std::uint64_t bit = std::uint64_t{1} << (code % 64);
  if (taint.clean()) {
    dirty_scalars_[code / 64] &= ~bit;
  } else {
    dirty_scalars_[code / 64] |= bit;
  }
  update_scalar_signature(scalar_signature_, dirty_scalars_, code);
}

void WaveTaint::set_scalar64(std::uint32_t code, const BitTaint& taint) {
  BitTaint half = taint;
  half.undefined &= 0xffffffffu;
  half.inexact &= 0xffffffffu;
  set_scalar32(code, half);
  half.undefined = taint.undefined >> 32;
  half.inexact = taint.inexact >> 32;
  set_scalar32(code + 1, half);
}

}  // namespace attest::device::sim::detect
