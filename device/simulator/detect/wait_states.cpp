// SPDX-License-Identifier: MIT
#include "device/simulator/detect/wait_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "device/simulator/core/workgroup.h"
#include "device/simulator/detect/hazard_at.h"

namespace attest::device::sim::detect {
namespace {

/// Where an instruction stands: in wait states as LLVM counts them, and with MFMA occupying their unit.
struct Moment {
  std::uint32_t states = 0, busy = 0;
  std::uint32_t number = 0;  ///< of the wave's instructions, low half
  std::uint32_t index = no_index;
};

namespace produced {
constexpr std::uint8_t valu = 1, trans = 2, part = 4, dot = 8, matrix = 16;
}

struct Written {
  Moment at;
  std::uint8_t by = 0;  ///< bits of namespace produced; 0: nothing that matters
  Matrix matrix = Matrix::none;
  std::uint8_t passes = 0;
  Op op = Op::invalid;
  Registers result;
};

struct Taken {  ///< read by an MFMA as C, or by a store as data
  Moment at;
  std::uint8_t passes = 0;
};

struct WaveState {
  Moment now{.states = 64, .busy = 64};
  std::uint32_t matrix_free = 0;  ///< in busy states: when the matrix unit takes the next one
  std::uint32_t stall = 0;        ///< states at the last s_waitcnt or s_barrier
  std::array<Written, 512> vector;
  std::array<Taken, 512> as_c, as_data;
  std::array<Moment, scalar::count> valu_scalar;  ///< SGPRs, vcc, exec written by VALU
  Moment m0;                                      ///< by SALU
  std::array<Moment, 64> setreg;                  ///< by hardware register
  std::uint32_t latest_vector = 0,
                latest_scalar = 0;  ///< states at the last entry of each: nothing older matters
};

/// The largest number of any rule.
constexpr std::uint32_t horizon = 19;

unsigned dwords_stored(const Instruction& i) {
  return dwords(info(i.op).src[1]);
}

/// Stores whose data stay in use for a while: LLVM's createsVALUHazard.
bool holds_data(const Instruction& i, const Effects& e) {
  if (!e.store || e.atomic || dwords_stored(i) <= 2) return false;
  if (i.encoding == Encoding::mubuf || i.encoding == Encoding::mtbuf) return i.soffset >= 128;
  return i.encoding == Encoding::flat || i.encoding == Encoding::global || i.encoding == Encoding::scratch;
}

bool is_lane_read(Op op) {
  return op == Op::v_readlane_b32 || op == Op::v_readfirstlane_b32;
}
bool is_lane_access(Op op) {
  return is_lane_read(op) || op == Op::v_writelane_b32;
}

/// Wait states until the D of an MFMA can be read as A or B, by VALU, or overwritten.
unsigned matrix_result(const Written& w, bool to_memory) {
  if (w.matrix == Matrix::dgemm) {
    if (to_memory) return w.passes == 4 ? 9 : 18;
    return w.passes == 4 ? 6 : 11;
  }
  return w.passes + (w.matrix == Matrix::xdl ? 3u : 2u);
}

/// States of waves that have ended, used again: 40 KiB each would otherwise be cleared for every one. What an
/// earlier wave did lies so many states back that it is as good as forgotten.
class Retired {
 public:
  std::vector<WaveState> take(std::size_t count) {
    if (idle_.empty()) return std::vector<WaveState>(count);
    std::vector<WaveState> waves = std::move(idle_.back());
    idle_.pop_back();
    waves.resize(count);
    for (WaveState& w : waves) {
      w.now.states += 64;
      w.now.busy += 64;
    }
    return waves;
  }
  void give(std::vector<WaveState> waves) { idle_.push_back(std::move(waves)); }

