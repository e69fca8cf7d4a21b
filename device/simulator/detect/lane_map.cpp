// SPDX-License-Identifier: MIT
#include "device/simulator/detect/lane_map.h"

#include <algorithm>

#include "device/simulator/exec/handlers.h"

namespace attest::device::sim::detect {
namespace {

/// Three registers: data (lane numbers from 1), result, address.
struct Probe {
  Probe() {
    wave.vgpr = registers;
    wave.vgpr_count = 3;
    for (std::uint32_t l = 0; l < lanes; ++l) registers[l] = l + 1;
    std::fill_n(registers + lanes, lanes, untouched);
  }
  LaneMap read() const {
    LaneMap map;
    for (std::size_t l = 0; l < lanes; ++l) {
      const std::uint32_t value = registers[lanes + l];
      map.from[l] = value == untouched ? LaneMap::keeps
                    : value == 0       ? LaneMap::zero
                                       : static_cast<std::int8_t>(value - 1);
    }
    return map;
  }

  static constexpr std::uint32_t untouched = 0xffffffffu;
  static constexpr std::uint16_t data = operand::vgpr0, result = operand::vgpr0 + 1,
                                 address = operand::vgpr0 + 2;
  alignas(64) std::uint32_t registers[3 * lanes] = {};
  Wave wave;
};

}  // namespace

std::uint64_t LaneMap::move(std::uint64_t bits) const {
  if (bits == 0) return 0;
  std::uint64_t moved = 0;
  for (std::size_t l = 0; l < lanes; ++l)
    if (from[l] >= 0) moved |= (bits >> from[l] & 1) << l;
  return moved;
}

std::uint64_t LaneMap::written() const {
  std::uint64_t mask = 0;
  for (std::size_t l = 0; l < lanes; ++l)
    if (from[l] != keeps) mask |= std::uint64_t{1} << l;
  return mask;
}

LaneMap dpp_map(const Instruction& instruction, std::uint64_t exec) {
  Instruction move;
  move.op = Op::v_mov_b32;
  move.encoding = Encoding::vop1;
  move.extension = Extension::dpp;
  move.dpp_ctrl = instruction.dpp_ctrl;
  move.row_mask = instruction.row_mask;
  move.bank_mask = instruction.bank_mask;
  move.bound_ctrl = instruction.bound_ctrl;
  move.src[0] = Probe::data;
  move.dst = Probe::result;
  Probe probe;
  probe.wave.set_s64(operand::exec, exec);
  vector_handler(move, SimdLevel::baseline)(probe.wave, move);
  return probe.read();
}

LaneMap exchange_map(const Instruction& instruction, const Wave& wave) {
  Instruction exchange = instruction;
  Probe probe;
  probe.wave.set_s64(operand::exec, wave.exec());
  exchange.dst = Probe::result;
  if (instruction.op == Op::ds_swizzle_b32) {
    exchange.addr = Probe::data;
  } else {
    std::copy_n(wave.v(instruction.addr - operand::vgpr0), lanes, probe.registers + 2 * lanes);
    exchange.addr = Probe::address;
    exchange.data[0] = Probe::data;
  }
  memory_handler(exchange)(probe.wave, exchange);
  return probe.read();
}

}  // namespace attest::device::sim::detect
