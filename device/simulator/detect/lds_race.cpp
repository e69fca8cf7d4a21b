// SPDX-License-Identifier: MIT
#include "device/simulator/detect/lds_race.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "device/simulator/core/workgroup.h"
#include "device/simulator/detect/hazard_at.h"
#include "device/simulator/detect/outstanding.h"

namespace attest::device::sim::detect {
namespace {

constexpr std::uint8_t several_waves = 0xff;

struct Cell {
  std::uint32_t write_epoch = 0, read_epoch = 0;  ///< 0: never
  std::uint32_t write_index = 0, read_index = 0;
  std::uint16_t arriving = 0;  ///< 1 + slot of an LDS-DMA that is not done
  std::uint8_t write_wave = 0, read_wave = 0;
  std::uint8_t write_bytes = 0, read_bytes = 0;
  bool write_atomic = false, write_dma = false;
};

/// A DS instruction that entered a barrier unwaited, as a mark on a dword for the epoch behind that barrier.
struct Unwaited {
  std::uint32_t epoch = 0, index = 0;
  std::uint8_t wave = 0, bytes = 0;
  bool write = false, atomic = false;
};

/// Cells of one workgroup. Epochs go on counting from workgroup to workgroup, so nothing needs clearing.
struct Shadow {
  std::vector<Cell> cells;
  std::vector<Unwaited> unwaited;  ///< empty until the first
  std::uint32_t epoch = 0;
};

struct Issued {  ///< a DS instruction that may not be done
  std::uint64_t id = 0;
  std::uint32_t index = 0;
  std::uint32_t bytes = 0;
  bool write = false, atomic = false;
  std::vector<std::uint32_t> addresses;  ///< of each access
};

struct Arriving {  ///< an LDS-DMA that is not done
  std::uint64_t id = 0, number = 0;
  std::uint32_t index = 0;
  std::uint8_t wave = 0;
  bool used = false;
  std::vector<std::uint32_t> addresses;
};

struct WaveState {
  Outstanding outstanding;
  std::vector<Issued> issued;
};

struct Use {
  std::uint32_t address = 0;
  std::uint8_t bytes = 0;  ///< of the dword
  bool write = false, atomic = false, dma = false;
  int lane = 0;
};

/// Two instructions that write the same dwords, perhaps with the same values: decided when the second has
/// been executed.
struct Suspects {
  struct Dword {
    std::uint32_t address, before;
  };
  std::vector<Dword> dwords;
  std::uint32_t with = no_index;
  Hazard hazard;
};

class Launch final : public LaunchObserver {
 public:
  Launch(const LaunchContext& launch, bool races, bool dma) : context(launch), races_(races), dma_(dma) {}
  std::unique_ptr<Observer> observe(Workgroup& group, std::uint64_t linear_id) override;
  void end() override {
    for (auto& [pair, hazard] : harmless) context.findings.report.add(std::move(hazard));
    harmless.clear();
  }

  [[nodiscard]] bool wants(Detector detector) const { return detector == Detector::lds_dma ? dma_ : races_; }
  Shadow take() {
    if (idle_.empty()) return {};
    Shadow shadow = std::move(idle_.back());
    idle_.pop_back();
    return shadow;
  }
  void give(Shadow shadow) { idle_.push_back(std::move(shadow)); }

  const LaunchContext& context;
  /// Races between writers of equal values, by pair: said at the end, unless the same pair did worse.
  std::map<std::pair<std::uint64_t, std::uint64_t>, Hazard> harmless;

