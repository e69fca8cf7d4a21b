// SPDX-License-Identifier: MIT
//
// The taint of memory, byte by byte: guest memory's notes (core/memory.h) outlive the launch; LDS and scratch
// belong to one workgroup and start never-written.
//
//   MemoryTaint memory;
//   const Loaded loaded = memory.load(step);     // the taint of what a load brings, lane by lane
//   memory.store(step, taint, sources);          // notes what a store leaves behind
//
// A store to guest memory leaves written bytes whatever it stored: that never-written data reached memory has
// been said by then, once. LDS and scratch keep beside never-written bytes where these came from, dword by
// dword (sources.h); of a dword pieced together from two, the later.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "device/simulator/core/memory.h"
#include "device/simulator/detect/access.h"
#include "device/simulator/detect/observer.h"
#include "device/simulator/detect/sources.h"
#include "device/simulator/detect/taint.h"

namespace attest::device::sim::detect {

struct Loaded {
  /// Of each register that is written. undefined_from: what was stored there, or none, of the first lane that
  /// has any; inexact_from: none.
  LaneTaint dword[4];
  bool clean = true;
  Places places;  ///< of bytes that were not stored at all
};

class MemoryTaint {
 public:
  /// A workgroup begins.
  void start(Memory& memory, std::uint32_t lds_bytes, std::uint32_t waves, std::uint32_t scratch_bytes);

  /// Of a load or of the value an atomic returns. The wave is as the instruction will find it.
  Loaded load(const Step& step);
  /// Of a scalar load: the SGPRs' bits, [dwords].
  Loaded load_scalar(const Step& step, std::vector<BitTaint>& registers);
  void store(const Step& step, const WaveTaint& taint, Sources& sources);
  void store_scalar(const Step& step);
  /// A load to LDS: the notes move with the bytes.
  void load_to_lds(const Step& step, Sources& sources);

 private:
  /// The notes of [address, address + bytes) of a lane; nullptr: all written and exact.
  std::uint8_t* notes(const Step& step, Space space, std::uint64_t address, std::uint32_t bytes, int lane);
  static Space space_of(const Access& access, int lane);
  /// The everyday access: all lanes whole and inside one region, or LDS. Its notes by address - start.
  struct Plain {
    std::uint8_t* notes = nullptr;
    std::uint64_t start = 0;
  };
  bool find_plain(const Access& access, Plain& plain);
  static bool load_inexact(const Access& access, const Plain& plain, Loaded& loaded);
  void store_inexact(const Access& access, unsigned part, const Plain& plain, const WaveTaint& taint,
                     std::uint32_t row);
  /// Whether an access goes to LDS alone, 16 whole bytes a lane.
  static bool moves_blocks(const Access& access);
  /// Of LDS bytes that may no longer be.
  void not_plain(std::uint64_t address, std::uint32_t bytes);
  struct Place {
    Space space = Space::global;
    std::uint32_t wave = 0;
    int lane = 0;
    std::uint64_t address = 0;
  };
  /// Where never-written bytes of LDS or scratch came from; none: they were not stored.
  [[nodiscard]] Origin kept(const Place& place) const;
  void keep(const Place& place, Origin from);

  Memory* memory_ = nullptr;
  const Region* region_ = nullptr;
  std::vector<std::uint8_t> lds_;
  std::vector<std::uint8_t> lds_plain_;  ///< by 16 bytes: 1 only if all of these are written and exact
  std::vector<std::uint8_t> scratch_;    ///< [wave][lane][byte]
  // By dword, empty until the first. They mean something only where bytes are never-written.
  std::vector<Origin> lds_kept_;
  std::vector<std::array<Origin, lanes>> scratch_kept_;  ///< of those dwords of a wave that hold some
  std::vector<std::uint32_t> scratch_rows_;  ///< [wave][dword] 1 + where in scratch_kept_; 0: nowhere
  std::uint32_t scratch_bytes_ = 0;
  std::uint64_t scratch_used_ = 0;  ///< no lane has notes from here on
};

}  // namespace attest::device::sim::detect
