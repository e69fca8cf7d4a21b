// SPDX-License-Identifier: MIT
#include "device/simulator/detect/waits.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <vector>

#include "device/simulator/core/workgroup.h"
#include "device/simulator/detect/gate.h"
#include "device/simulator/detect/hazard_at.h"
#include "device/simulator/detect/outstanding.h"
#include "device/simulator/detect/spare.h"

namespace attest::device::sim::detect {
namespace {

/// Which registers of a file are pending, and on which instruction.
template <std::size_t size>
class PendingFile {
 public:
  /// A wave begins. @param share of vector registers
  void start(RowsPerBit share) {
    pending_ = {};
    signature_ = 0;
    count_ = 0;
    share_ = share;
  }
  [[nodiscard]] bool any() const { return count_ != 0; }
  /// Whether one of them is.
  [[nodiscard]] bool any(const Registers& registers) const {
    const unsigned word = registers.first / 64, shift = registers.first % 64;
    std::uint64_t bits = pending_[word] >> shift;
    if (shift + registers.count > 64) bits |= pending_[word + 1] << (64 - shift);
    return (bits & ((std::uint64_t{1} << registers.count) - 1)) != 0;
  }
  /// Of those that are pending, as gate.h tells registers.
  [[nodiscard]] std::uint64_t signature() const { return signature_; }
  /// The id a register waits for; 0: none.
  [[nodiscard]] std::uint64_t owner(unsigned reg) const { return is_pending(reg) ? owner_[reg] : 0; }

  void mark(const Registers& registers, std::uint64_t id) {
    for (unsigned r = registers.first; r < registers.first + registers.count && r < size; ++r) {
      count_ += is_pending(r) ? 0 : 1;
      owner_[r] = id;
      pending_[r / 64] |= std::uint64_t{1} << (r % 64);
      sign(r);
    }
  }
  void clear(const Registers& registers, std::uint64_t id) {
    for (unsigned r = registers.first; r < registers.first + registers.count && r < size; ++r) forget(r, id);
  }
  void forget(unsigned reg, std::uint64_t id) {
    if (owner(reg) != id) return;
    pending_[reg / 64] &= ~(std::uint64_t{1} << (reg % 64));
    --count_;
    sign(reg);
  }

 private:
  [[nodiscard]] bool is_pending(unsigned reg) const { return (pending_[reg / 64] >> (reg % 64) & 1) != 0; }
  void sign(unsigned reg) {
    if constexpr (size == scalar::count)
      update_scalar_signature(signature_, pending_, reg);
    else
      update_row_signature(signature_, pending_, reg, share_);
  }

  std::array<std::uint64_t, size> owner_{};             ///< of those that are
  std::array<std::uint64_t, size / 64 + 2> pending_{};  ///< a bit per register; counts are below 64
  std::uint64_t signature_ = 0;
  unsigned count_ = 0;
  RowsPerBit share_;
};

struct WaveState {
  Outstanding outstanding;
  PendingFile<512> vector;
  PendingFile<scalar::count> scalars;

