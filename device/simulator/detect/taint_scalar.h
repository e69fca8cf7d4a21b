// SPDX-License-Identifier: MIT
//
// How taint moves through scalar instructions (SOP1, SOP2, SOPC, SOPK; loads are taint_memory.h's).
//
// Bit by bit where lane masks are made and combined, as the values decide: a bit that is a defined 0 on one
// side of an AND is a defined 0. Sums taint upwards from the lowest tainted bit. Everything else: any
// tainted bit read taints all bits written.
#pragma once

#include "device/simulator/detect/observer.h"
#include "device/simulator/detect/taint.h"

namespace attest::device::sim::detect {

/// The wave is as the instruction will find it.
void transfer_scalar(WaveTaint& taint, const Step& step);

/// Whether `value != 0` hangs on tainted bits: no untainted bit is set.
constexpr bool undecided(std::uint64_t value, std::uint64_t tainted) {
  return tainted != 0 && (value & ~tainted) == 0;
}

}  // namespace attest::device::sim::detect
