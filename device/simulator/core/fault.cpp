// SPDX-License-Identifier: MIT
#include "device/simulator/core/fault.h"

namespace attest::device::sim {

const char* name(FaultKind kind) {
  switch (kind) {
    case FaultKind::memory_read:
      return "memory_read";
    case FaultKind::memory_write:
      return "memory_write";
    case FaultKind::misaligned:
      return "misaligned";
    case FaultKind::illegal_instruction:
      return "illegal_instruction";
    case FaultKind::unsupported:
      return "unsupported";
    case FaultKind::register_range:
      return "register_range";
    case FaultKind::bad_jump:
      return "bad_jump";
    case FaultKind::instruction_budget:
      return "instruction_budget";
    case FaultKind::barrier_deadlock:
      return "barrier_deadlock";
    case FaultKind::trap:
      return "trap";
    case FaultKind::launch:
      return "launch";
  }
  return "unknown";
}

}  // namespace attest::device::sim