 private:
  std::vector<std::vector<WaveState>> idle_;
};

class Group final : public Observer {
 public:
  Group(const LaunchContext& launch, Retired& retired, std::uint32_t waves)
      : launch_(launch), retired_(retired), waves_(retired.take(waves)) {}
  ~Group() override { retired_.give(std::move(waves_)); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  bool before(const Step& step) override {
    WaveState& w = waves_[step.wave.id_in_group];
    w.now.number = static_cast<std::uint32_t>(step.number);
    w.now.index = step.index;
    start(w, step);
    check(w, step);
    record(w, step);
    advance(w, step);
    return true;
  }

 private:
  /// An MFMA waits for the one before it.
  static void start(WaveState& w, const Step& step) {
    if (step.effects.unit == Unit::mfma) w.now.busy = std::max(w.now.busy, w.matrix_free);
  }

  static void advance(WaveState& w, const Step& step) {
    const Op op = step.instruction.op;
    if (op == Op::s_waitcnt || op == Op::s_barrier) w.stall = w.now.states;
    if (step.effects.unit == Unit::mfma) w.matrix_free = w.now.busy + step.effects.passes;
    const std::uint32_t states =
        op == Op::s_nop ? 1 + static_cast<std::uint32_t>(step.instruction.imm & 0xf) : 1;
    w.now.states += states;
    w.now.busy += states;
  }

  void check(WaveState& w, const Step& step) {
    const bool vectors = w.now.states - w.latest_vector <= horizon + 1;
    const bool scalars_too = w.now.states - w.latest_scalar <= horizon + 1;
    switch (step.effects.unit) {
      case Unit::valu:
        if (vectors) valu(w, step);
        if (scalars_too) valu_scalars(w, step);
        break;
      case Unit::mfma:
        if (vectors) mfma(w, step);
        if (scalars_too) require(w, step, w.valu_scalar[operand::exec], 4, "a VALU write of EXEC, then MFMA");
        break;
      case Unit::vmem:
      case Unit::flat:
      case Unit::ds:
        if (vectors) memory(w, step);
        if (scalars_too) memory_scalars(w, step);
        break;
      case Unit::salu:
      case Unit::control:
        if (scalars_too) salu(w, step);
        break;
      case Unit::smem:
        break;
    }
  }

  void valu(WaveState& w, const Step& step) {
    const Effects& e = step.effects;
    const Op op = step.instruction.op;
    const unsigned c =
        e.dot ? (info(op).has(op_flag::reads_dst) ? step.instruction.dst : step.instruction.src[2]) : 0;
    for (const Registers& r : e.vector_reads) {
      for (unsigned row = r.first; row < r.first + r.count; ++row) {
        const Written& p = w.vector[row];
        if (p.by == 0 || w.now.states - p.at.states > horizon) continue;
        if ((p.by & produced::matrix) != 0) {
          require(w, step, p.at, matrix_result(p, false), row, "an MFMA result, read by VALU");
          continue;
        }
        if ((p.by & produced::trans) != 0 && !e.trans)
          require(w, step, p.at, 1, row, "a transcendental result, read by VALU");
        if ((p.by & produced::part) != 0)
          require(w, step, p.at, 1, row, "a partly written register, read by VALU");
        if ((p.by & produced::dot) != 0 && !(e.dot && p.op == op && row + operand::vgpr0 == c))
          require(w, step, p.at, 3, row, "a dot product, read by VALU");
        if (is_lane_read(op))
          require(w, step, p.at, 1, row, "a VALU result, read by v_readlane or v_readfirstlane");
        if (e.dpp) require(w, step, p.at, 2, row, "a VALU result, read by DPP", 1);
      }
    }
    for (const Registers& r : e.vector_writes) overwrite(w, step, r);
  }

  void overwrite(WaveState& w, const Step& step, const Registers& r) {
    const Effects& e = step.effects;
    for (unsigned row = r.first; row < r.first + r.count; ++row) {
      const Written& p = w.vector[row];
      if (p.by != 0 && w.now.states - p.at.states <= horizon) {
        if ((p.by & produced::matrix) != 0)
          require(w, step, p.at, matrix_result(p, false), row, "an MFMA result, overwritten");
        if ((p.by & produced::part) != 0 && e.writes_part)
          require(w, step, p.at, 1, row, "a partly written register, partly written again");
        if ((p.by & produced::dot) != 0 && p.op != step.instruction.op)
          require(w, step, p.at, 3, row, "a dot product, overwritten by VALU");
      }
      if (e.unit != Unit::valu && e.unit != Unit::mfma) continue;
      const Taken& data = w.as_data[row];
      require(w, step, data.at, 2, row, "the data of a store of more than 64 bits, overwritten by VALU");
      if (e.unit != Unit::valu) continue;
      const Taken& c = w.as_c[row];
      if (c.passes != 0) require(w, step, c.at, c.passes - 1u, row, "the C of an MFMA, overwritten by VALU");
    }
  }

  void valu_scalars(WaveState& w, const Step& step) {
    const Instruction& i = step.instruction;
    const bool div_fmas = i.op == Op::v_div_fmas_f32 || i.op == Op::v_div_fmas_f64;
    for (const Registers& r : step.effects.scalar_reads) {
      if (r.first >= scalar::scc) continue;
      const bool select =
          (i.op == Op::v_readlane_b32 || i.op == Op::v_writelane_b32) && r.first == i.src[1] && r.count == 1;
      for (unsigned code = r.first; code < r.first + r.count; ++code) {
        if (select)
          require(w, step, w.valu_scalar[code], 4, code, "a VALU result in an SGPR, as lane select", never,
                  true);
        else if (div_fmas && (code == operand::vcc || code == operand::vcc + 1))
          require(w, step, w.valu_scalar[code], 4, code, "a VALU write of vcc, then v_div_fmas", never, true);
        else
          require(w, step, w.valu_scalar[code], 2, code, "a VALU result in an SGPR, read by VALU", 1, true);
      }
    }
    if (step.effects.dpp) require(w, step, w.valu_scalar[operand::exec], 5, "a VALU write of EXEC, then DPP");
    if (is_lane_access(i.op))
      require(w, step, w.valu_scalar[operand::exec], 4, "a VALU write of EXEC, then v_readlane or the like");
  }

  void mfma(WaveState& w, const Step& step) {
    const Effects& e = step.effects;
    const bool sparse = info(step.instruction.op).has(op_flag::reads_dst);
    for (const Registers& r : e.vector_reads) {
      // The accumulator: source 2, of a sparse one the destination.
      const bool is_c =
          &r == e.vector_reads.end() - 1 && (sparse || step.instruction.src[2] >= operand::vgpr0);
      for (unsigned row = r.first; row < r.first + r.count; ++row) {
        const Written& p = w.vector[row];
        if (p.by == 0 || w.now.states - p.at.states > horizon) continue;
        if ((p.by & produced::matrix) == 0) {
          if ((p.by & produced::dot) == 0) require(w, step, p.at, 2, row, "a VALU result, read by MFMA");
          if ((p.by & produced::trans) != 0)
            require(w, step, p.at, 1, row, "a transcendental result, read by MFMA");
          continue;
        }
        if (!is_c)
          require(w, step, p.at, matrix_result(p, false), row, "an MFMA result, read as A or B");
        else
          accumulate(w, step, p, r, row);
      }
    }
    for (const Registers& r : e.vector_writes)
      for (unsigned row = r.first; row < r.first + r.count; ++row)
        require(w, step, w.as_data[row].at, 2, row,
                "the data of a store of more than 64 bits, overwritten by MFMA");
  }

  void accumulate(WaveState& w, const Step& step, const Written& p, const Registers& c, unsigned row) {
    const bool identical = p.result.first == c.first && p.result.count == c.count;
    unsigned needed = 0;
    if (identical) {
      if (p.matrix == Matrix::dgemm && p.passes == 4 && step.effects.matrix == Matrix::dgemm) needed = 4;
      if (p.matrix != Matrix::dgemm && p.passes == 2) needed = 2;
    } else if (p.matrix == Matrix::dgemm) {
      if (step.effects.matrix != Matrix::xdl) needed = p.passes == 4 ? 4 : 9;
    } else if (p.matrix == Matrix::xdl) {
      needed = p.passes + 1u;
    } else if (step.effects.matrix != Matrix::xdl) {
      needed = p.passes;
    }
    if (needed != 0) require(w, step, p.at, needed, row, "an MFMA result, read as C");
  }

  void memory(WaveState& w, const Step& step) {
    for (const Registers& r : step.effects.vector_reads) {
      for (unsigned row = r.first; row < r.first + r.count; ++row) {
        const Written& p = w.vector[row];
        if ((p.by & produced::matrix) == 0 || w.now.states - p.at.states > horizon) continue;
        require(w, step, p.at, matrix_result(p, true), row, "an MFMA result, read by a memory instruction");
      }
    }
    for (const Registers& r : step.effects.vector_writes) overwrite(w, step, r);
  }

  void memory_scalars(WaveState& w, const Step& step) {
    const Effects& e = step.effects;
    if (e.unit != Unit::ds) {
      for (const Registers& r : e.scalar_reads)
        for (unsigned code = r.first; code < r.first + r.count && code < scalar::scc; ++code)
          require(w, step, w.valu_scalar[code], 5, code, "a VALU result in an SGPR, read by vector memory",
                  never, true);
    }
    if (e.lds_dma)
      require(w, step, w.m0, 1, operand::m0, "an SALU write of M0, then LDS-DMA", 0, true);
    else if (e.unit == Unit::ds)
      for (const Registers& r : e.scalar_reads)
        if (r.first == operand::m0)
          require(w, step, w.m0, 1, operand::m0, "an SALU write of M0, then DS with M0 as base", never, true);
  }

  void salu(WaveState& w, const Step& step) {
    const Instruction& i = step.instruction;
    const auto hardware_register = static_cast<std::size_t>(i.imm & 63);
    switch (i.op) {
      case Op::s_getreg_b32:
      case Op::s_setreg_b32:
      case Op::s_setreg_imm32_b32:
        require(w, step, w.setreg[hardware_register], 2, "s_setreg, then the same hardware register");
        break;
      case Op::s_movrels_b32:
      case Op::s_movrels_b64:
      case Op::s_movreld_b32:
      case Op::s_movreld_b64:
        require(w, step, w.m0, 1, operand::m0, "an SALU write of M0, then s_movrel", never, true);
        break;
      case Op::s_sendmsg:
      case Op::s_sendmsghalt:
      case Op::s_ttracedata:
        require(w, step, w.m0, 1, operand::m0, "an SALU write of M0, then a message", never, true);
        break;
      default:
        break;
    }
  }

  static void record(WaveState& w, const Step& step) {
    const Effects& e = step.effects;
    const Instruction& i = step.instruction;
    if (!e.vector_writes.empty()) {
      Written entry;
      entry.at = w.now;
      if (e.unit == Unit::valu) {
        entry.by =
            static_cast<std::uint8_t>(produced::valu | (e.trans ? produced::trans : 0) |
                                      (e.writes_part ? produced::part : 0) | (e.dot ? produced::dot : 0));
      } else if (e.unit == Unit::mfma) {
        entry.by = produced::matrix;
        entry.matrix = e.matrix;
        entry.passes = e.passes;
      }
      entry.op = i.op;
      for (const Registers& r : e.vector_writes) {
        entry.result = r;
        std::fill_n(w.vector.begin() + r.first, r.count, entry);
      }
      if (entry.by != 0) w.latest_vector = w.now.states;
    }
    if (e.unit == Unit::mfma && e.matrix == Matrix::xdl && i.src[2] >= operand::vgpr0 &&
        !e.vector_writes.empty() && !info(i.op).has(op_flag::reads_dst)) {
      std::fill_n(w.as_c.begin() + (i.src[2] - operand::vgpr0), e.vector_writes[0].count,
                  Taken{w.now, e.passes});
    }
    if (holds_data(i, e) && i.data[0] != operand::none) {
      std::fill_n(w.as_data.begin() + (i.data[0] - operand::vgpr0), dwords_stored(i), Taken{w.now, 0});
      w.latest_vector = w.now.states;
    }
    if (e.unit == Unit::valu) {
      for (const Registers& r : e.scalar_writes) {
        std::fill_n(w.valu_scalar.begin() + r.first, r.count, w.now);
        w.latest_scalar = w.now.states;
      }
    }
    if (e.unit == Unit::salu || e.unit == Unit::smem) {
      for (const Registers& r : e.scalar_writes) {
        if (r.first < scalar::scc)
          for (unsigned k = r.first; k < r.first + r.count; ++k) w.valu_scalar[k].index = no_index;
        if (r.first != operand::m0) continue;
        w.m0 = w.now;
        w.latest_scalar = w.now.states;
      }
    }
    if (i.op == Op::s_setreg_b32 || i.op == Op::s_setreg_imm32_b32) {
      w.setreg[static_cast<std::size_t>(i.imm & 63)] = w.now;
      w.latest_scalar = w.now.states;
    }
  }

  /// @param advisory_from with so many wait states in between it is advisory only
  void require(WaveState& w, const Step& step, const Moment& producer, unsigned needed, unsigned reg,
               const char* what, unsigned advisory_from = never, bool scalar_register = false) {
    if (producer.index == no_index) return;
    const std::uint32_t states = w.now.states - producer.states - 1;
    if (states >= needed) return;
    report(w, step, producer, needed, states,
           scalar_register ? scalar_name(reg) : vector_name(step.wave, reg), what, advisory_from);
  }
  void require(WaveState& w, const Step& step, const Moment& producer, unsigned needed, const char* what) {
    if (producer.index == no_index) return;
    const std::uint32_t states = w.now.states - producer.states - 1;
    if (states < needed) report(w, step, producer, needed, states, "", what, never);
  }

  void report(const WaveState& w, const Step& step, const Moment& producer, unsigned needed,
              std::uint32_t states, const std::string& name, const char* what, unsigned advisory_from) {
    if (!is_new(launch_, Detector::wait_states, step, producer.index)) return;
    Hazard h = hazard_at(launch_, Detector::wait_states, step, producer.index);
    h.message = fmt::format("{}{}{}: {} wait state{} in between, {} needed", name, name.empty() ? "" : ": ",
                            what, states, states == 1 ? "" : "s", needed);
    const bool stalled = w.stall > producer.states;
    const bool occupied = w.now.busy - producer.busy - 1 >= needed;
    if (stalled || occupied || states >= advisory_from) h.severity = Severity::advisory;
    h.rank = 3;
    h.distance = static_cast<std::int64_t>(static_cast<std::uint32_t>(step.number) - producer.number);
    launch_.findings.report.add(std::move(h));
  }

  static constexpr unsigned never = 99;

  const LaunchContext& launch_;
  Retired& retired_;
  std::vector<WaveState> waves_;
};

class Launch final : public LaunchObserver {
 public:
  explicit Launch(const LaunchContext& launch) : launch_(launch) {}
  std::unique_ptr<Observer> observe(Workgroup& group, std::uint64_t) override {
    return std::make_unique<Group>(launch_, retired_, group.wave_count);
  }

 private:
  const LaunchContext& launch_;
  Retired retired_;
};

}  // namespace

std::unique_ptr<LaunchObserver> check_wait_states(const LaunchContext& launch) {
  return std::make_unique<Launch>(launch);
}

}  // namespace attest::device::sim::detect