  void start(RowsPerBit share) {
    outstanding.clear();
    vector.start(share);
    scalars.start(share);
  }
};

enum class Use { read, written };

class Group final : public Observer {
 public:
  Group(const LaunchContext& launch, Spare<std::vector<WaveState>>& spare, std::uint32_t waves,
        RowsPerBit share)
      : launch_(launch), spare_(spare), waves_(spare.take()) {
    waves_.resize(waves);
    for (WaveState& w : waves_) w.start(share);
  }
  ~Group() override { spare_.give(std::move(waves_)); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void share(std::span<Gate> gates) override { gates_ = gates; }

  bool before(const Step& step) override {
    WaveState& w = waves_[step.wave.id_in_group];
    const Effects& e = step.effects;
    if (w.vector.any()) {
      for (const Registers& r : e.vector_reads)
        if (w.vector.any(r)) vector(w, step, r, Use::read);
      for (const Registers& r : e.vector_writes)
        if (w.vector.any(r)) vector(w, step, r, Use::written);
    }
    if (w.scalars.any()) {
      for (const Registers& r : e.scalar_reads)
        if (w.scalars.any(r)) scalars(w, step, r, Use::read);
      for (const Registers& r : e.scalar_writes)
        if (w.scalars.any(r)) scalars(w, step, r, Use::written);
    }
    if (e.vmcnt || e.lgkmcnt != 0 || step.instruction.op == Op::s_waitcnt) count(w, step);
    Gate& gate = gates_[step.wave.id_in_group];
    if (gate.pending_rows != w.vector.signature()) gate.pending_rows = w.vector.signature();
    if (gate.pending_scalars != w.scalars.signature()) gate.pending_scalars = w.scalars.signature();
    return true;
  }

 private:
  [[gnu::noinline]] void count(WaveState& w, const Step& step) {
    const Effects& e = step.effects;
    const auto done = [&w](const Pending& p) {
      if (p.scalar_result)
        w.scalars.clear(p.result, p.id);
      else
        w.vector.clear(p.result, p.id);
    };
    if (step.instruction.op == Op::s_waitcnt) {
      if (!w.outstanding.empty()) w.outstanding.wait(wait_counts(step.instruction.imm), done);
    } else {
      const Pending& p = launch_.analysis.pending[step.index];
      const std::uint64_t loaded = e.exec_masked ? step.wave.exec() : ~std::uint64_t{0};
      const std::uint64_t id = w.outstanding.issue(p, step.number, loaded, done);
      if (loaded == 0) return;
      if (p.scalar_result)
        w.scalars.mark(p.result, id);
      else
        w.vector.mark(p.result, id);
    }
  }

  [[gnu::noinline]] void vector(WaveState& w, const Step& step, const Registers& registers, Use use) {
    const std::uint64_t lanes_used = step.effects.exec_masked ? step.wave.exec() : ~std::uint64_t{0};
    for (unsigned row = registers.first; row < registers.first + registers.count; ++row) {
      const std::uint64_t id = w.vector.owner(row);
      if (id == 0) continue;
      const Pending& p = *w.outstanding.find(id);
      const std::uint64_t conflict = lanes_used & p.lanes;
      if (conflict == 0) continue;
      if (use == Use::written && (same_queue(p, step.effects) || (p.result.bytes & registers.bytes) == 0))
        continue;
      report(w, step, p, vector_name(step.wave, row), use, std::countr_zero(conflict));
      w.vector.forget(row, id);
    }
  }

  [[gnu::noinline]] void scalars(WaveState& w, const Step& step, const Registers& registers, Use use) {
    for (unsigned code = registers.first; code < registers.first + registers.count; ++code) {
      const std::uint64_t id = w.scalars.owner(code);
      if (id == 0) continue;
      report(w, step, *w.outstanding.find(id), scalar_name(code), use, -1);
      w.scalars.forget(code, id);
    }
  }

  static bool same_queue(const Pending& p, const Effects& e) {
    return p.unit == e.unit && (p.unit == Unit::vmem || p.unit == Unit::ds);
  }

  void report(const WaveState& w, const Step& step, const Pending& p, const std::string& name, Use use,
              int lane) {
    if (!is_new(launch_, Detector::waits, step, p.index)) return;
    Hazard h = hazard_at(launch_, Detector::waits, step, p.index);
    h.message =
        fmt::format("{} is {} before the load that fills it must have arrived; s_waitcnt {} is missing", name,
                    use == Use::read ? "read" : "overwritten", w.outstanding.missing(p.id));
    h.rank = p.unit == Unit::ds ? 2 : p.unit == Unit::smem ? 1 : 0;
    h.lane = lane;
    h.distance = static_cast<std::int64_t>(step.number - p.number);
    launch_.findings.report.add(std::move(h));
  }

  const LaunchContext& launch_;
  Spare<std::vector<WaveState>>& spare_;
  std::vector<WaveState> waves_;
  std::span<Gate> gates_;
};

class Launch final : public LaunchObserver {
 public:
  explicit Launch(const LaunchContext& launch) : launch_(launch) {}
  std::unique_ptr<Observer> observe(Workgroup& group, std::uint64_t) override {
    return std::make_unique<Group>(launch_, spare_, group.wave_count,
                                   RowsPerBit::of(group.waves[0].vgpr_count));
  }
  [[nodiscard]] Interest interest(std::uint32_t index) const override {
    const Effects& e = launch_.analysis.effects[index];
    const bool counts =
        e.vmcnt || e.lgkmcnt != 0 || launch_.view.program.code()[index].instruction.op == Op::s_waitcnt;
    return {.before = counts ? when::always : when::pending, .after = false, .access = false};
  }

 private:
  const LaunchContext& launch_;
  Spare<std::vector<WaveState>> spare_;
};

}  // namespace

std::unique_ptr<LaunchObserver> check_waits(const LaunchContext& launch) {
  return std::make_unique<Launch>(launch);
}

}  // namespace attest::device::sim::detect
