// SPDX-License-Identifier: MIT
//
// Watching a launch, instruction by instruction.
//
// The dispatcher (core/dispatch.h) knows two interfaces. When Settings::watch is set it runs a second
// instantiation of its loop that calls them; when it is not, they cost nothing:
//
//   LaunchWatch      one launch: makes a WorkgroupWatch for each workgroup that starts
//   WorkgroupWatch   one workgroup: told of every instruction before and after it is executed
//
// Launches that are watched run on one thread, workgroup after workgroup in grid order (those of kernels that
// communicate take turns as always). So a watcher needs no locks, everything it sees comes in the same order
// in every run, and it may keep state across workgroups.
//
// A detector does not implement these but Observer, which gets more: detect/session.h fans one WorkgroupWatch
// out to all chosen detectors and computes once what several need (where a memory instruction goes, how often
// the wave has been here).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "device/simulator/core/wave.h"
#include "device/simulator/core/workgroup.h"
#include "device/simulator/isa/instruction.h"

namespace attest::device::sim {

class Memory;
class Program;
struct LoadedKernel;
struct Launch;
namespace detect {
class Screen;
}

class WorkgroupWatch {
 public:
  virtual ~WorkgroupWatch() = default;

  /// Instruction `index` of the program is next in the wave; wave.pc already points behind it, everything
  /// else is as the instruction will find it. `number` counts the wave's instructions from 0.
  /// @return whether to execute it. False: the watcher has taken it over (it may deliver its effect later,
  /// through the handler in program.code()[index]); after() is not called.
  virtual bool before(Wave& wave, std::uint32_t index, std::uint64_t number) = 0;
  /// It has been executed without a Fault. Not called while hears_after() is false.
  virtual void after(Wave& wave, std::uint32_t index, std::uint64_t number) = 0;
  /// Every wave that has not ended is at a barrier; all go on. Called while their state is still at_barrier.
  virtual void barrier() {}
  /// All waves have ended.
  virtual void end() {}

  /// Whether after() has to be called for the instruction of the last before().
  [[nodiscard]] bool hears_after() const { return hears_after_; }
  /// What has to be asked first: neither before() nor after() is called for an instruction that it lets by.
  /// nullptr: they are called for all.
  [[nodiscard]] detect::Screen* screen() const { return screen_; }

 protected:
  bool hears_after_ = true;
  detect::Screen* screen_ = nullptr;
};

/// What a launch is, as far as watchers need it.
struct LaunchView {
  const LoadedKernel& kernel;
  const Program& program;
  const Launch& launch;
  Memory& memory;
  std::uint64_t defined_sgprs = 0;  ///< bit n: sn holds what the ABI promises at entry; the others nothing
  std::uint32_t lds_bytes = 0;
};

class LaunchWatch {
 public:
  virtual ~LaunchWatch() = default;
  virtual void begin(const LaunchView& view) = 0;
  /// A workgroup is about to start. Its waves have their initial state.
  virtual std::unique_ptr<WorkgroupWatch> watch(Workgroup& group, std::uint64_t linear_id) = 0;
  /// The launch is over, by itself or by a Fault.
  virtual void end() {}
};

namespace detect {

struct Access;
struct Effects;
struct Gate;

/// One instruction of one wave, as detectors see it.
struct Step {
  Wave& wave;
  std::uint32_t index;             ///< in the program
  const Instruction& instruction;  ///< a-registers folded into rows, see exec/handlers.h
  std::uint64_t number;            ///< of the wave's instructions, from 0
  std::uint32_t trip;              ///< times this wave has executed it before
  const Effects& effects;          ///< registers it reads and writes, GPR indexing applied (detect/effects.h)
  const Access* access;            ///< where it goes in memory (detect/access.h); nullptr: no memory
};

/// A detector's view of one workgroup.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Where to leave word for what is not told always, [wave]. They stay.
  virtual void share(std::span<Gate> /*gates*/) {}
  /// As in WorkgroupWatch. When one observer takes an instruction over, the others' before() has been or will
  /// be called all the same: to them it is executed now.
  virtual bool before(const Step&) { return true; }
  virtual void after(const Step&) {}
  virtual void barrier() {}
  virtual void end() {}
  /// The workgroup leaves, whether or not it has ended.
  /// @param executed [wave][instruction] how often each wave came by
  virtual void leave(std::span<const std::uint32_t> /*executed*/) {}
};

/// When an observer is told of an instruction before it is executed: any of these.
namespace when {
inline constexpr std::uint8_t never = 0, always = 1;
/// It reads or writes a register that the wave's Gate says to be pending, or tainted.
inline constexpr std::uint8_t pending = 2, tainted = 32;
/// The wave has not passed Gate::results_until, scalars_until, plain_until.
inline constexpr std::uint8_t near_results = 4, near_scalars = 8, near_plain = 16;
inline constexpr std::uint8_t near_any = near_results | near_scalars | near_plain;
}  // namespace when

/// What an observer wants to be told about one instruction of the program. Instructions whose registers are
/// not those that they name are told always, unless never.
struct Interest {
  std::uint8_t before = when::always;  ///< bits of namespace when
  bool after = true;
  bool access = true;  ///< whether Step::access is looked at; else it may be nullptr for memory instructions
};

/// A detector's view of one launch; makes an Observer per workgroup.
class LaunchObserver {
 public:
  virtual ~LaunchObserver() = default;
  virtual std::unique_ptr<Observer> observe(Workgroup& group, std::uint64_t linear_id) = 0;
  /// Asked once per instruction before the first workgroup starts. Most instructions concern few detectors,
  /// and a call that does nothing costs as much as the instruction itself.
  [[nodiscard]] virtual Interest interest(std::uint32_t /*index*/) const { return {}; }
  virtual void end() {}
};

}  // namespace detect
}  // namespace attest::device::sim
