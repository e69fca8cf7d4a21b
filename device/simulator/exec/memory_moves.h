// SPDX-License-Identifier: MIT
//
// The inner loops of memory instructions with all lanes on, compiled once per SIMD level: 64 addresses
// computed and checked, 64 elements moved. Partial EXEC, sub-dword elements and everything that can fault
// stays with the callers.
//
// Addresses: guest addresses are 64-bit words, LDS addresses a register of 32-bit offsets plus a constant,
// modulo 2^32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/simulator/exec/handlers.h"

namespace attest::device::sim {

struct Moves {
  /// out[l] = base + offset[l]
  void (*widen)(std::uint64_t* out, const std::uint32_t* offset, std::uint64_t base);
  /// out[l] = (low[l] | high[l] << 32) + base
  void (*join)(std::uint64_t* out, const std::uint32_t* low, const std::uint32_t* high, std::uint64_t base);
  /// When every address - start <= limit (less than 2^63): adds delta to all and returns true. Else changes
  /// nothing.
  bool (*rebase)(std::uint64_t* address, std::uint64_t start, std::uint64_t limit, std::uint64_t delta);
  /// o = offset[l] + add (32 bits); out[l] = base + o. True when every o <= limit (less than 2^63).
  bool (*place)(std::uint64_t* out, const std::uint32_t* offset, std::uint32_t add, std::uint64_t base,
                std::uint64_t limit);
  /// Whether every offset[l] + add (32 bits) <= limit (less than 2^31).
  bool (*inside)(const std::uint32_t* offset, std::uint32_t add, std::uint32_t limit);

  // Elements of 1 to 4 dwords: out[k * 64 + l] is dword k of lane l.
  void (*load[4])(std::uint32_t* out, const std::uint64_t* host);
  void (*store[4])(const std::uint32_t* in, const std::uint64_t* host);
  /// The offsets may be one of the registers loaded into.
  void (*load_near[4])(std::uint32_t* out, const std::byte* base, const std::uint32_t* offset,
                       std::uint32_t add);
  void (*store_near[4])(const std::uint32_t* in, std::byte* base, const std::uint32_t* offset,
                        std::uint32_t add);
};

/// Those of host_simd_level(); chosen when the first memory instruction is bound.
const Moves& moves();
/// For tests: those of a level this machine has.
void use_moves(SimdLevel level);

}  // namespace attest::device::sim
