// SPDX-License-Identifier: MIT
//
// Buffer descriptors: which byte of memory a lane means, and whether the descriptor lets it through.
#pragma once

#include "device/simulator/exec/memory_lanes.h"

namespace attest::device::sim {

struct BufferDescriptor {
  std::uint64_t base = 0;     ///< 48 bits
  std::uint32_t stride = 0;   ///< bytes
  std::uint32_t records = 0;  ///< bytes, or records of an indexed access with a stride
  std::uint32_t index_stride = 8;
  std::uint32_t select[4] = {};  ///< 0, 1, or 4..7: component of the format
  std::uint32_t number_format = 0, data_format = 0;
  bool swizzle = false, add_thread_id = false;
};

BufferDescriptor read_descriptor(const Wave& w, std::uint16_t sgpr);

struct BufferLanes {
  std::uint64_t address[lanes];  ///< guest
  std::uint64_t whole;           ///< lanes whose element is wholly inside the descriptor
  std::uint64_t partial;         ///< lanes with only the first dwords[l] dwords inside
  std::uint8_t dwords[lanes];
};

/// Addresses and clipping of all lanes of exec. whole_only: atomics and formats, which are all or nothing.
void place_lanes(const Wave& w, const Instruction& i, const BufferDescriptor& d, std::uint64_t exec,
                 std::uint32_t bytes, bool whole_only, BufferLanes& out);

/// MTBUF and MUBUF's format operations: exec/memory_format.cpp
Handler format_handler(const Instruction& instruction);
/// Bytes of a lane's element in memory; 0 for a reserved format, which moves nothing.
std::uint32_t format_bytes(const Instruction& instruction, const BufferDescriptor& descriptor);

}  // namespace attest::device::sim
