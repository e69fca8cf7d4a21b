// SPDX-License-Identifier: MIT
//
// The matrix unit: executes v_mfma_* and v_smfmac_* on a wave's registers.
//
// Matrix instructions ignore EXEC, always round to nearest even and keep subnormals, except that f32 and xf32
// flush subnormal A and B when MODE says so; C and D are never flushed. All sources are read before D is
// written, so D may overlap any of them.
//
// How the work is divided: model.h is the arithmetic of one element, forms.h the shapes and layouts, and
// every instruction can be executed from those two (model_handler). The frequent shapes have vector kernels
// besides (kernels.h), which give the same bits many times faster; exec/handlers.h declares matrix_handler,
// which picks one, under the SumRule that the environment variable ATTEST_SIM_MFMA names.
//
// The host must run with rounding to nearest and without flushing (MXCSR as the C runtime sets it). Handlers
// are only handed out when that holds; changing it later in the thread that simulates breaks every result.
#pragma once

#include "device/simulator/exec/handlers.h"
#include "device/simulator/matrix/model.h"

namespace attest::device::sim::matrix {

/// As matrix_handler in exec/handlers.h, under a chosen rule. nullptr for anything but a matrix instruction
/// with A and B in vector registers and C in vector registers or an inline constant. A modifier combination
/// that the manual calls illegal or undefined gets a handler that throws Fault illegal_instruction.
Handler handler(const Instruction& instruction, SimdLevel level, SumRule rule);

/// The same, element by element with the model. What the vector kernels are compared with.
Handler model_handler(const Instruction& instruction, SumRule rule);

}  // namespace attest::device::sim::matrix
