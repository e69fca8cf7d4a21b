// SPDX-License-Identifier: MIT
//
// Who is told of an instruction before it is executed: asked for every one, in the dispatcher's own loop, as
// most concern nobody and a call that finds this out would take as long as the instruction (gate.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/simulator/core/wave.h"
#include "device/simulator/detect/gate.h"

namespace attest::device::sim::detect {

/// Which observers are told of one instruction of the program: bit n stands for observer n.
struct Route {
  /// Before it is executed, by namespace when (observer.h).
  std::uint16_t always = 0, pending = 0, tainted = 0, near_results = 0, near_scalars = 0, near_plain = 0;
  std::uint16_t after = 0;
  bool locate = false;                  ///< one of them looks where it goes in memory
  bool relative = false;                ///< s_movrel: its registers are off by M0
  bool indexed = false;                 ///< so they are in GPR index mode
  std::uint64_t rows = 0, scalars = 0;  ///< that it reads or writes, as gate.h tells registers
};

/// Of one workgroup.
class Screen {
 public:
  /// @param routes [program size]; @param trips [waves * program size], zeros: counts executions
  Screen(std::span<const Route> routes, std::uint32_t* trips, std::uint32_t waves)
      : routes_(routes.data()), size_(routes.size()), trips_(trips), gates_(waves) {}

  /// Instruction `index` is next in the wave, its instruction `number`. @return true: nobody is told
  bool lets_by(const Wave& wave, std::uint32_t index, std::uint64_t number) {
    const Route& route = routes_[index];
    const Gate& gate = gates_[wave.id_in_group];
    trip_ = trips_[wave.id_in_group * size_ + index]++;
    unsigned told = route.always;
    if (((route.rows & gate.pending_rows) | (route.scalars & gate.pending_scalars)) != 0)
      told |= route.pending;
    if (((route.rows & gate.tainted_rows) | (route.scalars & gate.tainted_scalars)) != 0)
      told |= route.tainted;
    if (number < gate.any_until) {
      told |= number < gate.results_until ? route.near_results : 0u;
      told |= number < gate.scalars_until ? route.near_scalars : 0u;
      told |= number < gate.plain_until ? route.near_plain : 0u;
    }
    shifted_ = route.relative || (route.indexed && (wave.mode & mode::gpr_idx_en) != 0);
    if (shifted_)
      told |= unsigned{route.pending} | route.tainted | route.near_results | route.near_scalars |
              route.near_plain;
    told_ = told;
    return told == 0 && route.after == 0;
  }

  // Of the instruction that was not let by last.
  [[nodiscard]] unsigned told() const { return told_; }       ///< observers, as in Route
  [[nodiscard]] bool shifted() const { return shifted_; }     ///< its registers are not those that it names
  [[nodiscard]] std::uint32_t trip() const { return trip_; }  ///< times the wave has executed it before
  /// Where observers leave word, [wave].
  [[nodiscard]] std::span<Gate> gates() { return gates_; }

 private:
  const Route* routes_;
  std::size_t size_;
  std::uint32_t* trips_;
  std::vector<Gate> gates_;
  unsigned told_ = 0;
  bool shifted_ = false;
  std::uint32_t trip_ = 0;
};

}  // namespace attest::device::sim::detect
