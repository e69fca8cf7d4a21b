// SPDX-License-Identifier: MIT
//
// Where scalar memory instructions go.
#pragma once

#include <cstdint>

#include "device/simulator/core/wave.h"

namespace attest::device::sim::scalar {

/// base + imm + SGPR, low two bits ignored.
std::uint64_t address_of(const Wave& w, const Instruction& i);

struct BufferPlace {
  std::uint64_t address;
  std::uint32_t dwords;  ///< of the up to 16 from there on that lie inside the buffer
};
BufferPlace buffer_place(const Wave& w, const Instruction& i);

/// Throws Fault when they are not all inside one region.
void read_dwords(const Wave& w, const Instruction& i, std::uint64_t address, std::uint32_t* to,
                 std::uint32_t count);

/// Stores, atomics, scratch accesses; nullptr for others.
Handler store_handler(const Instruction& i);

}  // namespace attest::device::sim::scalar
