// SPDX-License-Identifier: MIT
//
// Where never-written data came from, for reports.
//
// A register knows by its Origin (taint.h) what brought its never-written bytes: an instruction, or nothing,
// when the register itself was not written. That is lost when a kernel parks the value in LDS or scratch: what
// loads it from there is not to blame, and the LDS was written, with what a buffer never held. So a store
// leaves the origin of what it stored beside the bytes (taint_memory.h) and a load takes it up again, in
// whatever wave:
//
//   sources.loaded({origin::instruction(index), wave, number}, places);   // a load met unwritten bytes
//   Origin kept = sources.keep(from, wave, Space::lds);       // a register's `from`, about to lie in LDS
//   lds[address] = Sources::of_lane(kept, from, lane);
//   Source source = sources.find(from, wave, lane);           // of either kind of origin
//
// One workgroup's. A kept origin keeps the execution it stands for, however often the instruction comes again.
// Which byte it was is told by lane, as if values stayed in the lane that loaded them until they are stored.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "device/simulator/detect/access.h"
#include "device/simulator/detect/taint.h"

namespace attest::device::sim::detect {

/// The first never-written byte of each lane of a load.
struct Places {
  std::uint64_t mask = 0, lds = 0, scratch = 0;  ///< lanes that have one; those of them not in global memory
  std::uint64_t address[lanes];                  ///< of the lanes in mask

  void add(Space space, int lane, std::uint64_t at) {
    const std::uint64_t bit = std::uint64_t{1} << lane;
    if ((mask & bit) != 0) return;
    mask |= bit;
    if (space == Space::lds) lds |= bit;
    if (space == Space::scratch) scratch |= bit;
    address[lane] = at;
  }
};

struct Source {
  Origin origin = origin::none;  ///< an instruction, or a register at entry
  std::uint32_t wave = 0;
  // Of an instruction: which of the wave's it was, and where the never-written byte lies. No lane: not known.
  std::uint64_t number = 0;
  Space space = Space::global;
  int lane = -1;
  std::uint64_t address = 0;
  bool through_lds = false, through_scratch = false;
};

class Sources {
 public:
  /// A load met bytes nobody wrote. The latest of each wave and instruction stands.
  void loaded(const Source& source, const Places& places);
  /// What LDS or scratch has to hold for the value of a register of `wave`.
  Origin keep(Origin from, std::uint32_t wave, Space in);
  /// The same for one lane of it.
  static Origin of_lane(Origin kept, Origin from, int lane) {
    return origin::is_kept(from) ? kept : kept + static_cast<Origin>(lane);
  }
  /// What a register of `wave` got its never-written bytes from, in a lane; -1: in whichever.
  [[nodiscard]] Source find(Origin from, std::uint32_t wave, int lane) const;

 private:
  struct Load {
    Source source;
    std::shared_ptr<const Places> places;  ///< nullptr: of a register at entry
  };
  using Key = std::tuple<std::uint32_t, Origin, std::uint64_t, bool, bool>;
  [[nodiscard]] Load load(Origin from, std::uint32_t wave) const;

  std::map<std::pair<std::uint32_t, Origin>, Load> loads_;
  std::vector<Load> kept_;  ///< by number
  std::map<Key, Origin> known_;
};

}  // namespace attest::device::sim::detect
