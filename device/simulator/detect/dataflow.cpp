// SPDX-License-Identifier: MIT
//
// Nearly every instruction works on clean registers. One bit per register says so, and an instruction all of
// whose registers have theirs clear costs a few tests. Only the others go through the transfer functions.
#include "device/simulator/detect/dataflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "device/simulator/core/dispatch.h"
#include "device/simulator/detect/gate.h"
#include "device/simulator/detect/hazard_at.h"
#include "device/simulator/detect/sources.h"
#include "device/simulator/detect/spare.h"
#include "device/simulator/detect/taint_clean.h"
#include "device/simulator/detect/taint_memory.h"
#include "device/simulator/detect/taint_scalar.h"
#include "device/simulator/detect/taint_vector.h"
#include "device/simulator/exec/fidelity.h"
#include "device/simulator/exec/memory_lanes.h"

namespace attest::device::sim::detect {
namespace {

using u64 = std::uint64_t;

enum class Kind : std::uint8_t { nothing, scalar, vector, memory, branch, clock };

struct Plan {
  Kind kind = Kind::nothing;
  bool approximate = false, masked = false;
  bool relative = false;            ///< the scalar registers are off by M0
  bool clean_in_clean_out = false;  ///< taint_clean.h; never when `approximate`
  std::uint8_t reads = 0, registers = 0;
  Registers rows[7];         ///< vector registers read, then written
  ScalarSet scalars{};       ///< scalar registers read or written
  ScalarSet scalar_reads{};  ///< of these, read
};

Kind kind_of(const Instruction& i, const Effects& e, const AccessShape& access) {
  if (access.touches_memory()) return Kind::memory;
  if (i.op == Op::s_memtime || i.op == Op::s_memrealtime) return Kind::clock;
  if (info(i.op).has(op_flag::branch)) return Kind::branch;
  if (is_vector(i)) return Kind::vector;
  return e.scalar_writes.empty() ? Kind::nothing : Kind::scalar;
}

Plan plan_for(const Instruction& i, const Effects& e, const AccessShape& access, Colours colours) {
  Plan plan;
  if (i.op == Op::invalid) return plan;
  plan.kind = kind_of(i, e, access);
  plan.masked = e.exec_masked;
  plan.approximate = colours.inexact && plan.kind == Kind::vector && i.op != Op::v_rcp_iflag_f32 &&
                     fidelity(i.op).exactness != Exactness::exact;
  plan.relative = e.relative;
  plan.clean_in_clean_out = !plan.approximate && clean_in_clean_out(i, e);
  for (const Registers& r : e.vector_reads) plan.rows[plan.registers++] = r;
  plan.reads = plan.registers;
  for (const Registers& r : e.vector_writes) plan.rows[plan.registers++] = r;
  const auto add = [](ScalarSet& set, const auto& list) {
    for (const Registers& r : list)
      for (unsigned k = 0; k < r.count; ++k) set[(r.first + k) / 64] |= u64{1} << ((r.first + k) % 64);
  };
  add(plan.scalar_reads, e.scalar_reads);
  plan.scalars = plan.scalar_reads;
  add(plan.scalars, e.scalar_writes);
  return plan;
}

/// What is known of a program.
struct Plans {
  Plans(const LaunchContext& launch, Colours colours)
      : read_first(live_in(launch.view.program, launch.analysis.effects)) {
    const Program& program = launch.view.program;
    by_instruction.reserve(program.size());
    for (std::uint32_t k = 0; k < program.size(); ++k) {
      const Instruction& instruction = program.code()[k].instruction;
      const Effects& effects = launch.analysis.effects[k];
      by_instruction.push_back(plan_for(instruction, effects, launch.analysis.access[k], colours));
      if (colours.inexact) inflows.push_back(inflow_of(instruction, effects));
    }
  }
  std::vector<Plan> by_instruction;
  std::vector<std::optional<Inflow>> inflows;  ///< with colours.inexact, by instruction as well
  ScalarSet read_first;
};

/// What the workgroups of a launch share.
struct Shared {
  const LaunchContext& launch;
  Colours colours;
  const std::vector<Plan>& plans;
  const std::vector<std::optional<Inflow>>& inflows;
  const ScalarSet& read_first;
  std::optional<WaveTaint> at_entry = {};
  Spare<std::vector<WaveTaint>> spare_waves = {};
  Spare<MemoryTaint> spare_memory = {};
};

class Flow final : public Observer {
 public:
  Flow(Shared& shared, Workgroup& group)
      : shared_(shared), waves_(shared.spare_waves.take()), memory_(shared.spare_memory.take()) {
    memory_.start(shared.launch.view.memory, group.lds_bytes, group.wave_count, group.waves[0].scratch_bytes);
    if (!shared.at_entry)
      shared.at_entry.emplace(group.waves[0].vgpr_count, shared.launch.view.defined_sgprs, shared.read_first);
    waves_.assign(group.wave_count, *shared.at_entry);
  }
  ~Flow() override {
    shared_.spare_waves.give(std::move(waves_));
    shared_.spare_memory.give(std::move(memory_));
  }
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  void share(std::span<Gate> gates) override {
    gates_ = gates;
    for (std::size_t n = 0; n < waves_.size(); ++n) leave_word(gates_[n], waves_[n]);
  }

