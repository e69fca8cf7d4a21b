// SPDX-License-Identifier: MIT
#include "device/simulator/exec/scalar_operands.h"

namespace attest::device::sim {

Handler scalar_handler(const Instruction& instruction) {
  switch (instruction.encoding) {
    case Encoding::smem:
      return scalar::memory_handler(instruction);
    case Encoding::sop1:
    case Encoding::sop2:
    case Encoding::sopc:
    case Encoding::sopk:
    case Encoding::sopp: {
      const Handler control = scalar::control_handler(instruction);
      return control != nullptr ? control : scalar::arithmetic_handler(instruction);
    }
    default:
      return nullptr;
  }
}

}  // namespace attest::device::sim
