// SPDX-License-Identifier: MIT
//
// Which function executes an instruction. Each family answers for its own encodings and returns nullptr for
// what it does not know; the program loader asks in turn and binds a handler that raises Fault::unsupported
// to the rest.
//
// By the time a handler runs, the loader has made sure that every register operand lies inside the kernel's
// allocation and has folded a-registers into rows: operand codes 256.. are vgpr rows + 256 (up to 256 + 511).
// The imm of s_branch, s_cbranch_* and s_call_b64 is no longer a distance but the absolute index of the
// target instruction: `wave.pc = imm`. Code addresses (s_getpc, s_setpc, s_swappc, s_call's return) go
// through wave.program->address_of(index) and wave.program->index_of(address), see core/program.h.
#pragma once

#include <cstdint>

#include "device/simulator/core/wave.h"
#include "device/simulator/isa/instruction.h"

namespace attest::device::sim {

/// The widest instruction set the hot handlers were compiled for and this machine has. All levels give the
/// same bits; tests force each one.
enum class SimdLevel : std::uint8_t { baseline, avx2, avx512 };

/// What this machine offers, or less when ATTEST_SIMD=baseline|avx2|avx512 asks for it.
SimdLevel host_simd_level();

Handler scalar_handler(const Instruction& instruction);                   ///< SOP*, SMEM: exec/scalar*.cpp
Handler vector_handler(const Instruction& instruction, SimdLevel level);  ///< VOP*: exec/vector*.cpp
Handler matrix_handler(const Instruction& instruction, SimdLevel level);  ///< MAI: matrix/
Handler memory_handler(const Instruction& instruction);  ///< DS, MUBUF, MTBUF, FLAT: exec/memory*.cpp

}  // namespace attest::device::sim
