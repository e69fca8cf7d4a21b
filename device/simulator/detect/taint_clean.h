// SPDX-License-Identifier: MIT
//
// The everyday transfer of taint: an instruction that reads nothing tainted leaves nothing tainted, whatever it
// computes. Waves begin with registers that nobody wrote, so each register's first write meets taint, and in
// short kernels these first writes are most of what the transfer functions would be called for.
#pragma once

#include "device/simulator/detect/effects.h"
#include "device/simulator/detect/observer.h"
#include "device/simulator/detect/taint.h"

namespace attest::device::sim::detect {

/// Whether what it writes is clean when what it reads is, EXEC included, in exactly the lanes of EXEC or, when
/// it is not masked, in all. For instructions of the scalar and vector ALUs and the matrix unit.
bool clean_in_clean_out(const Instruction& instruction, const Effects& effects);

/// What transfer_scalar or transfer_vector would do then.
void write_clean(WaveTaint& taint, const Step& step);

}  // namespace attest::device::sim::detect
