// SPDX-License-Identifier: MIT
//
// The memory instructions of one wave that may not be done yet, and what s_waitcnt says about them.
//
//   Outstanding outstanding;
//   const std::uint64_t id = outstanding.issue(pending, done);    // done(p): p is finished because a counter
//   was full outstanding.wait(wait_counts(s_waitcnt.imm), done);           // done(p) for each p that is now
//   finished for sure outstanding.missing(id)                                       // "vmcnt(2)": the wait
//   that would have been enough
//
// The rules of gfx9 (LLVM, "User Guide for AMDGPU Backend", Memory Model gfx942; SIInsertWaitcnts.cpp relies
// on the same):
//
//   vmcnt    MUBUF, MTBUF, GLOBAL, SCRATCH, LDS-DMA: +1, loads and stores in one queue, done in the order of
//   issue lgkmcnt  DS +1, in the order of issue among themselves; scalar memory +1 or +2, in any order;
//   messages +1 both     FLAT: in no order with anything, so while one is outstanding only a wait for 0 says
//   something
//
// Because scalar memory is unordered, lgkmcnt(n > 0) says nothing while a scalar load is outstanding. A
// counter that is full (63 and 15) stalls the next instruction until the oldest is done. Stores do not use
// expcnt from gfx8 on: their data registers are free as soon as the store has issued, but for the rule that
// detect/wait_states.h checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/simulator/detect/effects.h"

namespace attest::device::sim::detect {

struct Pending {
  std::uint64_t id = 0;      ///< 1, 2, ... in order of issue; set by issue()
  std::uint32_t index = 0;   ///< of the instruction in the program
  std::uint64_t number = 0;  ///< of the wave's instructions
  std::uint64_t lanes = 0;   ///< EXEC at issue; all lanes for scalar memory
  Unit unit = Unit::vmem;
  bool lds_dma = false;
  bool scalar_result = false;  ///< `result` is scalar registers
  Registers result;            ///< count 0: none comes back
  bool vm = false;             ///< waits for vmcnt
  std::uint8_t lgkm = 0;       ///< waits for lgkmcnt, counted so often
};

/// The Pending of an instruction about to be issued, `id` left open.
Pending pending_of(const Effects& effects, std::uint32_t index, std::uint64_t number, std::uint64_t exec);

class Outstanding {
 public:
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  /// As new.
  void clear() {
    entries_.clear();
    last_id_ = 0;
    vm_ = lgkm_ = 0;
    changed_ = false;
  }
  [[nodiscard]] const std::vector<Pending>& entries() const { return entries_; }
  [[nodiscard]] const Pending* find(std::uint64_t id) const;

  template <typename Done>
  std::uint64_t issue(const Pending& pending, Done&& done) {
    make_room(pending);
    sweep(done);
    vm_ += pending.vm ? 1 : 0;
    lgkm_ += pending.lgkm;
    entries_.push_back(pending);
    return entries_.back().id = ++last_id_;
  }
  /// The same for an instruction of a program whose Pending is at hand but for the moment.
  template <typename Done>
  std::uint64_t issue(const Pending& prototype, std::uint64_t number, std::uint64_t lanes, Done&& done) {
    const std::uint64_t id = issue(prototype, done);
    entries_.back().number = number;
    entries_.back().lanes = lanes;
    return id;
  }
  template <typename Done>
  void wait(WaitCounts counts, Done&& done) {
    wait_vm(counts.vmcnt);
    wait_lgkm(counts.lgkmcnt);
    sweep(done);
  }

  /// "vmcnt(2)", "lgkmcnt(0)", "vmcnt(0) lgkmcnt(0)": the weakest wait after which `id` is done.
  [[nodiscard]] std::string missing(std::uint64_t id) const;

 private:
  void make_room(const Pending& next);
  void wait_vm(unsigned count);
  void wait_lgkm(unsigned count);
  [[nodiscard]] bool vm_in_order() const;
  [[nodiscard]] bool lgkm_in_order() const;

  template <typename Done>
  void sweep(Done& done) {
    if (!changed_) return;
    changed_ = false;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < entries_.size(); ++k) {
      if (entries_[k].vm || entries_[k].lgkm != 0)
        entries_[kept++] = entries_[k];
      else
        done(static_cast<const Pending&>(entries_[k]));
    }
    entries_.resize(kept);
  }

  std::vector<Pending> entries_;  ///< in order of issue
  std::uint64_t last_id_ = 0;
  unsigned vm_ = 0, lgkm_ = 0;  ///< the counters, as far as known
  bool changed_ = false;
};

}  // namespace attest::device::sim::detect
