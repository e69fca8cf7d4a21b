// SPDX-License-Identifier: MIT
#include "device/simulator/detect/session.h"

#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "device/simulator/core/dispatch.h"
#include "device/simulator/detect/barriers.h"
#include "device/simulator/detect/clipped.h"
#include "device/simulator/detect/dataflow.h"
#include "device/simulator/detect/gate.h"
#include "device/simulator/detect/global_race.h"
#include "device/simulator/detect/late_delivery.h"
#include "device/simulator/detect/lds_race.h"
#include "device/simulator/detect/ledger.h"
#include "device/simulator/detect/screen.h"
#include "device/simulator/detect/wait_states.h"
#include "device/simulator/detect/waits.h"

namespace attest::device::sim::detect {

struct Session::Routes {
  Routes(const LaunchContext& launch, const std::vector<std::unique_ptr<LaunchObserver>>& observers) {
    const Analysis& analysis = launch.analysis;
    const RowsPerBit share = RowsPerBit::of(launch.view.kernel.kernel.descriptor.vgpr_count());
    list.resize(launch.view.program.size());
    for (std::uint32_t k = 0; k < list.size(); ++k) {
      Route& route = list[k];
      bool access = false;
      for (std::size_t n = 0; n < observers.size(); ++n) {
        const Interest interest = observers[n]->interest(k);
        const auto add = [n](std::uint16_t& set, bool in) {
          if (in) set = static_cast<std::uint16_t>(set | 1u << n);
        };
        add(route.always, (interest.before & when::always) != 0);
        add(route.pending, (interest.before & when::pending) != 0);
        add(route.tainted, (interest.before & when::tainted) != 0);
        add(route.near_results, (interest.before & when::near_results) != 0);
        add(route.near_scalars, (interest.before & when::near_scalars) != 0);
        add(route.near_plain, (interest.before & when::near_plain) != 0);
        add(route.after, interest.after);
        access = access || ((interest.before != when::never || interest.after) && interest.access);
      }
      const Effects& e = analysis.effects[k];
      route.locate = access && analysis.access[k].touches_memory();
      route.relative = e.relative;
      route.indexed = e.unit == Unit::valu;
      route.rows = row_signature(e.vector_reads, share) | row_signature(e.vector_writes, share);
      route.scalars = scalar_signature(e.scalar_reads) | scalar_signature(e.scalar_writes) |
                      (e.exec_masked ? scalar_bit(operand::exec) : 0);
    }
  }
  std::vector<Route> list;  ///< [program.size()]
};

namespace {

/// Fans one workgroup out to the observers, with what they share.
class Fan final : public WorkgroupWatch {
 public:
  using Trips = std::vector<std::uint32_t>;
  Fan(const LaunchContext& launch, std::span<const Route> routes, Spare<Trips>& spare, std::uint32_t waves,
      std::vector<std::unique_ptr<Observer>> observers)
      : code_(launch.view.program.code()),
        routes_(routes.data()),
        access_(launch.analysis.access.data()),
        effects_(launch.analysis.effects.data()),
        spare_(spare),
        trips_(cleared(spare.take(), waves * routes.size())),
        who_(routes, trips_.data(), waves),
        observers_(std::move(observers)) {
    for (const auto& observer : observers_) observer->share(who_.gates());
    screen_ = &who_;
  }
  ~Fan() override {
    for (const auto& observer : observers_) observer->leave(trips_);
    spare_.give(std::move(trips_));
  }
  Fan(const Fan&) = delete;
  Fan& operator=(const Fan&) = delete;

  bool before(Wave& wave, std::uint32_t index, std::uint64_t number) override {
    const Route& route = routes_[index];
    hears_after_ = route.after != 0;
    const Instruction& instruction = code_[index].instruction;
    if (route.locate) locate(wave, instruction, access_[index], located_);
    now_ = &effects_[index];
    if (who_.shifted()) [[unlikely]] {
      shifted_ = effects_of(instruction, wave.mode, wave.sgpr[operand::m0]);
      now_ = &shifted_;
    }
    const Step step{wave, index, instruction, number, who_.trip(), *now_, route.locate ? &located_ : nullptr};
    bool execute = true;
    for (unsigned m = who_.told(); m != 0; m &= m - 1)
      execute = observers_[static_cast<unsigned>(std::countr_zero(m))]->before(step) && execute;
    return execute;
  }

  void after(Wave& wave, std::uint32_t index, std::uint64_t number) override {
    const Route& route = routes_[index];
    const Step step{wave,        index, code_[index].instruction,          number,
                    who_.trip(), *now_, route.locate ? &located_ : nullptr};
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
  static Trips cleared(Trips trips, std::size_t size) {
    trips.assign(size, 0);
    return trips;
  }

  const Bound* code_;
  const Route* routes_;
  const AccessShape* access_;
  const Effects* effects_;
  Spare<Trips>& spare_;
  Trips trips_;  ///< [wave][instruction]
  Screen who_;
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
  const std::uint64_t key = chosen_.bits() | std::uint64_t{static_cast<unsigned>(delivery_)} << 32;
  routes_ = &launch_->analysis.derived<Routes>(key, [this] { return Routes(*launch_, observers_); });
}

std::unique_ptr<WorkgroupWatch> Session::watch(Workgroup& group, std::uint64_t linear_id) {
  std::vector<std::unique_ptr<Observer>> observers;
  observers.reserve(observers_.size());
  for (const auto& launch : observers_) observers.push_back(launch->observe(group, linear_id));
  return std::make_unique<Fan>(*launch_, routes_->list, trips_, group.wave_count, std::move(observers));
}

void Session::end() {
  for (const auto& observer : observers_) observer->end();
  observers_.clear();
  routes_ = nullptr;
  launch_.reset();
}

}  // namespace attest::device::sim::detect