 private:
  bool races_, dma_;
  std::vector<Shadow> idle_;
};

class Group final : public Observer {
 public:
  Group(Launch& launch, Workgroup& group)
      : launch_(launch), group_(group), shadow_(launch.take()), waves_(group.wave_count) {
    const std::size_t dwords = (std::size_t{group.lds_bytes} + 3) / 4;
    if (shadow_.cells.size() < dwords) shadow_.cells.resize(dwords);
    ++shadow_.epoch;
  }
  ~Group() override {
    for (const Arriving& a : arriving_)
      if (a.used) land(a);
    launch_.give(std::move(shadow_));
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  bool before(const Step& step) override {
    suspects_.dwords.clear();
    said_ = no_index;
    WaveState& w = waves_[step.wave.id_in_group];
    const Effects& e = step.effects;
    const auto done = [&](const Pending& p) { retire(w, step.wave, p); };
    if (step.instruction.op == Op::s_waitcnt) {
      if (!w.outstanding.empty()) w.outstanding.wait(wait_counts(step.instruction.imm), done);
      return true;
    }
    if (!e.vmcnt && e.lgkmcnt == 0) return true;
    const std::uint64_t id =
        w.outstanding.issue(pending_of(e, step.index, step.number, step.wave.exec()), done);
    if (step.access == nullptr) return true;
    const Access& access = *step.access;
    if (access.lds != 0) {
      touch_all(step, access);
      if (e.unit == Unit::ds) remember(w, step, access, id);
    }
    if (e.lds_dma && e.load && access.dma != 0) fill(step, access, id);
    return true;
  }

  void after(const Step& step) override {
    if (suspects_.dwords.empty()) return;
    Hazard& h = suspects_.hazard;
    const bool harmless = std::all_of(suspects_.dwords.begin(), suspects_.dwords.end(),
                                      [this](const auto& d) { return dword_at(d.address) == d.before; });
    if (harmless) {
      h.severity = Severity::advisory;
      h.message += " (the same values)";
      launch_.harmless.try_emplace({h.at.pc, h.with.pc}, std::move(h));
    } else if (is_new(launch_.context, h.detector, step, suspects_.with)) {
      launch_.context.findings.report.add(std::move(h));
    }
    suspects_.dwords.clear();
  }

  void barrier() override {
    ++shadow_.epoch;
    for (std::size_t n = 0; n < waves_.size(); ++n)
      for (const Issued& i : waves_[n].issued) mark_unwaited(i, static_cast<std::uint8_t>(n));
  }

 private:
  template <typename F>
  void for_dwords(std::uint64_t address, std::uint32_t bytes, F&& f) {
    if (address >= group_.lds_bytes || bytes > group_.lds_bytes - address) return;  // a Fault will say so
    auto at = static_cast<std::uint32_t>(address);
    while (bytes != 0) {
      const std::uint32_t in_dword = std::min(4 - at % 4, bytes);
      f(at / 4, static_cast<std::uint8_t>(((1u << in_dword) - 1) << at % 4));
      at += in_dword;
      bytes -= in_dword;
    }
  }

  void touch_all(const Step& step, const Access& access) {
    Use use;
    use.write = access.writes();
    use.atomic = access.shape.kind == AccessKind::atomic;
    for (unsigned part = 0; part < access.shape.parts; ++part)
      for (std::uint64_t m = access.lds; m != 0; m &= m - 1) {
        use.lane = std::countr_zero(m);
        const std::uint64_t address = access.address[part][use.lane];
        if ((address | access.bytes) % 4 == 0 && address + access.bytes <= group_.lds_bytes) {
          use.bytes = 0xf;
          for (std::uint32_t k = 0; k < access.bytes; k += 4) {
            use.address = static_cast<std::uint32_t>(address) + k;
            touch(step, use);
          }
          continue;
        }
        for_dwords(address, access.bytes, [&](std::uint32_t dword, std::uint8_t bytes) {
          use.address = dword * 4;
          use.bytes = bytes;
          touch(step, use);
        });
      }
  }

  void touch(const Step& step, const Use& use) {
    Cell& c = shadow_.cells[use.address / 4];
    const auto wave = static_cast<std::uint8_t>(step.wave.id_in_group);
    const std::uint32_t epoch = shadow_.epoch;
    if (c.arriving != 0) [[unlikely]]
      too_early(step, use, arriving_[c.arriving - 1u]);
    const bool written = c.write_epoch == epoch && c.write_wave != wave && (c.write_bytes & use.bytes) != 0;
    if (written && !(use.atomic && c.write_atomic)) [[unlikely]]
      race(step, use, c.write_index, c.write_wave, c.write_dma, /*with_write=*/true);
    if (use.write && c.read_epoch == epoch && c.read_wave != wave && (c.read_bytes & use.bytes) != 0)
        [[unlikely]]
      race(step, use, c.read_index, c.read_wave, false, /*with_write=*/false);
    if (!shadow_.unwaited.empty()) [[unlikely]]
      behind_barrier(step, use);

    if (use.write) {
      const bool same = c.write_epoch == epoch && c.write_wave == wave;
      c.write_bytes = static_cast<std::uint8_t>(same ? c.write_bytes | use.bytes : use.bytes);
      c.write_epoch = epoch;
      c.write_index = step.index;
      c.write_wave = wave;
      c.write_atomic = use.atomic;
      c.write_dma = use.dma;
    } else if (c.read_epoch != epoch) {
      c.read_epoch = epoch;
      c.read_index = step.index;
      c.read_wave = wave;
      c.read_bytes = use.bytes;
    } else {
      if (c.read_wave != wave) c.read_wave = several_waves;
      c.read_bytes |= use.bytes;
    }
  }

  // LDS-DMA.
  void fill(const Step& step, const Access& access, std::uint64_t id) {
    std::size_t slot = 0;
    while (slot < arriving_.size() && arriving_[slot].used) ++slot;
    if (slot == arriving_.size()) arriving_.emplace_back();
    Use use;
    use.write = use.dma = true;
    std::vector<std::uint32_t> addresses;
    for (std::uint64_t m = access.dma; m != 0; m &= m - 1) {
      use.lane = std::countr_zero(m);
      for_dwords(access.address[1][use.lane], 4, [&](std::uint32_t dword, std::uint8_t bytes) {
        use.address = dword * 4;
        use.bytes = bytes;
        touch(step, use);
        shadow_.cells[dword].arriving = static_cast<std::uint16_t>(slot + 1);
        addresses.push_back(use.address);
      });
    }
    arriving_[slot] = {id,         step.number,
                       step.index, static_cast<std::uint8_t>(step.wave.id_in_group),
                       true,       std::move(addresses)};
  }

  /// Done: from here on an ordinary write of its wave, now.
  void land(const Arriving& a) {
    const auto slot = static_cast<std::uint16_t>(&a - arriving_.data() + 1);
    for (const std::uint32_t address : a.addresses) {
      Cell& c = shadow_.cells[address / 4];
      if (c.arriving != slot) continue;
      c.arriving = 0;
      c.write_epoch = shadow_.epoch;
      c.write_index = a.index;
      c.write_wave = a.wave;
      c.write_bytes = 0xf;
      c.write_atomic = false;
      c.write_dma = true;
    }
  }

  void retire(WaveState& w, const Wave& wave, const Pending& p) {
    if (p.lds_dma) {
      for (Arriving& a : arriving_) {
        if (!a.used || a.id != p.id || a.wave != wave.id_in_group) continue;
        land(a);
        a.used = false;
      }
    } else if (p.unit == Unit::ds) {
      const auto at =
          std::find_if(w.issued.begin(), w.issued.end(), [&p](const Issued& i) { return i.id == p.id; });
      if (at == w.issued.end()) return;
      spare_.push_back(std::move(at->addresses));
      w.issued.erase(at);
    }
  }

  void too_early(const Step& step, const Use& use, const Arriving& a) {
    // A second DMA of the same wave over the first is in order.
    const bool own = a.wave == step.wave.id_in_group;
    if (a.index == said_ || (own && use.dma) || !launch_.wants(Detector::lds_dma)) return;
    said_ = a.index;
    if (!is_new(launch_.context, Detector::lds_dma, step, a.index)) return;
    Hazard h = describe(Detector::lds_dma, step, use, a.index, a.wave);
    const std::string missing = waves_[a.wave].outstanding.missing(a.id);
    h.message =
        fmt::format("LDS is {} before the load that fills it must have arrived; s_waitcnt {}{} is missing",
                    use.write ? "overwritten" : "read", missing,
                    own ? "" : fmt::format(" in wave {} and a barrier", a.wave));
    if (own) h.distance = static_cast<std::int64_t>(step.number - a.number);
    launch_.context.findings.report.add(std::move(h));
  }

  // Unwaited DS instructions.
  void remember(WaveState& w, const Step& step, const Access& access, std::uint64_t id) {
    if (!launch_.wants(Detector::lds_race)) return;
    Issued& i = w.issued.emplace_back();
    if (!spare_.empty()) {
      i.addresses = std::move(spare_.back());
      spare_.pop_back();
      i.addresses.clear();
    }
    i.id = id;
    i.index = step.index;
    i.bytes = access.bytes;
    i.write = access.writes();
    i.atomic = access.shape.kind == AccessKind::atomic;
    i.addresses.reserve(static_cast<std::size_t>(std::popcount(access.lds)) * access.shape.parts);
    for (unsigned part = 0; part < access.shape.parts; ++part)
      for (std::uint64_t m = access.lds; m != 0; m &= m - 1)
        i.addresses.push_back(static_cast<std::uint32_t>(access.address[part][std::countr_zero(m)]));
  }

  void mark_unwaited(const Issued& i, std::uint8_t wave) {
    if (shadow_.unwaited.size() < shadow_.cells.size()) shadow_.unwaited.resize(shadow_.cells.size());
    for (const std::uint32_t address : i.addresses)
      for_dwords(address, i.bytes, [&](std::uint32_t dword, std::uint8_t bytes) {
        Unwaited& u = shadow_.unwaited[dword];
        if (u.epoch == shadow_.epoch && u.write) return;  // a write says more than a read
        u = {shadow_.epoch, i.index, wave, bytes, i.write, i.atomic};
      });
  }

  void behind_barrier(const Step& step, const Use& use) {
    const Unwaited& u = shadow_.unwaited[use.address / 4];
    if (u.epoch != shadow_.epoch || u.wave == step.wave.id_in_group || (u.bytes & use.bytes) == 0) return;
    if (!(u.write || use.write) || (u.atomic && use.atomic)) return;
    if (u.index == said_) return;
    said_ = u.index;
    if (!is_new(launch_.context, Detector::lds_race, step, u.index)) return;
    Hazard h = describe(Detector::lds_race, step, use, u.index, u.wave);
    h.message =
        fmt::format("{}, {} before the barrier in wave {}, which did not wait for lgkmcnt(0)",
                    use.write ? "LDS is overwritten" : "LDS is read", u.write ? "written" : "read", u.wave);
    h.severity = Severity::advisory;
    launch_.context.findings.report.add(std::move(h));
  }

  void race(const Step& step, const Use& use, std::uint32_t index, std::uint8_t wave, bool dma,
            bool with_write) {
    const Detector detector = dma || use.dma ? Detector::lds_dma : Detector::lds_race;
    if (index == said_ || !launch_.wants(detector)) return;
    const bool decide_later = with_write && use.write && !use.dma;
    if (decide_later && !suspects_.dwords.empty()) {
      if (suspects_.with == index) suspects_.dwords.push_back({use.address, dword_at(use.address)});
      return;
    }
    if (!decide_later) said_ = index;
    if (!decide_later && !is_new(launch_.context, detector, step, index)) return;
    Hazard h = describe(detector, step, use, index, wave);
    if (wave == several_waves) h.other_wave = -1;
    h.message =
        fmt::format("LDS is {} and, with no barrier in between, {} by {}", use.write ? "written" : "read",
                    with_write ? "written" : "read",
                    wave == several_waves ? std::string("other waves") : fmt::format("wave {}", wave));
    if (!decide_later) {
      launch_.context.findings.report.add(std::move(h));
      return;
    }
    suspects_.dwords.push_back({use.address, dword_at(use.address)});
    suspects_.with = index;
    suspects_.hazard = std::move(h);
  }

  [[nodiscard]] std::uint32_t dword_at(std::uint32_t address) const {
    std::uint32_t value = 0;
    std::memcpy(&value, group_.lds + address, std::min<std::size_t>(4, group_.lds_bytes - address));
    return value;
  }

  [[nodiscard]] Hazard describe(Detector detector, const Step& step, const Use& use, std::uint32_t with,
                                std::uint8_t wave) const {
    Hazard h = hazard_at(launch_.context, detector, step, with);
    h.rank = 1;
    h.lane = use.lane;
    h.other_wave = wave == step.wave.id_in_group ? -1 : wave;
    h.buffer = "LDS";
    h.offset = use.address + static_cast<std::uint32_t>(std::countr_zero(use.bytes));
    return h;
  }

  Launch& launch_;
  Workgroup& group_;
  Shadow shadow_;
  std::vector<WaveState> waves_;
  std::vector<Arriving> arriving_;
  std::vector<std::vector<std::uint32_t>> spare_;  ///< storage of Issued::addresses, used again
  Suspects suspects_;
  std::uint32_t said_ =
      no_index;  ///< the other instruction of the last race of this one: one dword of it says enough
};

std::unique_ptr<Observer> Launch::observe(Workgroup& group, std::uint64_t) {
  return std::make_unique<Group>(*this, group);
}

}  // namespace

std::unique_ptr<LaunchObserver> check_lds(const LaunchContext& launch, bool races, bool dma) {
  return std::make_unique<Launch>(launch, races, dma);
}

}  // namespace attest::device::sim::detect
