// SPDX-License-Identifier: MIT
#include "device/simulator/detect/recording.h"

#include <algorithm>

#include "device/simulator/exec/scalar_operands.h"

namespace attest::device::sim::detect {
namespace {

/// The lane that v_readlane and its like pick.
std::int8_t selected_lane(const Step& step) {
  const Instruction& i = step.instruction;
  if (i.op == Op::v_readfirstlane_b32) {
    const std::uint64_t exec = step.wave.exec();
    return static_cast<std::int8_t>(exec == 0 ? 0 : std::countr_zero(exec));
  }
  if (i.op == Op::v_readlane_b32 || i.op == Op::v_writelane_b32)
    return static_cast<std::int8_t>(sim::scalar::read32<true>(step.wave, i, 1) & 63);
  return 0;
}

bool exchanges_lanes(Op op) {
  return op == Op::ds_bpermute_b32 || op == Op::ds_permute_b32 || op == Op::ds_swizzle_b32;
}

}  // namespace

void Recording::add(const Step& step) {
  if (executed_.size() >= most_instructions || addresses_.size() >= most_addresses) forget_half();
  Executed e;
  e.index = step.index;
  e.wave = step.wave.id_in_group;
  e.number = step.number;
  e.exec = step.wave.exec();
  e.lane_select = selected_lane(step);
  if (depends_on_m0(step.effects, step.wave.mode)) {
    e.effects = static_cast<std::int32_t>(effects_.size());
    effects_.push_back(step.effects);
  }
  if (exchanges_lanes(step.instruction.op)) {
    e.exchange = static_cast<std::int32_t>(exchanges_.size());
    exchanges_.push_back(exchange_map(step.instruction, step.wave));
  }
  if (const Access* a = step.access; a != nullptr) {
    Touched t;
    t.global = a->global;
    t.lds = a->lds;
    t.scratch = a->scratch;
    t.dma = a->shape.lds_dma ? a->dma : 0;
    t.bytes = a->bytes;
    t.lds_dma = a->shape.lds_dma;
    t.parts = t.lds_dma ? std::uint8_t{2} : a->shape.parts;
    t.load = a->reads();
    t.store = a->writes();
    t.atomic = a->shape.kind == AccessKind::atomic;
    t.first = addresses_.size();
    for (unsigned part = 0; part < t.parts; ++part)
      for (std::uint64_t m = t.touched(); m != 0; m &= m - 1)
        addresses_.push_back(a->address[part][std::countr_zero(m)]);
    e.memory = static_cast<std::int32_t>(touched_.size());
    touched_.push_back(t);
  }
  executed_.push_back(e);
}

void Recording::forget_half() {
  cut_ = true;
  const std::size_t half = executed_.size() / 2;
  const auto first_kept = [&](auto field, std::size_t none) {
    for (std::size_t k = half; k < executed_.size(); ++k)
      if (executed_[k].*field >= 0) return static_cast<std::size_t>(executed_[k].*field);
    return none;
  };
  const std::size_t touched = first_kept(&Executed::memory, touched_.size());
  const std::size_t effects = first_kept(&Executed::effects, effects_.size());
  const std::size_t exchanges = first_kept(&Executed::exchange, exchanges_.size());
  const std::size_t addresses = touched < touched_.size() ? touched_[touched].first : addresses_.size();
  const auto drop = [](auto& list, std::size_t count) {
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count));
  };
  drop(executed_, half);
  drop(touched_, touched);
  drop(effects_, effects);
  drop(exchanges_, exchanges);
  drop(addresses_, addresses);
  for (Touched& t : touched_) t.first -= addresses;
  for (Executed& e : executed_) {
    if (e.memory >= 0) e.memory -= static_cast<std::int32_t>(touched);
    if (e.effects >= 0) e.effects -= static_cast<std::int32_t>(effects);
    if (e.exchange >= 0) e.exchange -= static_cast<std::int32_t>(exchanges);
  }
}

}  // namespace attest::device::sim::detect
