// SPDX-License-Identifier: MIT
//
// The detectors of one simulated device: chosen once, then asked after every launch.
//
//   Session session;
//   session.choose(*DetectorSet::parse("all"));
//   settings.watch = session.wanted() ? &session : nullptr;
//   dispatcher.run(kernel, launch, memory, settings);          // KernelFault or not
//   Findings found = session.take();
//
// A detector is a LaunchObserver (detect/observer.h) that adds hazards to the launch's Report. To add one:
// its name in detectors.h, its source beside this one, a line in session.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "device/simulator/core/program.h"
#include "device/simulator/detect/access.h"
#include "device/simulator/detect/detectors.h"
#include "device/simulator/detect/effects.h"
#include "device/simulator/detect/observer.h"
#include "device/simulator/detect/outstanding.h"
#include "device/simulator/detect/report.h"
#include "device/simulator/detect/schedule.h"
#include "device/simulator/detect/spare.h"

namespace attest::device::sim::detect {

/// What detectors know of a program before it runs; made once per program.
struct Analysis {
  explicit Analysis(const Program& program);
  std::vector<AccessShape> access;  ///< [program.size()]
  std::vector<Effects> effects;     ///< [program.size()], without GPR indexing
  std::vector<Pending> pending;     ///< [program.size()], of those that raise a counter

  /// What a detector works out about the program besides, once for all launches: make() at the first call.
  /// One T may have several, by `key`.
  template <typename T, typename Make>
  const T& derived(std::uint64_t key, Make&& make) const {
    std::shared_ptr<const void>& kept = derived_[{std::type_index(typeid(T)), key}];
    if (kept == nullptr) kept = std::make_shared<const T>(make());
    return *static_cast<const T*>(kept.get());
  }

 private:
  mutable std::map<std::pair<std::type_index, std::uint64_t>, std::shared_ptr<const void>> derived_;
};

/// Accesses that buffer descriptors kept out, wholly or in part: per lane.
struct Clipped {
  std::uint64_t loads = 0, stores = 0, atomics = 0;
};

struct Findings {
  Report report;
  Clipped clipped;
  std::map<Op, std::uint64_t> executed;  ///< with Detector::fidelity: wave instructions by operation
};

nlohmann::json to_json(const Findings& findings);

/// One launch, as the factories of detectors get it.
struct LaunchContext {
  LaunchView view;
  const Analysis& analysis;
  Findings& findings;
};

class GlobalPages;

class Session final : public LaunchWatch {
 public:
  Session();
  ~Session() override;

  void choose(DetectorSet set) { chosen_ = set; }
  [[nodiscard]] DetectorSet chosen() const { return chosen_; }
  /// When loads of the following launches arrive. Needs no detector.
  void deliver(Delivery delivery) { delivery_ = delivery; }
  /// Whether launches have to be watched at all.
  [[nodiscard]] bool wanted() const { return !chosen_.empty() || delivery_ != Delivery::immediate; }
  /// What the launches since the last call found.
  Findings take();

  void begin(const LaunchView& view) override;
  std::unique_ptr<WorkgroupWatch> watch(Workgroup& group, std::uint64_t linear_id) override;
  void end() override;

 private:
  const Analysis& analysis_of(const LaunchView& view);

  struct Routes;
  struct Known {
    std::weak_ptr<const Program> program;
    std::unique_ptr<Analysis> analysis;
  };
  DetectorSet chosen_;
  Delivery delivery_ = Delivery::immediate;
  Findings findings_;
  std::map<const Program*, Known> analyses_;
  std::shared_ptr<GlobalPages> global_pages_;
  std::optional<LaunchContext> launch_;
  std::vector<std::unique_ptr<LaunchObserver>> observers_;
  Spare<std::vector<std::uint32_t>> trips_;
  const Routes* routes_ = nullptr;  ///< which of them hear of which instruction
};

}  // namespace attest::device::sim::detect