  bool before(const Step& step) override {
    const Plan& plan = shared_.plans[step.index];
    WaveTaint& taint = waves_[step.wave.id_in_group];
    switch (plan.kind) {
      case Kind::nothing:
        break;
      case Kind::scalar:
        if (plan.relative)
          transfer_scalar(taint, step);
        else if (taint.dirty_scalars(plan.scalars))
          scalar(taint, step, plan);
        break;
      case Kind::vector:
        vector(taint, step, plan);
        break;
      case Kind::memory:
        access(taint, step, plan, dirty(taint, plan));
        break;
      case Kind::branch:
        if (taint.dirty_scalars(plan.scalars)) branch(taint, step);
        break;
      case Kind::clock:
        taint.set_scalar64(step.instruction.dst,
                           shared_.colours.inexact
                               ? BitTaint{0, ~u64{0}, origin::none, origin::instruction(step.index)}
                               : BitTaint());
        break;
    }
    leave_word(gates_[step.wave.id_in_group], taint);
    return true;
  }

 private:
  static void leave_word(Gate& gate, const WaveTaint& taint) {
    // Compared first: written one by one a moment ago, the two would be waited for when copied as one.
    if (gate.tainted_rows != taint.row_signature()) gate.tainted_rows = taint.row_signature();
    if (gate.tainted_scalars != taint.scalar_signature()) gate.tainted_scalars = taint.scalar_signature();
  }

  static bool dirty_scalars(const WaveTaint& taint, const Plan& plan) {
    return taint.dirty_scalars(plan.scalars) || (plan.masked && taint.dirty_exec());
  }
  static bool dirty_rows(const WaveTaint& taint, const Plan& plan, unsigned from, unsigned to) {
    for (unsigned k = from; k < to; ++k)
      if (taint.dirty_rows(plan.rows[k])) return true;
    return false;
  }
  static bool dirty_rows(const WaveTaint& taint, const Plan& plan) {
    return dirty_rows(taint, plan, 0, plan.registers);
  }
  static bool dirty_reads(const WaveTaint& taint, const Plan& plan) {
    return taint.dirty_scalars(plan.scalar_reads) || (plan.masked && taint.dirty_exec()) ||
           dirty_rows(taint, plan, 0, plan.reads);
  }
  static void scalar(WaveTaint& taint, const Step& step, const Plan& plan) {
    if (plan.clean_in_clean_out && !taint.dirty_scalars(plan.scalar_reads))
      write_clean(taint, step);
    else
      transfer_scalar(taint, step);
  }
  static bool dirty(const WaveTaint& taint, const Plan& plan) {
    return dirty_scalars(taint, plan) || dirty_rows(taint, plan);
  }

  void vector(WaveTaint& taint, const Step& step, const Plan& plan) const {
    if ((step.wave.mode & mode::gpr_idx_en) != 0) return transfer_vector(taint, step, plan.approximate);
    if (plan.clean_in_clean_out && !dirty_reads(taint, plan)) return write_clean(taint, step);
    if (dirty_scalars(taint, plan)) return transfer_vector(taint, step, plan.approximate);
    if (!plan.approximate && !dirty_rows(taint, plan)) return;
    if (shared_.colours.inexact) {
      const std::optional<Inflow>& inflow = shared_.inflows[step.index];
      if (inflow && transfer_inexact(taint, step, *inflow, plan.approximate)) return;
    }
    transfer_vector(taint, step, plan.approximate);
  }

  // --- where taint must not arrive

  [[nodiscard]] std::string register_name(const Wave& wave, Origin o) const {
    const std::uint32_t number = o & 0xffff;
    return (o & origin::scalar) == origin::scalar ? scalar_name(number) : vector_name(wave, number);
  }

