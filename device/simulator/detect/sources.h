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
//   sources.loaded({origin::instruction(index), wave, number, space, address, lane});   // met unwritten bytes
//   Origin kept = sources.keep(from, wave, Space::lds);       // a register's `from`, about to lie in LDS
//   Source source = sources.find(from, wave);                 // of either kind of origin
//
// One workgroup's. A kept origin keeps the execution it stands for, however often the instruction comes again.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "device/simulator/detect/access.h"
#include "device/simulator/detect/taint.h"

namespace attest::device::sim::detect {

struct Source {
  Origin origin = origin::none;  ///< an instruction, or a register at entry
  std::uint32_t wave = 0;
  // Of an instruction: which of the wave's it was, and where the first never-written byte lies.
  std::uint64_t number = 0;
  Space space = Space::global;
  std::uint64_t address = 0;
  int lane = -1;
  bool through_lds = false, through_scratch = false;
};

class Sources {
 public:
  /// A load met bytes nobody wrote. The latest of each wave and instruction stands.
  void loaded(const Source& source) { loads_[{source.wave, source.origin}] = source; }
  /// What LDS or scratch has to hold for the value of a register of `wave`.
  Origin keep(Origin from, std::uint32_t wave, Space in);
  /// What a register of `wave` got its never-written bytes from.
  [[nodiscard]] Source find(Origin from, std::uint32_t wave) const;

 private:
  std::map<std::pair<std::uint32_t, Origin>, Source> loads_;
  std::vector<Source> kept_;  ///< by origin - origin::kept
  using Key = std::tuple<std::uint32_t, Origin, std::uint64_t, bool, bool>;
  std::map<Key, Origin> known_;  ///< the same
};

}  // namespace attest::device::sim::detect
