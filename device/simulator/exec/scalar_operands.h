// SPDX-License-Identifier: MIT
//
// Reading the operands of scalar instructions.
//
// Operand codes below 128 index the register array, inline constants index a table. What is left (literal,
// scc, vccz, execz, apertures) is rare, so handlers come in two forms: `any` false when the instruction has
// only the former.
#pragma once

#include <array>
#include <cstdint>

#include "device/simulator/core/wave.h"
#include "device/simulator/exec/handlers.h"
#include "device/simulator/isa/instruction.h"

namespace attest::device::sim::scalar {

/// Value of the inline constant codes 128..208 and 240..248 in a 32-bit and a 64-bit operand; 0 elsewhere.
struct Constants {
  std::array<std::uint32_t, 256> w32{};
  std::array<std::uint64_t, 256> w64{};
};
constexpr Constants make_constants() {
  Constants c;
  for (unsigned code = 129; code <= 192; ++code)
    c.w32[code] = static_cast<std::uint32_t>(c.w64[code] = code - 128);
  for (unsigned code = 193; code <= 208; ++code) {
    c.w64[code] = std::uint64_t{0} - (code - 192);
    c.w32[code] = static_cast<std::uint32_t>(c.w64[code]);
  }
  constexpr std::uint32_t f32[] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                   0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
  constexpr std::uint64_t f64[] = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
                                   0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
                                   0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};
  for (unsigned k = 0; k < 9; ++k) {
    c.w32[240 + k] = f32[k];
    c.w64[240 + k] = f64[k];
  }
  return c;
}
inline constexpr Constants constants = make_constants();

/// Codes that `any` is for.
constexpr bool is_special(std::uint16_t code) {
  return code != operand::none && (code > 248 || (code > 208 && code < 240));
}
inline bool has_special(const Instruction& i) {
  return is_special(i.src[0]) || is_special(i.src[1]);
}

inline std::uint64_t special_value(const Wave& w, std::uint16_t code) {
  switch (code) {
    case 235:
      return aperture::shared_base;
    case 236:
      return aperture::shared_base + 0xffffffffu;
    case 237:
      return aperture::private_base;
    case 238:
      return aperture::private_base + 0xffffffffu;
    case 251:
      return w.vcc() == 0;
    case 252:
      return w.exec() == 0;
    case 253:
      return w.scc;
    default:
      return 0;
  }
}

template <bool any>
std::uint32_t read32(const Wave& w, const Instruction& i, int s) {
  const std::uint16_t code = i.src[s];
  if (code < 128) return w.sgpr[code];
  if constexpr (any) {
    if (code == operand::literal) return i.literal;
    if (is_special(code)) {
      const std::uint64_t value = special_value(w, code);
      return static_cast<std::uint32_t>(code <= 238 ? value >> 32 : value);  // apertures: the upper half
    }
  }
  return constants.w32[code];
}

/// A literal is zero-extended, except where the operation is signed.
template <bool any, bool signed_literal = false>
std::uint64_t read64(const Wave& w, const Instruction& i, int s) {
  const std::uint16_t code = i.src[s];
  if (code < 128) return w.s64(code);
  if constexpr (any) {
    if (code == operand::literal) {
      return signed_literal ? static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(i.literal)})
                            : i.literal;
    }
    if (is_special(code)) return special_value(w, code);
  }
  return constants.w64[code];
}

// The families behind scalar_handler(); nullptr: not theirs, or not executed.
Handler arithmetic_handler(const Instruction& i);  ///< SOP1, SOP2, SOPC, SOPK
Handler control_handler(const Instruction& i);     ///< jumps, EXEC and M0 and MODE, SOPP
Handler memory_handler(const Instruction& i);      ///< SMEM

}  // namespace attest::device::sim::scalar
