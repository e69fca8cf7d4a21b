// SPDX-License-Identifier: MIT
//
// The door to the vector operations: the level is chosen here, at run time.
#include <fmt/format.h>

#include "device/simulator/core/fault.h"
#include "device/simulator/exec/handlers.h"
#include "device/simulator/exec/vector_entry.h"

namespace attest::device::sim {

namespace simd_baseline {
Handler bind(const Instruction& instruction);
}
namespace simd_avx2 {
Handler bind(const Instruction& instruction);
}
namespace simd_avx512 {
Handler bind(const Instruction& instruction);
}

Handler vector_handler(const Instruction& instruction, SimdLevel level) {
  switch (level) {
    case SimdLevel::avx512:
      return simd_avx512::bind(instruction);
    case SimdLevel::avx2:
      return simd_avx2::bind(instruction);
    case SimdLevel::baseline:
      break;
  }
  return simd_baseline::bind(instruction);
}

namespace vector {

void unmodelled_operand(const Instruction& instruction, std::uint16_t code) {
  throw Fault(FaultKind::unsupported, fmt::format("{} reads operand code {}, which is not modelled",
                                                  info(instruction.op).name, code));
}
void register_outside(const Instruction& instruction, std::uint32_t row, std::uint32_t rows) {
  throw Fault(FaultKind::register_range,
              fmt::format("{} reaches vector register {} of {} through GPR indexing",
                          info(instruction.op).name, row, rows));
}
void unknown_dpp_control(const Instruction& instruction) {
  throw Fault(FaultKind::illegal_instruction, fmt::format("{} has DPP control {:#x}, which does not exist",
                                                          info(instruction.op).name, instruction.dpp_ctrl));
}

}  // namespace vector
}  // namespace attest::device::sim
