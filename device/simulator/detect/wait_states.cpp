// SPDX-License-Identifier: MIT
#include "device/simulator/detect/wait_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "device/simulator/core/workgroup.h"
#include "device/simulator/detect/gate.h"
#include "device/simulator/detect/hazard_at.h"
#include "device/simulator/detect/successors.h"

namespace attest::device::sim::detect {
namespace {

/// Where an instruction stands: in wait states as LLVM counts them, and with MFMA occupying their unit.
struct Moment {
  std::uint32_t states = 0, busy = 0;
  std::uint32_t index = no_index;
};

namespace produced {
constexpr std::uint8_t valu = 1, trans = 2, part = 4, dot = 8, matrix = 16;
}

/// What the rules know of an instruction before it runs.
struct Traits {
  std::uint8_t by = 0;  ///< what its vector results are: bits of namespace produced; 0: nothing that matters
  std::uint8_t states = 1;  ///< that it takes itself
  std::uint8_t lasts = 0;   ///< wait states until the last rule about its results, beside `plain_lasts`
  std::uint8_t passes = 0;
  Matrix matrix = Matrix::none;
  bool stalls = false;           ///< s_waitcnt, s_barrier
  bool holds_data = false;       ///< a store whose data must not be overwritten at once
  bool takes_c = false;          ///< an MFMA that reads C for a while
  bool near = false;             ///< VALU that any VALU result may be too close to: lane reads, DPP
  bool watches_scalars = false;  ///< SALU and messages that a rule is about
  bool setreg = false;
  bool scalars = false;  ///< writes scalar registers that something may be too close to
  /// A plain VALU result that nothing can be too close to: no lane read, DPP or MFMA comes soon enough.
  bool calm = false;
};

/// The rules reach back this many wait states and no further, so what happened longer ago in instructions
/// (each takes one state at least) needs no remembering: registers name the instruction that wrote them by
/// its place in a ring.
constexpr std::uint32_t horizon = 19;
constexpr std::uint32_t ring_size = 32;

/// Beyond Traits::lasts: how long MFMA, lane reads and DPP look for plain VALU results, and how long anything
/// looks for scalars.
constexpr std::uint32_t plain_lasts = 2, scalars_last = 5;

/// Of two counts of states that may have wrapped.
constexpr bool earlier(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

/// A number of an instruction of the wave, from 64 on; 0: none.
using Serial = std::uint32_t;

struct WaveState {
  Moment now{.states = 64, .busy = 64};
  Serial serial = 64;             ///< of the instruction `now`
  Serial first = 65;              ///< of the wave's first instruction
  std::uint32_t matrix_free = 0;  ///< in busy states: when the matrix unit takes the next one
  std::uint32_t stall = 0;        ///< states at the last s_waitcnt or s_barrier
  std::array<Moment, ring_size> ring;
  std::array<Serial, 512> vector{};                 ///< written by
  std::array<Serial, 512> as_c{}, as_data{};        ///< read by an MFMA as C, by a store as data
  std::array<Serial, scalar::count> valu_scalar{};  ///< SGPRs, vcc, exec written by VALU
  Serial m0 = 0;                                    ///< by SALU
  std::array<Serial, 64> setreg{};                  ///< by hardware register
  // States from which on nothing that lies behind matters: to any reader, to those that plain VALU results
  // matter to as well, to readers of scalars.
  std::uint32_t results_until = 0, plain_until = 0, scalars_until = 0;
};

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
unsigned matrix_result(const Traits& w, bool to_memory) {
  if (w.matrix == Matrix::dgemm) {
    if (to_memory) return w.passes == 4 ? 9 : 18;
    return w.passes == 4 ? 6 : 11;
  }
  return w.passes + (w.matrix == Matrix::xdl ? 3u : 2u);
}

Traits traits_of(const Instruction& i, const Effects& e) {
  Traits t;
  const Op op = i.op;
  t.passes = e.passes;
  t.matrix = e.matrix;
  if (op == Op::s_nop) t.states = static_cast<std::uint8_t>(1 + (i.imm & 0xf));
  t.stalls = op == Op::s_waitcnt || op == Op::s_barrier;
  t.holds_data = holds_data(i, e) && i.data[0] != operand::none;
  t.near = e.unit == Unit::valu && (is_lane_read(op) || e.dpp);
  t.setreg = op == Op::s_setreg_b32 || op == Op::s_setreg_imm32_b32;
  t.watches_scalars = t.setreg || op == Op::s_getreg_b32 || e.relative || op == Op::s_sendmsg ||
                      op == Op::s_sendmsghalt || op == Op::s_ttracedata;
  t.scalars =
      !e.scalar_writes.empty() && (e.unit == Unit::valu || e.unit == Unit::salu || e.unit == Unit::smem);
  t.takes_c = e.unit == Unit::mfma && e.matrix == Matrix::xdl && i.src[2] >= operand::vgpr0 &&
              !e.vector_writes.empty() && !info(op).has(op_flag::reads_dst);
  if (t.holds_data) t.lasts = 2;
  if (e.vector_writes.empty()) return t;
  if (e.unit == Unit::valu) {
    t.by = static_cast<std::uint8_t>(produced::valu | (e.trans ? produced::trans : 0) |
                                     (e.writes_part ? produced::part : 0) | (e.dot ? produced::dot : 0));
    if (e.trans || e.writes_part) t.lasts = 1;
    if (e.dot) t.lasts = 3;
  } else if (e.unit == Unit::mfma) {
    t.by = produced::matrix;
    t.lasts = horizon;
  }
  return t;
}

/// Whether one of the `within` instructions that may follow `index` is such that found(it), on any path, or
/// cannot be told.
template <typename Found>
bool follows(const Program& program, std::uint32_t index, unsigned within, const Found& found) {
  const Successors next = successors(program, index);
  for (unsigned n = 0; n < next.count; ++n) {
    const std::uint32_t k = next.index[n];
    if (k < program.size() && (found(k) || (within > 1 && follows(program, k, within - 1, found))))
      return true;
  }
  return next.anywhere;
}

/// Whether a rule may be about an instruction soon behind one that writes scalar registers by VALU.
bool may_be_close(const Instruction& i, const Effects& e, const RegisterList<4>& written) {
  if (e.relative) return true;
  if (e.unit != Unit::valu && e.unit != Unit::mfma && e.unit != Unit::vmem && e.unit != Unit::flat)
    return false;
  for (const Registers& w : written) {
    for (const Registers& r : e.scalar_reads)
      if (w.overlaps(r)) return true;
    if (w.overlaps({operand::exec, 2}) && (e.dpp || e.unit == Unit::mfma || is_lane_access(i.op)))
      return true;
  }
  return false;
}

std::vector<Traits> traits_of(const Program& program, const std::vector<Effects>& effects) {
  std::vector<Traits> traits;
  traits.reserve(program.size());
  for (std::uint32_t k = 0; k < program.size(); ++k)
    traits.push_back(traits_of(program.code()[k].instruction, effects[k]));
  for (std::uint32_t k = 0; k < traits.size(); ++k) {
    Traits& t = traits[k];
    t.calm = t.by == produced::valu && !follows(program, k, plain_lasts, [&](std::uint32_t n) {
               return traits[n].near || effects[n].unit == Unit::mfma || effects[n].relative;
             });
    if (t.scalars && effects[k].unit == Unit::valu)
      t.scalars = follows(program, k, scalars_last, [&](std::uint32_t n) {
        return may_be_close(program.code()[n].instruction, effects[n], effects[k].scalar_writes);
      });
  }
  return traits;
}

/// States of waves that have ended, used again: several KiB each would otherwise be cleared for every one.
/// What an earlier wave did lies so many states back that it is as good as forgotten.
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
      w.serial += 64;
      w.first = w.serial + 1;
    }
    return waves;
  }
  void give(std::vector<WaveState> waves) { idle_.push_back(std::move(waves)); }

