// SPDX-License-Identifier: MIT
#include "device/simulator/detect/barriers.h"

#include <fmt/format.h>

#include <bit>
#include <vector>

#include "device/simulator/core/dispatch.h"
#include "device/simulator/core/workgroup.h"
#include "device/simulator/detect/hazard_at.h"

namespace attest::device::sim::detect {
namespace {

struct WaveState {
  std::uint32_t barriers = 0;   ///< met so far
  std::uint32_t at = no_index;  ///< the s_barrier it waits at, or ended at
  std::uint32_t trip = 0;
  std::uint64_t first_exec = 0;  ///< EXEC at its start
  bool ended = false;
};

class Group final : public Observer {
 public:
  Group(const LaunchContext& launch, Workgroup& group)
      : launch_(launch), group_(group), waves_(group.wave_count) {
    for (std::uint32_t n = 0; n < group.wave_count; ++n) waves_[n].first_exec = group.waves[n].exec();
  }

  bool before(const Step& step) override {
    WaveState& w = waves_[step.wave.id_in_group];
    if (step.instruction.op == Op::s_barrier) {
      w.at = step.index;
      w.trip = step.trip;
      if (step.wave.exec() != w.first_exec) partial(step, w);
    } else if (info(step.instruction.op).has(op_flag::ends)) {
      w.ended = true;
      w.at = step.index;
      w.trip = step.trip;
    }
    return true;
  }

  void barrier() override {
    std::size_t first = waves_.size();
    for (std::size_t n = 0; n < waves_.size(); ++n)
      if (!waves_[n].ended && first == waves_.size()) first = n;
    if (first == waves_.size()) return;
    for (std::size_t n = 0; n < waves_.size(); ++n) {
      if (waves_[n].ended)
        ended(first, n);
      else if (waves_[n].at != waves_[first].at)
        different(first, n);
      else
        continue;
      break;  // one mismatch tells of the others
    }
    for (WaveState& w : waves_)
      if (!w.ended) ++w.barriers;
  }

 private:
  Hazard hazard(std::size_t wave, std::uint32_t at, std::uint32_t with) const {
    Hazard h;
    h.detector = Detector::barrier;
    h.kernel = launch_.view.kernel.kernel.name;
    h.at = site(launch_.view, at);
    h.with = site(launch_.view, with);
    for (int k = 0; k < 3; ++k) h.workgroup[k] = group_.id[k];
    h.wave = static_cast<int>(wave);
    h.trip = waves_[wave].trip;
    h.rank = 1;
    return h;
  }

  void ended(std::size_t waiting, std::size_t gone) {
    const WaveState& w = waves_[gone];
    Hazard h = hazard(waiting, waves_[waiting].at, w.at);
    h.other_wave = static_cast<int>(gone);
    h.message = fmt::format("wave {} has ended after {} barrier{}, the others are at number {}", gone,
                            w.barriers, w.barriers == 1 ? "" : "s", waves_[waiting].barriers + 1);
    if (w.barriers == 0) h.severity = Severity::advisory;
    launch_.findings.report.add(std::move(h));
  }

  void different(std::size_t one, std::size_t other) {
    Hazard h = hazard(other, waves_[other].at, waves_[one].at);
    h.other_wave = static_cast<int>(one);
    h.message = "waves meet at different s_barrier instructions";
    h.severity = Severity::advisory;
    launch_.findings.report.add(std::move(h));
  }

  void partial(const Step& step, const WaveState& w) {
    if (!is_new(launch_, Detector::barrier, step, no_index)) return;
    Hazard h = hazard_at(launch_, Detector::barrier, step, no_index);
    h.message = fmt::format("a barrier with {} of the wave's {} lanes", std::popcount(step.wave.exec()),
                            std::popcount(w.first_exec));
    h.severity = Severity::advisory;
    h.rank = 2;
    launch_.findings.report.add(std::move(h));
  }

  const LaunchContext& launch_;
  Workgroup& group_;
  std::vector<WaveState> waves_;
};

class Launch final : public LaunchObserver {
 public:
  explicit Launch(const LaunchContext& launch) : launch_(launch) {}
  std::unique_ptr<Observer> observe(Workgroup& group, std::uint64_t) override {
    return std::make_unique<Group>(launch_, group);
  }
  [[nodiscard]] Interest interest(std::uint32_t index) const override {
    const Op op = launch_.view.program.code()[index].instruction.op;
    return {.before = op == Op::s_barrier || info(op).has(op_flag::ends) ? when::always : when::never,
            .after = false,
            .access = false};
  }

 private:
  const LaunchContext& launch_;
};

}  // namespace

std::unique_ptr<LaunchObserver> check_barriers(const LaunchContext& launch) {
  return std::make_unique<Launch>(launch);
}

}  // namespace attest::device::sim::detect