  void say_undefined(const Step& step, Origin from, int lane, const char* what, std::uint32_t rank) {
    if (!shared_.colours.undefined) return;
    const Source source = sources_.find(from, step.wave.id_in_group, lane);
    const bool loaded = origin::is_instruction(source.origin);
    const std::uint32_t with = loaded ? source.origin - 1 : no_index;
    if (!is_new(shared_.launch, Detector::uninitialised, step, with)) return;
    Hazard h = hazard_at(shared_.launch, Detector::uninitialised, step, with);
    h.rank = rank;
    h.lane = lane;
    const bool elsewhere = source.wave != step.wave.id_in_group;
    if (elsewhere) h.other_wave = static_cast<int>(source.wave);
    std::string subject = "data that nobody wrote";
    if (source.lane >= 0) {
      if (!elsewhere) h.distance = static_cast<std::int64_t>(step.number - source.number);
      if (lane < 0) h.lane = source.lane;
      place(h, source);
      subject = "never-written " + h.buffer;
    } else if (!loaded && source.origin != origin::none) {
      subject = fmt::format("{}{}, never written,", register_name(step.wave, source.origin),
                            elsewhere ? fmt::format(" of wave {}", source.wave) : "");
    }
    if (source.through_lds || source.through_scratch)
      subject += fmt::format(" went through {} and", !source.through_scratch ? "LDS"
                                                     : source.through_lds    ? "LDS and scratch"
                                                                             : "scratch");
    h.message = fmt::format("{} {}", subject, what);
    shared_.launch.findings.report.add(std::move(h));
  }

  void say_inexact(const Step& step, Origin from, int lane, const char* what) {
    if (!shared_.colours.inexact) return;
    const std::uint32_t with = origin::is_instruction(from) ? from - 1 : no_index;
    if (!is_new(shared_.launch, Detector::fidelity, step, with)) return;
    Hazard h = hazard_at(shared_.launch, Detector::fidelity, step, with);
    h.severity = Severity::advisory;
    h.lane = lane;
    h.message = fmt::format("a result that is not bit-exact {}", what);
    shared_.launch.findings.report.add(std::move(h));
  }

  void place(Hazard& h, const Source& source) const {
    h.offset = source.address;
    if (source.space == Space::lds) {
      h.buffer = "LDS";
    } else if (source.space == Space::scratch) {
      h.buffer = "scratch";
    } else if (const Region* region = shared_.launch.view.memory.find(source.address); region != nullptr) {
      h.buffer = region->name;
      h.offset = source.address - region->base;
    } else {
      h.buffer = "memory";
    }
  }

  /// A vector register in the lanes of `mask`. What has been said is clean from then on, so that one cause
  /// is said once.
  void sink(WaveTaint& taint, const Step& step, std::uint32_t row, u64 mask, const char* what,
            std::uint32_t rank, bool inexact_matters) {
    LaneTaint t = taint.row(row);
    const u64 undefined = t.undefined_lanes() & mask;
    if (undefined != 0) {
      say_undefined(step, t.undefined_from, std::countr_zero(undefined), what, rank);
      for (u64& b : t.undefined) b &= ~mask;
    }
    if (inexact_matters && (t.inexact & mask) != 0) {
      say_inexact(step, t.inexact_from, std::countr_zero(t.inexact & mask), what);
      t.inexact &= ~mask;
    }
    taint.set_row(row, t);
  }

  void sink_scalar(WaveTaint& taint, const Step& step, std::uint32_t code, u64 bits, const char* what) {
    if (code > scalar::scc || (code >= 128 && code != scalar::scc)) return;
    BitTaint t = taint.scalar32(code);
    if ((t.undefined & bits) != 0) say_undefined(step, t.undefined_from, -1, what, 0);
    if ((t.inexact & bits) != 0) say_inexact(step, t.inexact_from, -1, what);
    t.undefined &= ~bits;
    t.inexact &= ~bits;
    taint.set_scalar32(code, t);
  }

