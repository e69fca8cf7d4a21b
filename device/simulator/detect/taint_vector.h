// SPDX-License-Identifier: MIT
//
// How taint moves through vector and matrix instructions (VOP*, MAI) and lane exchanges (ds_bpermute and
// friends).
//
// A lane of the result is tainted by that lane of the sources, byte by byte where compilers take registers
// apart and put them together (moves, masks, shifts by constants, v_perm, packing, 16-bit halves, SDWA);
// upwards from the lowest tainted byte in sums; else all bytes by any. v_cndmask takes the taint of the side
// it chooses. A lane whose EXEC bit is itself tainted is tainted whatever is written. An element of a matrix
// product is tainted by its row of A, its column of B and its C.
#pragma once

#include "device/simulator/detect/observer.h"
#include "device/simulator/detect/taint.h"

namespace attest::device::sim::detect {

/// The wave is as the instruction will find it. @param approximate the operation itself is not exact.
void transfer_vector(WaveTaint& taint, const Step& step, bool approximate);

/// Whether transfer_vector is for this instruction.
bool is_vector(const Instruction& instruction);

}  // namespace attest::device::sim::detect