 private:
  std::vector<std::vector<WaveState>> idle_;
};

class Group final : public Observer {
 public:
  Group(const LaunchContext& launch, const std::vector<Traits>& traits, Retired& retired, std::uint32_t waves)
      : launch_(launch), traits_(traits), retired_(retired), waves_(retired.take(waves)) {}
  ~Group() override { retired_.give(std::move(waves_)); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void share(std::span<Gate> gates) override { gates_ = gates; }

  bool before(const Step& step) override {
    WaveState& w = waves_[step.wave.id_in_group];
    const Traits& t = traits_[step.index];
    // The instructions in between, of which nobody told, have taken a state each.
    const Serial serial = w.first + static_cast<Serial>(step.number);
    const std::uint32_t untold = serial - w.serial - 1;
    w.now.states += untold;
    w.now.busy += untold;
    w.now.index = step.index;
    w.serial = serial;
    // An MFMA waits for the one before it.
    if (step.effects.unit == Unit::mfma) w.now.busy = std::max(w.now.busy, w.matrix_free);
    w.ring[w.serial % ring_size] = w.now;
    check(w, step, t);
    record(w, step, t);
    if (t.stalls) w.stall = w.now.states;
    if (step.effects.unit == Unit::mfma) w.matrix_free = w.now.busy + t.passes;
    w.now.states += t.states;
    w.now.busy += t.states;
    Gate& gate = gates_[step.wave.id_in_group];
    const auto until = [&](std::uint32_t states) {
      return step.number + 1 + (earlier(w.now.states, states) ? states - w.now.states : 0);
    };
    gate.results_until = until(w.results_until);
    gate.scalars_until = until(w.scalars_until);
    gate.plain_until = until(w.plain_until);
    gate.any_until = std::max({gate.results_until, gate.scalars_until, gate.plain_until});
    return true;
  }

 private:
  void check(WaveState& w, const Step& step, const Traits& t) {
    const bool results = earlier(w.now.states, w.results_until);
    const bool scalars_too = earlier(w.now.states, w.scalars_until);
    switch (step.effects.unit) {
      case Unit::valu:
        if (results || (t.near && earlier(w.now.states, w.plain_until))) valu(w, step);
        if (scalars_too) valu_scalars(w, step);
        break;
      case Unit::mfma:
        if (results || earlier(w.now.states, w.plain_until)) mfma(w, step);
        if (scalars_too) require(w, step, w.valu_scalar[operand::exec], 4, "a VALU write of EXEC, then MFMA");
        break;
      case Unit::vmem:
      case Unit::flat:
      case Unit::ds:
        if (results) memory(w, step);
        if (scalars_too) memory_scalars(w, step);
        break;
      case Unit::salu:
      case Unit::control:
        if (scalars_too && t.watches_scalars) salu(w, step);
        break;
      case Unit::smem:
        break;
    }
  }

  /// What wrote a register, while a rule may be about it; nullptr: nothing of that kind.
  const Traits* producer_of(const WaveState& w, Serial serial) const {
    if (w.serial - serial > horizon) return nullptr;
    const Moment& at = w.ring[serial % ring_size];
    const Traits& t = traits_[at.index];
    return t.by == 0 || w.now.states - at.states > horizon ? nullptr : &t;
  }

  // Kept out of line: most instructions need none of these, and before() is cheap without them.
  [[gnu::noinline]] void valu(WaveState& w, const Step& step) {
    const Effects& e = step.effects;
    const Op op = step.instruction.op;
    const unsigned c =
        e.dot ? (info(op).has(op_flag::reads_dst) ? step.instruction.dst : step.instruction.src[2]) : 0;
    for (const Registers& r : e.vector_reads) {
      for (unsigned row = r.first; row < r.first + r.count; ++row) {
        const Serial at = w.vector[row];
        const Traits* p = producer_of(w, at);
        if (p == nullptr) continue;
        if ((p->by & produced::matrix) != 0) {
          require(w, step, at, matrix_result(*p, false), row, "an MFMA result, read by VALU");
          continue;
        }
        if ((p->by & produced::trans) != 0 && !e.trans)
          require(w, step, at, 1, row, "a transcendental result, read by VALU");
        if ((p->by & produced::part) != 0)
          require(w, step, at, 1, row, "a partly written register, read by VALU");
        if ((p->by & produced::dot) != 0 && !(e.dot && op_at(w, at) == op && row + operand::vgpr0 == c))
          require(w, step, at, 3, row, "a dot product, read by VALU");
        if (is_lane_read(op))
          require(w, step, at, 1, row, "a VALU result, read by v_readlane or v_readfirstlane");
        if (e.dpp) require(w, step, at, 2, row, "a VALU result, read by DPP", 1);
      }
    }
    for (const Registers& r : e.vector_writes) overwrite(w, step, r);
  }

  void overwrite(WaveState& w, const Step& step, const Registers& r) {
    const Effects& e = step.effects;
    for (unsigned row = r.first; row < r.first + r.count; ++row) {
      const Serial at = w.vector[row];
      if (const Traits* p = producer_of(w, at); p != nullptr) {
        if ((p->by & produced::matrix) != 0)
          require(w, step, at, matrix_result(*p, false), row, "an MFMA result, overwritten");
        if ((p->by & produced::part) != 0 && e.writes_part)
          require(w, step, at, 1, row, "a partly written register, partly written again");
        if ((p->by & produced::dot) != 0 && op_at(w, at) != step.instruction.op)
          require(w, step, at, 3, row, "a dot product, overwritten by VALU");
      }
      if (e.unit != Unit::valu) continue;
      require(w, step, w.as_data[row], 2, row,
              "the data of a store of more than 64 bits, overwritten by VALU");
      const Serial c = w.as_c[row];
      if (w.serial - c > horizon) continue;
      if (const unsigned passes = traits_[w.ring[c % ring_size].index].passes; passes != 0)
        require(w, step, c, passes - 1u, row, "the C of an MFMA, overwritten by VALU");
    }
  }

  [[gnu::noinline]] void valu_scalars(WaveState& w, const Step& step) {
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

  [[gnu::noinline]] void mfma(WaveState& w, const Step& step) {
    const Effects& e = step.effects;
    const bool sparse = info(step.instruction.op).has(op_flag::reads_dst);
    for (const Registers& r : e.vector_reads) {
      // The accumulator: source 2, of a sparse one the destination.
      const bool is_c =
          &r == e.vector_reads.end() - 1 && (sparse || step.instruction.src[2] >= operand::vgpr0);
      for (unsigned row = r.first; row < r.first + r.count; ++row) {
        const Serial at = w.vector[row];
        const Traits* p = producer_of(w, at);
        if (p == nullptr) continue;
        if ((p->by & produced::matrix) == 0) {
          if ((p->by & produced::dot) == 0) require(w, step, at, 2, row, "a VALU result, read by MFMA");
          if ((p->by & produced::trans) != 0)
            require(w, step, at, 1, row, "a transcendental result, read by MFMA");
          continue;
        }
        if (!is_c)
          require(w, step, at, matrix_result(*p, false), row, "an MFMA result, read as A or B");
        else
          accumulate(w, step, at, r, row);
      }
    }
    for (const Registers& r : e.vector_writes)
      for (unsigned row = r.first; row < r.first + r.count; ++row)
        require(w, step, w.as_data[row], 2, row,
                "the data of a store of more than 64 bits, overwritten by MFMA");
  }

  void accumulate(WaveState& w, const Step& step, Serial at, const Registers& c, unsigned row) {
    const std::uint32_t index = w.ring[at % ring_size].index;
    const Traits& p = traits_[index];
    const Registers& result = launch_.analysis.effects[index].vector_writes[0];
    const bool identical = result.first == c.first && result.count == c.count;
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
    if (needed != 0) require(w, step, at, needed, row, "an MFMA result, read as C");
  }

  [[gnu::noinline]] void memory(WaveState& w, const Step& step) {
    for (const Registers& r : step.effects.vector_reads) {
      for (unsigned row = r.first; row < r.first + r.count; ++row) {
        const Serial at = w.vector[row];
        const Traits* p = producer_of(w, at);
        if (p == nullptr || (p->by & produced::matrix) == 0) continue;
        require(w, step, at, matrix_result(*p, true), row, "an MFMA result, read by a memory instruction");
      }
    }
    for (const Registers& r : step.effects.vector_writes) overwrite(w, step, r);
  }

  [[gnu::noinline]] void memory_scalars(WaveState& w, const Step& step) {
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

  [[gnu::noinline]] void salu(WaveState& w, const Step& step) {
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

  static void record(WaveState& w, const Step& step, const Traits& t) {
    const Effects& e = step.effects;
    const Instruction& i = step.instruction;
    for (const Registers& r : e.vector_writes) {
      Serial* row = &w.vector[r.first];
      for (unsigned k = r.count; k != 0; --k) *row++ = w.serial;
    }
    if (t.by != 0) w.plain_until = w.now.states + plain_lasts + 1;
    if (const std::uint32_t until = w.now.states + t.lasts + 1;
        t.lasts != 0 && earlier(w.results_until, until))
      w.results_until = until;
    if (t.takes_c)
      std::fill_n(w.as_c.begin() + (i.src[2] - operand::vgpr0), e.vector_writes[0].count, w.serial);
    if (t.holds_data) {
      std::fill_n(w.as_data.begin() + (i.data[0] - operand::vgpr0), dwords_stored(i), w.serial);
      w.plain_until = w.now.states + plain_lasts + 1;
    }
    if (!t.scalars && !t.setreg) return;
    if (e.unit == Unit::valu) {
      for (const Registers& r : e.scalar_writes) {
        std::fill_n(w.valu_scalar.begin() + r.first, r.count, w.serial);
        w.scalars_until = w.now.states + scalars_last + 1;
      }
    } else {
      for (const Registers& r : e.scalar_writes) {
        if (r.first < scalar::scc) std::fill_n(w.valu_scalar.begin() + r.first, r.count, Serial{0});
        if (r.first != operand::m0) continue;
        w.m0 = w.serial;
        w.scalars_until = w.now.states + scalars_last + 1;
      }
    }
    if (t.setreg) {
      w.setreg[static_cast<std::size_t>(i.imm & 63)] = w.serial;
      w.scalars_until = w.now.states + scalars_last + 1;
    }
  }

  /// @param advisory_from with so many wait states in between it is advisory only
  void require(WaveState& w, const Step& step, Serial producer, unsigned needed, unsigned reg,
               const char* what, unsigned advisory_from = never, bool scalar_register = false) {
    if (!too_close(w, producer, needed)) return;
    report(w, step, producer, needed, scalar_register ? scalar_name(reg) : vector_name(step.wave, reg), what,
           advisory_from);
  }
  void require(WaveState& w, const Step& step, Serial producer, unsigned needed, const char* what) {
    if (too_close(w, producer, needed)) report(w, step, producer, needed, "", what, never);
  }
  static bool too_close(const WaveState& w, Serial producer, unsigned needed) {
    if (w.serial - producer > horizon) return false;
    return w.now.states - w.ring[producer % ring_size].states - 1 < needed;
  }

  [[nodiscard]] Op op_at(const WaveState& w, Serial serial) const {
    return launch_.view.program.code()[w.ring[serial % ring_size].index].instruction.op;
  }

  [[gnu::noinline]] void report(const WaveState& w, const Step& step, Serial producer, unsigned needed,
                                const std::string& name, const char* what, unsigned advisory_from) {
    const Moment& at = w.ring[producer % ring_size];
    if (!is_new(launch_, Detector::wait_states, step, at.index)) return;
    const std::uint32_t states = w.now.states - at.states - 1;
    Hazard h = hazard_at(launch_, Detector::wait_states, step, at.index);
    h.message = fmt::format("{}{}{}: {} wait state{} in between, {} needed", name, name.empty() ? "" : ": ",
                            what, states, states == 1 ? "" : "s", needed);
    const bool stalled = w.stall > at.states;
    const bool occupied = w.now.busy - at.busy - 1 >= needed;
    if (stalled || occupied || states >= advisory_from) h.severity = Severity::advisory;
    h.rank = 3;
    h.distance = w.serial - producer;
    launch_.findings.report.add(std::move(h));
  }

  static constexpr unsigned never = 99;

  const LaunchContext& launch_;
  const std::vector<Traits>& traits_;
  Retired& retired_;
  std::vector<WaveState> waves_;
  std::span<Gate> gates_;
};

class Launch final : public LaunchObserver {
 public:
  explicit Launch(const LaunchContext& launch)
      : launch_(launch), traits_(launch.analysis.derived<std::vector<Traits>>(0, [&launch] {
          return traits_of(launch.view.program, launch.analysis.effects);
        })) {}
  std::unique_ptr<Observer> observe(Workgroup& group, std::uint64_t) override {
    return std::make_unique<Group>(launch_, traits_, retired_, group.wave_count);
  }
  [[nodiscard]] Interest interest(std::uint32_t index) const override {
    return {.before = when_of(traits_[index], launch_.view.program.code()[index].instruction,
                              launch_.analysis.effects[index]),
            .after = false,
            .access = false};
  }

 private:
  /// What check() and record() would do something for. A stall matters only between producer and consumer.
  static std::uint8_t when_of(const Traits& t, const Instruction& i, const Effects& e) {
    if (t.states != 1 || t.setreg || t.holds_data || e.unit == Unit::mfma) return when::always;
    if (t.stalls) return when::near_any;
    if (e.unit == Unit::valu && t.scalars) return when::always;
    for (const Registers& r : e.scalar_writes)
      if (r.overlaps({operand::m0, 1})) return when::always;
    if (t.by != 0 && !t.calm) return when::always;
    switch (e.unit) {
      case Unit::valu: {
        const bool scalars = !e.scalar_reads.empty() || e.dpp || is_lane_access(i.op);
        return static_cast<std::uint8_t>(when::near_results | (scalars ? when::near_scalars : 0) |
                                         (t.near ? when::near_plain : 0));
      }
      case Unit::vmem:
      case Unit::flat:
      case Unit::ds:
        return when::near_results | when::near_scalars;
      default:
        return t.scalars || t.watches_scalars ? when::near_scalars : when::never;
    }
  }

  const LaunchContext& launch_;
  const std::vector<Traits>& traits_;  ///< by instruction
  Retired retired_;
};

}  // namespace

std::unique_ptr<LaunchObserver> check_wait_states(const LaunchContext& launch) {
  return std::make_unique<Launch>(launch);
}

}  // namespace attest::device::sim::detect