  [[gnu::noinline]] void branch(WaveTaint& taint, const Step& step) {
    constexpr const char* what = "decides a branch";
    const Instruction& i = step.instruction;
    switch (i.op) {
      case Op::s_cbranch_scc0:
      case Op::s_cbranch_scc1:
        return sink_scalar(taint, step, scalar::scc, 1, what);
      case Op::s_cbranch_vccz:
      case Op::s_cbranch_vccnz:
        return decide(taint, step, operand::vcc, what);
      case Op::s_cbranch_execz:
      case Op::s_cbranch_execnz:
        return decide(taint, step, operand::exec, what);
      default:
        if (i.src[0] < 127) {
          sink_scalar(taint, step, i.src[0], 0xffffffffu, "is a jump's target");
          sink_scalar(taint, step, i.src[0] + 1u, 0xffffffffu, "is a jump's target");
        }
        for (const Registers& r : step.effects.scalar_writes)
          for (unsigned k = 0; k < r.count; ++k)
            if (r.first + k < 128) taint.set_scalar32(r.first + k, BitTaint());
    }
  }
  /// Whether a lane mask is empty.
  void decide(WaveTaint& taint, const Step& step, std::uint16_t mask, const char* what) {
    BitTaint t = taint.scalar64(mask);
    const u64 value = step.wave.s64(mask);
    if (undecided(value, t.undefined)) {
      say_undefined(step, t.undefined_from, std::countr_zero(t.undefined), what, 0);
      t.undefined = 0;
    }
    if (undecided(value, t.inexact)) {
      say_inexact(step, t.inexact_from, std::countr_zero(t.inexact), what);
      t.inexact = 0;
    }
    taint.set_scalar64(mask, t);
  }

  // --- memory

  [[gnu::noinline]] void access(WaveTaint& taint, const Step& step, const Plan& plan, bool dirty_registers) {
    const Access& a = *step.access;
    if (dirty_registers) check(taint, step);
    if (a.shape.scalar) {
      if (a.writes()) memory_.store_scalar(step);
      if (a.reads() && step.instruction.dst != operand::none) load_scalar(taint, step, plan);
      return;
    }
    if (a.shape.lds_dma) return memory_.load_to_lds(step, sources_);
    if (a.reads() && !step.effects.vector_writes.empty() &&
        (a.shape.kind != AccessKind::atomic || step.instruction.encoding == Encoding::ds ||
         step.instruction.sc0)) {
      load(taint, step, dirty_registers);
    }
    if (a.writes()) memory_.store(step, taint, sources_);
  }

  /// Addresses, and data that is stored for good.
  void check(WaveTaint& taint, const Step& step) {
    const Access& a = *step.access;
    const Instruction& i = step.instruction;
    constexpr const char* address = "is an address";
    const u64 exec = a.shape.scalar ? 1 : step.wave.exec();
    if (exec == 0) return;
    for (const Registers& r : step.effects.scalar_reads) {
      if (r.first == operand::exec) continue;
      const bool stored = a.shape.scalar && a.writes() && r.first == i.data[0];
      for (unsigned k = 0; k < r.count; ++k)
        if (r.first + k < 128)
          sink_scalar(taint, step, r.first + k,
                      r.first + k != operand::m0 ? 0xffffffffu
                      : a.shape.lds_dma          ? m0_in_lds(i)
                                                 : 0xffffu,
                      stored ? "is stored" : address);
    }
    if (a.shape.scalar) return;
    for (const Registers& r : step.effects.vector_reads) {
      const bool is_address = i.addr != operand::none && r.first == i.addr - operand::vgpr0;
      for (unsigned k = 0; k < r.count; ++k) {
        if (is_address) {
          sink(taint, step, r.first + k, exec, address, 0, true);
        } else if (a.writes()) {
          sink(taint, step, r.first + k, a.global & stored_lanes(taint, step, r, k), "is stored", 1, false);
        }
      }
    }
    if (a.writes() && (a.global & exec) != 0 && taint.dirty_exec()) {
      const BitTaint t = taint.scalar64(operand::exec);
      if ((t.undefined & a.global) != 0)
        say_undefined(step, t.undefined_from, std::countr_zero(t.undefined & a.global),
                      "decides whether this is stored", 1);
    }
  }

  /// Lanes of which the bytes that go to memory in register k of the data are tainted at all.
  static u64 stored_lanes(const WaveTaint& taint, const Step& step, const Registers& r, unsigned k) {
    const Access& a = *step.access;
    const LaneTaint& t = taint.row(r.first + k);
    u64 mask = ~u64{0};
    if (a.shape.bytes == 1 || a.shape.bytes == 2) {
      const bool high = info(step.instruction.op).name.find("d16_hi") != std::string_view::npos;
      mask = t.undefined[high ? 2 : 0] | (a.shape.bytes == 2 ? t.undefined[high ? 3 : 1] : 0);
    }
    for (u64 m = a.shortened; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      if (4 * k >= a.size[l]) mask &= ~(u64{1} << l);
    }
    return mask;
  }

