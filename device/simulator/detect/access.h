// SPDX-License-Identifier: MIT
//
// Where a memory instruction that is about to be executed goes, lane by lane.
//
//   const AccessShape shape = access_shape(instruction);      // once per instruction of a program
//   Access access;
//   if (shape.touches_memory()) locate(wave, instruction, shape, access);
//   for each lane of access.global: [address[0][lane], + access.bytes_of(lane))
//
// Three address spaces: guest memory (`global`, also through buffer descriptors and scalar loads), the
// workgroup's LDS (byte offsets), and the lane's scratch (byte offsets). FLAT instructions mix them lane by
// lane. Nothing here faults: an address that leads nowhere is reported as it is, the handler will raise the
// Fault.
//
// LDS-DMA (loads that go to LDS without a register) is a load from guest memory, address[0], and a store of 4
// bytes per lane to LDS, address[1].
#pragma once

#include <bit>
#include <cstdint>

#include "device/simulator/core/wave.h"
#include "device/simulator/isa/instruction.h"

namespace attest::device::sim::detect {

enum class AccessKind : std::uint8_t { none, load, store, atomic };
enum class Space : std::uint8_t { global, lds, scratch, flat };
/// How the bytes of the lanes that touch memory lie, in the order of the lanes: one behind the other without a
/// gap, all in one place, or neither. Rows of a matrix and values that a wave shares make up most accesses,
/// and a detector may take such a one for a single range of bytes.
enum class Layout : std::uint8_t { scattered, consecutive, same };

/// What the instruction alone says.
struct AccessShape {
  AccessKind kind = AccessKind::none;
  Space space = Space::global;
  std::uint8_t bytes = 0;   ///< of one part; 0: the buffer descriptor's format decides
  std::uint8_t parts = 1;   ///< 2: ds_read2, ds_write2, ds_wrxchg2
  std::uint8_t stride = 1;  ///< of the two offsets, in parts: 64 for the st64 forms
  bool lds_dma = false;
  bool scalar = false;   ///< s_load: one access, of lane 0
  bool buffer = false;   ///< through a descriptor in SGPRs: clips
  bool m0_base = false;  ///< LDS address in M0 (addtid, append, consume, LDS-DMA)

  [[nodiscard]] bool touches_memory() const { return kind != AccessKind::none; }
};
AccessShape access_shape(const Instruction& instruction);

/// Whether the lanes of a mask, at least one, are all lanes from its first to its last.
constexpr bool without_gaps(std::uint64_t mask) {
  const std::uint64_t from_first = mask >> std::countr_zero(mask);
  return (from_first & (from_first + 1)) == 0;
}

struct Access {
  AccessShape shape;
  std::uint64_t global = 0, lds = 0, scratch = 0;  ///< lanes whose address[0] lies in that space; disjoint
  std::uint64_t clipped = 0;                       ///< lanes that the descriptor keeps out, wholly or in part
  std::uint64_t shortened = 0;                     ///< of these: lanes of which size[] bytes pass
  std::uint64_t dma = 0;            ///< LDS-DMA: lanes that write LDS, clipped ones (they write 0) included
  std::uint32_t bytes = 0;          ///< of a lane's part
  Layout layout[2] = {};            ///< by part; scattered unless all lanes are whole and in one space
  std::uint8_t size[lanes] = {};    ///< of lanes in `shortened`: the bytes that pass
  std::uint64_t address[2][lanes];  ///< [part or, for LDS-DMA, side][lane]; set for lanes in the masks

  /// Lanes that touch memory at all.
  [[nodiscard]] std::uint64_t touched() const { return global | lds | scratch; }
  /// Bytes of a lane that pass the descriptor; 0 when it is kept out.
  [[nodiscard]] std::uint32_t bytes_of(int lane) const {
    return (shortened >> lane & 1) != 0 ? size[lane] : bytes;
  }
  /// Of a part that is not scattered: the bytes from the first lane's address on that its lanes touch.
  [[nodiscard]] std::uint32_t extent(unsigned part) const {
    return layout[part] == Layout::same ? bytes : bytes * static_cast<unsigned>(std::popcount(touched()));
  }
  [[nodiscard]] bool reads() const { return shape.kind != AccessKind::store; }
  [[nodiscard]] bool writes() const { return shape.kind != AccessKind::load; }
};

/// Throws nothing. The wave is as the instruction will find it.
void locate(const Wave& wave, const Instruction& instruction, const AccessShape& shape, Access& access);

}  // namespace attest::device::sim::detect
