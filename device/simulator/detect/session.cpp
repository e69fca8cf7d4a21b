// SPDX-License-Identifier: MIT
#include "device/simulator/detect/session.h"

#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "device/simulator/core/dispatch.h"
#include "device/simulator/detect/barriers.h"
#include "device/simulator/detect/clipped.h"
#include "device/simulator/detect/dataflow.h"
#include "device/simulator/detect/global_race.h"
#include "device/simulator/detect/late_delivery.h"
#include "device/simulator/detect/lds_race.h"
#include "device/simulator/detect/ledger.h"
#include "device/simulator/detect/wait_states.h"
#include "device/simulator/detect/waits.h"

namespace attest::device::sim::detect {
namespace {

/// What is done about one instruction: bit n concerns observer n.
struct Route {
  std::uint16_t before = 0, after = 0;
  bool locate = false;
  bool relative = false;  ///< its registers may depend on M0
};

}  // namespace

struct Session::Routes {
  Routes(const LaunchContext& launch, const std::vector<std::unique_ptr<LaunchObserver>>& observers) {
    const Analysis& analysis = launch.analysis;
    list.resize(launch.view.program.size());
    for (std::uint32_t k = 0; k < list.size(); ++k) {
      Route& route = list[k];
      bool access = false;
      for (std::size_t n = 0; n < observers.size(); ++n) {
        const Interest interest = observers[n]->interest(k);
        if (interest.before) route.before = static_cast<std::uint16_t>(route.before | 1u << n);
        if (interest.after) route.after = static_cast<std::uint16_t>(route.after | 1u << n);
        access = access || ((interest.before || interest.after) && interest.access);
      }
      route.locate = access && analysis.access[k].touches_memory();
      route.relative = analysis.effects[k].relative || analysis.effects[k].unit == Unit::valu;
    }
  }
  std::vector<Route> list;  ///< [program.size()]
};

namespace {

/// Fans one workgroup out to the observers, with what they share.
class Fan final : public WorkgroupWatch {
 public:
  Fan(const LaunchContext& launch, const Route* routes, std::uint32_t waves,
      std::vector<std::unique_ptr<Observer>> observers)
      : code_(launch.view.program.code()),
        routes_(routes),
        access_(launch.analysis.access.data()),
        effects_(launch.analysis.effects.data()),
        size_(launch.view.program.size()),
        trips_(std::size_t{waves} * launch.view.program.size()),
        observers_(std::move(observers)) {}
  ~Fan() override {
    for (const auto& observer : observers_) observer->leave(trips_);
  }
  Fan(const Fan&) = delete;
  Fan& operator=(const Fan&) = delete;

  bool before(Wave& wave, std::uint32_t index, std::uint64_t number) override {
    const Instruction& instruction = code_[index].instruction;
    const Route route = routes_[index];
    if (route.locate) locate(wave, instruction, access_[index], located_);
    now_ = &effects_[index];
    if (route.relative && depends_on_m0(*now_, wave.mode)) [[unlikely]] {
      shifted_ = effects_of(instruction, wave.mode, wave.sgpr[operand::m0]);
      now_ = &shifted_;
    }
    const std::uint32_t trip = trips_[std::size_t{wave.id_in_group} * size_ + index]++;
    const Step step{wave, index, instruction, number, trip, *now_, route.locate ? &located_ : nullptr};
    bool execute = true;
    for (unsigned m = route.before; m != 0; m &= m - 1)
      execute = observers_[static_cast<unsigned>(std::countr_zero(m))]->before(step) && execute;
    return execute;
  }

  void after(Wave& wave, std::uint32_t index, std::uint64_t number) override {
    const Route route = routes_[index];
    if (route.after == 0) return;
    const Step step{wave,
                    index,
                    code_[index].instruction,
                    number,
                    trips_[std::size_t{wave.id_in_group} * size_ + index] - 1,
                    *now_,
                    route.locate ? &located_ : nullptr};
    for (unsigned m = route.after; m != 0; m &= m - 1)
      observers_[static_cast<unsigned>(std::countr_zero(m))]->after(step);
  }

