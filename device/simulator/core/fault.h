// SPDX-License-Identifier: MIT
//
// Why a kernel was stopped. Thrown by handlers, completed with kernel, pc and wave by the dispatcher, shown
// to people as one line and to programs as a kind.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace attest::device::sim {

enum class FaultKind : std::uint8_t {
  memory_read,  ///< an address outside every allocation
  memory_write,
  misaligned,           ///< an access the hardware does not do at that address
  illegal_instruction,  ///< an encoding outside gfx942
  unsupported,          ///< a gfx942 instruction the simulator does not execute
  register_range,       ///< a register past the kernel's allocation
  bad_jump,             ///< a branch outside the code
  instruction_budget,   ///< runaway kernel
  barrier_deadlock,     ///< some waves wait at a barrier that others can no longer reach
  trap,                 ///< s_trap
  launch,               ///< more LDS, registers or work-items than exist
};
const char* name(FaultKind kind);

class Fault : public std::exception {
 public:
  Fault(FaultKind fault_kind, std::string text) : kind(fault_kind), message(std::move(text)) {}
  [[nodiscard]] const char* what() const noexcept override { return message.c_str(); }

  FaultKind kind;
  std::string message;        ///< what happened, without location: "global_load_dword reads 4 bytes at 0x..."
  std::uint64_t address = 0;  ///< guest address, when there is one
  int lane = -1;              ///< first offending lane, when there is one
};

}  // namespace attest::device::sim
