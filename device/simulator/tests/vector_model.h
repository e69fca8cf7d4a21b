// SPDX-License-Identifier: MIT
//
// A second, slow meaning of every vector instruction, to compare the fast one with.
//
// It shares nothing with exec/: one lane at a time, dispatch by the spelling of the mnemonic, floating point
// in exact fixed-point arithmetic (4864 bits hold every sum of an f64 product and an f64) with one explicit
// rounding, and NaNs, infinities and zeros decided before any arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/simulator/isa/instruction.h"

namespace attest::device::sim::model {

/// Registers of one wave.
struct Machine {
  std::uint32_t sgpr[128] = {};
  std::uint32_t scc = 0, mode = 0;
  std::vector<std::uint32_t> vgpr;  ///< [rows][64]

  [[nodiscard]] std::uint64_t pair(unsigned code) const {
    return sgpr[code] | std::uint64_t{sgpr[(code + 1) & 127]} << 32;
  }
  bool operator==(const Machine&) const = default;
};

/// False if the model does not know the operation.
bool step(const Instruction& instruction, Machine& machine);

/// Operations whose result is only bounded: f32 and f16 within one unit in the last place of the model's, f64
/// within 2^29.
bool is_bounded(Op op);

// The 8-bit formats, by their definition.
float fp8_value(std::uint8_t byte, bool e5m2);
std::uint8_t fp8_nearest(float x, bool e5m2, bool saturate);

}  // namespace attest::device::sim::model
