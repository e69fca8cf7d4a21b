// SPDX-License-Identifier: MIT
//
// What one workgroup executed, instruction by instruction, with where its memory instructions went. Enough to
// follow values backwards (detect/slice.h) without their bits: those are looked up by running the launch once
// more, since every run is the same.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/simulator/detect/access.h"
#include "device/simulator/detect/lane_map.h"
#include "device/simulator/detect/observer.h"
#include "device/simulator/detect/session.h"

namespace attest::device::sim::detect {

/// Where a memory instruction went: Access, less what a recording can do without.
struct Touched {
  std::uint64_t global = 0, lds = 0, scratch = 0, dma = 0;
  std::uint32_t bytes = 0;               ///< of a lane's part
  std::uint8_t parts = 1;                ///< 2: also of LDS-DMA, whose other side is LDS
  bool load = false, store = false;      ///< an atomic is both
  bool atomic = false, lds_dma = false;  ///< lds_dma: part 0 is read from memory, part 1 written to LDS
  std::size_t first = 0;                 ///< of its addresses: [parts][lanes in touched()]

  [[nodiscard]] std::uint64_t touched() const { return global | lds | scratch | dma; }
};

struct Executed {
  std::uint32_t index = 0;      ///< in the program
  std::uint32_t wave = 0;       ///< in the workgroup
  std::uint64_t number = 0;     ///< of the wave's instructions
  std::uint64_t exec = 0;       ///< before it
  std::int32_t memory = -1;     ///< in the list of Touched
  std::int32_t effects = -1;    ///< in the list of Effects, where they are not the program's
  std::int32_t exchange = -1;   ///< in the list of LaneMaps: ds_bpermute and its like
  std::int8_t lane_select = 0;  ///< v_readlane, v_readfirstlane, v_writelane
};

class Recording {
 public:
  /// The oldest half is forgotten when there are more, or more addresses.
  static constexpr std::size_t most_instructions = std::size_t{1} << 21,
                               most_addresses = std::size_t{1} << 24;

  void add(const Step& step);

  [[nodiscard]] const std::vector<Executed>& all() const { return executed_; }
  /// Something older was forgotten.
  [[nodiscard]] bool cut() const { return cut_; }

  [[nodiscard]] const Touched* memory(const Executed& e) const {
    return e.memory < 0 ? nullptr : &touched_[static_cast<std::size_t>(e.memory)];
  }
  [[nodiscard]] std::uint64_t address(const Touched& t, unsigned part, int lane) const {
    const std::uint64_t lanes_touched = t.touched();
    const auto before = std::popcount(lanes_touched & ((std::uint64_t{1} << lane) - 1));
    return addresses_[t.first + std::size_t{part} * static_cast<std::size_t>(std::popcount(lanes_touched)) +
                      static_cast<std::size_t>(before)];
  }
  [[nodiscard]] const Effects& effects(const Executed& e, const Analysis& analysis) const {
    return e.effects < 0 ? analysis.effects[e.index] : effects_[static_cast<std::size_t>(e.effects)];
  }
  [[nodiscard]] const LaneMap* exchange(const Executed& e) const {
    return e.exchange < 0 ? nullptr : &exchanges_[static_cast<std::size_t>(e.exchange)];
  }

 private:
  void forget_half();

  std::vector<Executed> executed_;
  std::vector<Touched> touched_;
  std::vector<std::uint64_t> addresses_;
  std::vector<Effects> effects_;
  std::vector<LaneMap> exchanges_;
  bool cut_ = false;
};

}  // namespace attest::device::sim::detect
