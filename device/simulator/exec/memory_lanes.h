// SPDX-License-Identifier: MIT
//
// What every memory family shares: elements that move between registers and bytes, 64 at a time, and guest
// addresses that become host addresses.
//
// A handler works in two passes. The first turns the addresses of all active lanes into host addresses and
// throws the Fault of the first lane that may not go there, so that a faulting store has written nothing. The
// second moves the data and cannot fail. Almost always all lanes fall into one region: then the first pass is
// one look-up and a check of the form
//
//     offset <= limit for every lane   <=>   no lane has the top bit of (offset | (limit - offset)) set
//
// which compilers vectorise for any x86-64. Unaligned addresses move plain bytes, as in the unaligned access
// mode that the Linux driver sets; only atomics ask for alignment.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/simulator/core/memory.h"
#include "device/simulator/core/wave.h"
#include "device/simulator/core/workgroup.h"
#include "device/simulator/exec/memory_moves.h"
#include "device/simulator/isa/instruction.h"

namespace attest::device::sim {

inline constexpr std::uint64_t all_lanes = ~std::uint64_t{0};

template <typename F>
void for_each_lane(std::uint64_t exec, F&& f) {
  if (exec == all_lanes) {
    for (int l = 0; l < lanes; ++l) f(l);
  } else {
    for (; exec != 0; exec &= exec - 1) f(std::countr_zero(exec));
  }
}

inline std::uint32_t* rows(Wave& w, std::uint16_t code) {
  return w.v(code - operand::vgpr0);
}

template <typename T>
T load_bytes(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

/// Elements. `bytes` in memory, `count` registers; load writes out[k * 64], store reads in[k * 64].
namespace element {

enum class Half { whole, low, high };  ///< D16: which half of the register, the other one stays

template <typename T, Half half = Half::whole>
struct Narrow {
  static constexpr std::uint32_t bytes = sizeof(T);
  static constexpr std::uint32_t count = 1;
  static void load(std::uint32_t* out, const std::byte* p) {
    const auto value = static_cast<std::uint32_t>(static_cast<std::int32_t>(load_bytes<T>(p)));
    if constexpr (half == Half::whole) *out = value;
    if constexpr (half == Half::low) *out = (*out & 0xffff0000u) | (value & 0xffffu);
    if constexpr (half == Half::high) *out = (*out & 0x0000ffffu) | (value << 16);
  }
  static void store(const std::uint32_t* in, std::byte* p) {
    const auto value = static_cast<T>(half == Half::high ? *in >> 16 : *in);
    std::memcpy(p, &value, sizeof value);
  }
};

template <std::uint32_t n>
struct Dwords {
  static constexpr std::uint32_t bytes = 4 * n;
  static constexpr std::uint32_t count = n;
  static void load(std::uint32_t* out, const std::byte* p) {
    for (std::uint32_t k = 0; k < n; ++k) std::memcpy(out + k * lanes, p + 4 * k, 4);
  }
  static void store(const std::uint32_t* in, std::byte* p) {
    for (std::uint32_t k = 0; k < n; ++k) std::memcpy(p + 4 * k, in + k * lanes, 4);
  }
};

using U8 = Narrow<std::uint8_t>;
using I8 = Narrow<std::int8_t>;
using U16 = Narrow<std::uint16_t>;
using I16 = Narrow<std::int16_t>;
using U8Low = Narrow<std::uint8_t, Half::low>;
using U8High = Narrow<std::uint8_t, Half::high>;
using I8Low = Narrow<std::int8_t, Half::low>;
using I8High = Narrow<std::int8_t, Half::high>;
using U16Low = Narrow<std::uint16_t, Half::low>;
using U16High = Narrow<std::uint16_t, Half::high>;

}  // namespace element

/// at(lane) is where the lane's element lies on the host.
template <typename E, typename At>
void load_lanes(std::uint32_t* out, std::uint64_t exec, At&& at) {
  for_each_lane(exec, [&](int l) { E::load(out + l, at(l)); });
}
template <typename E, typename At>
void store_lanes(const std::uint32_t* in, std::uint64_t exec, At&& at) {
  for_each_lane(exec, [&](int l) { E::store(in + l, at(l)); });
}

/// The same with host addresses as 64 integers.
template <typename E>
void load_far(std::uint32_t* out, std::uint64_t exec, const std::uint64_t* host) {
  if constexpr (E::bytes % 4 == 0) {
    if (exec == all_lanes) return moves().load[E::count - 1](out, host);
  }
  load_lanes<E>(out, exec, [&](int l) { return reinterpret_cast<const std::byte*>(host[l]); });
}
template <typename E>
void store_far(const std::uint32_t* in, std::uint64_t exec, const std::uint64_t* host) {
  if constexpr (E::bytes % 4 == 0) {
    if (exec == all_lanes) return moves().store[E::count - 1](in, host);
  }
  store_lanes<E>(in, exec, [&](int l) { return reinterpret_cast<std::byte*>(host[l]); });
}

/// Turns guest addresses into host addresses, in place, for the lanes of exec (not zero). Throws the first
/// lane's Fault.
void resolve(const Wave& w, const Instruction& i, std::uint64_t* address, std::uint64_t exec,
             std::uint32_t bytes, bool write);

[[noreturn]] void throw_access(const Instruction& i, const char* space, std::uint64_t address,
                               std::uint32_t bytes, bool write, int lane, const std::string& why);

/// Where [offset, offset + bytes) of the workgroup's LDS lies. Throws Fault when it is not all inside.
inline std::byte* lds_at(const Wave& w, const Instruction& i, std::uint32_t offset, std::uint32_t bytes,
                         bool write, int lane);

[[noreturn]] void throw_lds(const Wave& w, const Instruction& i, std::uint32_t offset, std::uint32_t bytes,
                            bool write, int lane);
[[noreturn]] void throw_misaligned(const Instruction& i, std::uint64_t address, std::uint32_t alignment,
                                   int lane);

inline std::byte* lds_at(const Wave& w, const Instruction& i, std::uint32_t offset, std::uint32_t bytes,
                         bool write, int lane) {
  if (std::uint64_t{offset} + bytes > w.group->lds_bytes) throw_lds(w, i, offset, bytes, write, lane);
  return w.group->lds + offset;
}

/// A scalar source operand of an address: an SGPR, or an inline integer.
inline std::uint32_t scalar_operand(const Wave& w, std::uint16_t code) {
  if (code < 128) return w.sgpr[code];
  if (code <= 192) return code - 128u;
  if (code <= 208) return 192u - code;
  return 0;
}

/// Where lane 0's element goes in a load to LDS, bytes. M0 counts bytes in buffer loads, [15:0]; the FLAT family
/// takes whole dwords of it, [17:2], and drops what is below. (AMD, "CDNA4 Instruction Set Architecture", 9.1.9 and
/// 10.3; of CDNA3 ck_tile says the same beside async_global_load_lds_dwordxn, amd_buffer_addressing_builtins.hpp.)
inline std::uint32_t m0_in_lds(const Instruction& i) {
  return i.encoding == Encoding::mubuf || i.encoding == Encoding::mtbuf ? 0xffffu : 0x3fffcu;
}
inline std::uint32_t lds_start(const Wave& w, const Instruction& i) {
  return (w.sgpr[operand::m0] & m0_in_lds(i)) + static_cast<std::uint32_t>(i.imm);
}

Handler ds_handler(const Instruction& instruction);
Handler global_handler(const Instruction& instruction);  ///< FLAT, GLOBAL, SCRATCH
Handler buffer_handler(const Instruction& instruction);  ///< MUBUF, MTBUF

}  // namespace attest::device::sim
