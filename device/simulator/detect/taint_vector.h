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

#include <cstdint>
#include <optional>

#include "device/simulator/detect/observer.h"
#include "device/simulator/detect/taint.h"

namespace attest::device::sim::detect {

/// The wave is as the instruction will find it. @param approximate the operation itself is not exact.
void transfer_vector(WaveTaint& taint, const Step& step, bool approximate);

/// Of an instruction that, whatever its operands hold, leaves its result not exact in the lanes in which one
/// of some rows is: which rows, dword by dword. Most arithmetic is like that, and what comes out of the
/// softmax of a kernel is not exact wherever it goes. Comparisons (but for those that are clear cut,
/// dataflow.h) and v_cndmask (rows[0]: of the value where the mask is clear, rows[1]: where it is set) are
/// nearly so.
struct Inflow {
  enum class Kind : std::uint8_t { value, comparison, selection };
  Kind kind = Kind::value;
  std::uint16_t dst = 0;    ///< first row of the result, of a comparison its scalar
  std::uint8_t dwords = 0;  ///< of it: 1 or 2
  std::uint8_t count[2] = {};
  std::uint16_t rows[2][6] = {};  ///< in the order in which their origins count
};
std::optional<Inflow> inflow_of(const Instruction& instruction, const Effects& effects);
/// transfer_vector when no scalar that the instruction reads or writes is tainted, EXEC and the rows of the
/// result included, and GPR indexing is off. @return false: some row holds never-written bytes, nothing done
bool transfer_inexact(WaveTaint& taint, const Step& step, const Inflow& inflow, bool approximate);

/// Whether transfer_vector is for this instruction.
bool is_vector(const Instruction& instruction);

}  // namespace attest::device::sim::detect