  void remember(const Step& step, const Loaded& loaded) {
    if (loaded.places.mask == 0) return;
    sources_.loaded({origin::instruction(step.index), step.wave.id_in_group, step.number}, loaded.places);
  }

  void load(WaveTaint& taint, const Step& step, bool dirty_registers) {
    const Loaded loaded = memory_.load(step);
    if (loaded.clean && !dirty_registers) return;
    const u64 exec = step.wave.exec();
    const Registers& dst = step.effects.vector_writes[0];
    if (loaded.clean && !taint.dirty_exec()) {
      for (unsigned d = 0; d < dst.count; ++d) taint.clean_row(dst.first + d, dst.bytes, exec);
      return;
    }
    remember(step, loaded);
    const LaneTaint unsure = exec_taint(taint);
    for (unsigned d = 0; d < dst.count; ++d) {
      LaneTaint now = taint.row(dst.first + d);
      LaneTaint brought = d < 4 ? loaded.dword[d] : LaneTaint();
      for (std::size_t b = 0; b < 4; ++b)
        if ((dst.bytes >> b & 1) != 0)
          now.undefined[b] = (now.undefined[b] & ~exec) | (brought.undefined[b] & exec);
      now.inexact = (dst.bytes == 0xf ? now.inexact & ~exec : now.inexact) | (brought.inexact & exec);
      if ((brought.undefined_lanes() & exec) != 0)
        now.undefined_from =
            brought.undefined_from != origin::none ? brought.undefined_from : origin::instruction(step.index);
      if ((brought.inexact & exec) != 0) now.inexact_from = origin::instruction(step.index);
      now |= unsure;
      taint.set_row(dst.first + d, now);
    }
  }
  static LaneTaint exec_taint(const WaveTaint& taint) {
    LaneTaint t;
    if (!taint.dirty_exec()) return t;
    const BitTaint bits = taint.scalar64(operand::exec);
    t.all_bytes(bits.undefined);
    t.inexact = bits.inexact;
    t.undefined_from = bits.undefined_from;
    t.inexact_from = bits.inexact_from;
    return t;
  }

  void load_scalar(WaveTaint& taint, const Step& step, const Plan& plan) {
    const Loaded loaded = memory_.load_scalar(step, scalars_);
    if (loaded.clean && !taint.dirty_scalars(plan.scalars)) return;
    remember(step, loaded);
    for (unsigned d = 0; d < scalars_.size(); ++d) {
      BitTaint t = scalars_[d];
      if (t.undefined != 0) t.undefined_from = origin::instruction(step.index);
      if (t.inexact != 0) t.inexact_from = origin::instruction(step.index);
      if (step.instruction.dst + d < 128) taint.set_scalar32(step.instruction.dst + d, t);
    }
  }

  Shared& shared_;
  std::vector<WaveTaint> waves_;
  MemoryTaint memory_;
  Sources sources_;
  std::vector<BitTaint> scalars_;
  std::span<Gate> gates_;
};

class Launch final : public LaunchObserver {
 public:
  Launch(const LaunchContext& launch, Colours colours) : Launch(launch, colours, plans(launch, colours)) {}
  std::unique_ptr<Observer> observe(Workgroup& group, std::uint64_t) override {
    return std::make_unique<Flow>(shared_, group);
  }
  [[nodiscard]] Interest interest(std::uint32_t index) const override {
    return {.before = when_of(shared_.plans[index]), .after = false};
  }

 private:
  Launch(const LaunchContext& launch, Colours colours, const Plans& plans)
      : shared_{launch, colours, plans.by_instruction, plans.inflows, plans.read_first} {}

  static const Plans& plans(const LaunchContext& launch, Colours colours) {
    const std::uint64_t key = (colours.undefined ? 1 : 0) | (colours.inexact ? 2 : 0);
    return launch.analysis.derived<Plans>(key, [&] { return Plans(launch, colours); });
  }
  static std::uint8_t when_of(const Plan& plan) {
    switch (plan.kind) {
      case Kind::nothing:
        return when::never;
      case Kind::memory:
      case Kind::clock:
        return when::always;
      default:
        return plan.approximate ? when::always : when::tainted;
    }
  }

  Shared shared_;
};

}  // namespace

std::unique_ptr<LaunchObserver> follow_data(const LaunchContext& launch, Colours colours) {
  return std::make_unique<Launch>(launch, colours);
}

}  // namespace attest::device::sim::detect