  void barrier() override {
    for (const auto& observer : observers_) observer->barrier();
  }
  void end() override {
    for (const auto& observer : observers_) observer->end();
  }

 private:
  const Bound* code_;
  const Route* routes_;
  const AccessShape* access_;
  const Effects* effects_;
  std::uint32_t size_;
  std::vector<std::uint32_t> trips_;  ///< [wave][instruction]
  std::vector<std::unique_ptr<Observer>> observers_;
  Access located_{};
  Effects shifted_;
  const Effects* now_ = nullptr;  ///< of the instruction between before() and after()
};

}  // namespace

Analysis::Analysis(const Program& program) {
  access.reserve(program.size());
  effects.reserve(program.size());
  pending.reserve(program.size());
  for (std::uint32_t k = 0; k < program.size(); ++k) {
    access.push_back(access_shape(program.code()[k].instruction));
    effects.push_back(effects_of(program.code()[k].instruction));
    pending.push_back(pending_of(effects.back(), k, 0, 0));
  }
}

nlohmann::json to_json(const Findings& findings) {
  return {{"hazards", findings.report.ranked()},
          {"clipped",
           {{"loads", findings.clipped.loads},
            {"stores", findings.clipped.stores},
            {"atomics", findings.clipped.atomics}}},
          {"fidelity", ledger_json(findings.executed)}};
}

Session::Session() = default;
Session::~Session() = default;

Findings Session::take() {
  return std::exchange(findings_, Findings());
}

const Analysis& Session::analysis_of(const LaunchView& view) {
  std::erase_if(analyses_, [](const auto& known) { return known.second.program.expired(); });
  Known& known = analyses_[&view.program];
  if (known.analysis == nullptr) known = {view.kernel.program, std::make_unique<Analysis>(view.program)};
  return *known.analysis;
}

void Session::begin(const LaunchView& view) {
  launch_.emplace(LaunchContext{view, analysis_of(view), findings_});
  observers_.clear();
  const bool lds_race = chosen_.has(Detector::lds_race), lds_dma = chosen_.has(Detector::lds_dma);
  if (lds_race || lds_dma) observers_.push_back(check_lds(*launch_, lds_race, lds_dma));
  if (chosen_.has(Detector::global_race)) {
    if (global_pages_ == nullptr) global_pages_ = make_global_pages();
    observers_.push_back(check_global(*launch_, *global_pages_));
  }
  if (chosen_.has(Detector::waits)) observers_.push_back(check_waits(*launch_));
  if (chosen_.has(Detector::wait_states)) observers_.push_back(check_wait_states(*launch_));
  if (chosen_.has(Detector::barrier)) observers_.push_back(check_barriers(*launch_));
  const Colours colours{chosen_.has(Detector::uninitialised), chosen_.has(Detector::fidelity)};
  if (colours.undefined || colours.inexact) observers_.push_back(follow_data(*launch_, colours));
  if (chosen_.has(Detector::fidelity)) observers_.push_back(keep_ledger(*launch_));
  if (chosen_.has(Detector::clipped)) observers_.push_back(count_clipped(*launch_));
  // Last, so that the others see what each instruction brings before it is held back.
  if (delivery_ != Delivery::immediate) observers_.push_back(deliver_late(delivery_));
  routes_ = std::make_unique<Routes>(*launch_, observers_);
}

std::unique_ptr<WorkgroupWatch> Session::watch(Workgroup& group, std::uint64_t linear_id) {
  std::vector<std::unique_ptr<Observer>> observers;
  observers.reserve(observers_.size());
  for (const auto& launch : observers_) observers.push_back(launch->observe(group, linear_id));
  return std::make_unique<Fan>(*launch_, routes_->list.data(), group.wave_count, std::move(observers));
}

void Session::end() {
  for (const auto& observer : observers_) observer->end();
  observers_.clear();
  routes_.reset();
  launch_.reset();
}

}  // namespace attest::device::sim::detect
