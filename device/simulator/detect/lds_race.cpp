// SPDX-License-Identifier: MIT
#include "device/simulator/detect/lds_race.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "device/simulator/core/workgroup.h"
#include "device/simulator/detect/hazard_at.h"
#include "device/simulator/detect/outstanding.h"
#include "device/simulator/exec/memory_lanes.h"

namespace attest::device::sim::detect {
namespace {

/// What LDS instructions move at once where it matters; also aligned to that.
constexpr std::uint32_t block_bytes = 16;
constexpr std::uint32_t several_waves = 31;

/// A dword that no LDS-DMA fills alone: M0 need be no multiple of 4.
constexpr std::uint16_t in_parts = 0xffff;

/// Who and when: the epoch, and the wave (at most 16 to a workgroup) or several_waves. 0: never.
using Tag = std::uint32_t;
constexpr unsigned wave_bits = 5;
constexpr std::uint32_t last_epoch = (std::uint32_t{1} << (32 - wave_bits)) - 1;
constexpr Tag tag(std::uint32_t epoch, std::uint32_t wave) {
  return epoch << wave_bits | wave;
}
constexpr std::uint32_t wave_of(Tag t) {
  return t & several_waves;
}
/// Two tags of one epoch and different waves, by their exclusive or.
constexpr bool clashes(Tag difference) {
  return difference - 1 < several_waves;
}

struct Stamp {
  Tag by = 0;
  std::uint32_t index : 24 = 0;  ///< of the instruction
  std::uint32_t bytes : 4 = 0;   ///< of the dword
  std::uint32_t atomic : 1 = 0, dma : 1 = 0;
};

struct Cell {
  Stamp write, read;
};

/// A DS instruction that entered a barrier unwaited, as a mark on a dword for the epoch behind that barrier.
struct Unwaited {
  std::uint32_t epoch = 0, index = 0;
  std::uint8_t wave = 0, bytes = 0;
  bool write = false, atomic = false;
};

/// What one workgroup's LDS remembers. Epochs go on counting from workgroup to workgroup, so nothing needs
/// clearing.
struct Shadow {
  /// Of each 16 bytes: what is true of each of their dwords, all bytes of them. Once the dwords go their own
  /// ways, both tags say several_waves in this epoch, which clashes with every wave.
  std::vector<Cell> blocks;
  std::vector<Cell> cells;  ///< [4 * blocks] or empty, valid while the block is split
  /// [4 * blocks] 1 + slot of an LDS-DMA that is not done, or in_parts
  std::vector<std::uint16_t> arriving;
  std::vector<Unwaited> unwaited;  ///< empty until the first
  std::uint32_t epoch = 0;
  std::uint32_t unwaited_epoch = 0;  ///< the last that has such marks
};

struct Issued {  ///< a DS instruction that may not be done
  std::uint64_t id = 0;
  std::uint32_t index = 0;
  std::uint32_t bytes = 0;
  bool write = false, atomic = false;
  std::vector<std::uint32_t> addresses;  ///< of each access of so many bytes
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
  Launch(const LaunchContext& launch, bool races, bool dma)
      : context(launch),
        races_(races),
        dma_(dma),
        fills_(std::any_of(launch.analysis.effects.begin(), launch.analysis.effects.end(),
                           [](const Effects& e) { return e.lds_dma; })) {}
  std::unique_ptr<Observer> observe(Workgroup& group, std::uint64_t linear_id) override;
  [[nodiscard]] Interest interest(std::uint32_t index) const override {
    const Effects& e = context.analysis.effects[index];
    const AccessShape& shape = context.analysis.access[index];
    const bool to_lds = shape.touches_memory() && (shape.space == Space::lds || shape.space == Space::flat);
    // Loads of registers matter only where LDS-DMA waits for the same counter.
    const bool counted = (e.vmcnt && (fills_ || to_lds)) || e.lgkmcnt != 0 ||
                         context.view.program.code()[index].instruction.op == Op::s_waitcnt;
    return {.before = counted ? when::always : when::never,
            .after = to_lds && shape.kind != AccessKind::load,
            .access = to_lds || shape.lds_dma};
  }
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
  bool fills_;  ///< the program has LDS-DMA
  std::vector<Shadow> idle_;
};

class Group final : public Observer {
 public:
  Group(Launch& launch, Workgroup& group)
      : launch_(launch), group_(group), shadow_(launch.take()), waves_(group.wave_count) {
    const std::size_t blocks = (std::size_t{group.lds_bytes} + block_bytes - 1) / block_bytes;
    if (shadow_.blocks.size() < blocks) {
      shadow_.blocks.resize(blocks);
      shadow_.cells.clear();
      shadow_.arriving.resize(4 * blocks);
    }
    next_epoch();
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
        w.outstanding.issue(launch_.context.analysis.pending[step.index], step.number, 0, done);
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
    next_epoch();
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

  void next_epoch() {
    if (shadow_.epoch == last_epoch) {
      shadow_.epoch = shadow_.unwaited_epoch = 0;
      std::fill(shadow_.blocks.begin(), shadow_.blocks.end(), Cell());
      std::fill(shadow_.unwaited.begin(), shadow_.unwaited.end(), Unwaited());
    }
    ++shadow_.epoch;
  }

  void touch_all(const Step& step, const Access& access) {
    Use use;
    use.write = access.writes();
    use.atomic = access.shape.kind == AccessKind::atomic;
    // Nothing may be on its way into LDS or unwaited from before the barrier: touch() asks about those.
    const bool blocks = group_.lds_bytes >= block_bytes && !use.atomic && arrivals_ == 0 &&
                        shadow_.unwaited_epoch != shadow_.epoch;
    for (unsigned part = 0; part < access.shape.parts; ++part) {
      const std::uint64_t* address = access.address[part];
      std::uint64_t mask = access.lds;
      // What one lane of a wave leaves, another that does the same there leaves as it is.
      if (access.layout[part] == Layout::same) mask &= -mask;
      if (blocks && access.bytes == block_bytes)
        mask = use.write ? touch_blocks<true>(step, address, mask) : touch_blocks<false>(step, address, mask);
      else if (blocks && access.layout[part] == Layout::consecutive)
        mask = use.write ? touch_range<true>(step, access, part) : touch_range<false>(step, access, part);
      touch_lanes(step, access, use, part, mask);
    }
  }

  /// The same for lanes whose bytes follow each other and make up whole blocks together.
  template <bool write>
  std::uint64_t touch_range(const Step& step, const Access& access, unsigned part) {
    const std::uint64_t mask = access.lds, start = access.address[part][std::countr_zero(mask)];
    const int first = std::countr_zero(mask), count = std::popcount(mask);
    if (!without_gaps(mask) || start % block_bytes != 0 || block_bytes % access.bytes != 0 ||
        start > group_.lds_bytes)
      return mask;
    const int together = static_cast<int>(block_bytes / access.bytes);
    const auto room = static_cast<int>((group_.lds_bytes - start) / block_bytes);
    const int whole = std::min(count / together, room);
    const Stamp now = stamp(step, {.bytes = 0xf});
    const std::uint64_t lanes_of_one = (std::uint64_t{1} << together) - 1;
    Cell* block = shadow_.blocks.data() + start / block_bytes;
    std::uint64_t others = mask;
    for (int k = 0; k < whole; ++k, ++block)
      if (touch_block<write>(*block, now)) others &= ~(lanes_of_one << (first + k * together));
    return others;
  }
  /// @return false: it races or is split, and nothing was remembered
  template <bool write>
  static bool touch_block(Cell& b, const Stamp& now) {
    const Tag read = b.read.by ^ now.by;
    if (clashes(b.write.by ^ now.by) || (write && clashes(read))) [[unlikely]]
      return false;
    if (write) {
      b.write = now;
    } else if (read > several_waves) {
      b.read = now;
    } else if (read != 0) {
      b.read.by |= several_waves;
    }
    return true;
  }

  /// Remembers that whole blocks are read or written, where that is all there is to it. @return the other
  /// lanes, of which nothing was touched. (Lanes that race with nobody can go before those that do.)
  template <bool write>
  std::uint64_t touch_blocks(const Step& step, const std::uint64_t* address, std::uint64_t mask) {
    const Stamp now = stamp(step, {.bytes = 0xf});
    const std::uint64_t last = group_.lds_bytes - block_bytes;
    Cell* const blocks = shadow_.blocks.data();
    std::uint64_t outside = 0, unaligned = 0, others = 0;
    const auto lane = [&](int l) {
      if (!touch_block<write>(blocks[address[l] / block_bytes], now)) others |= std::uint64_t{1} << l;
    };
    const auto look = [&](int l) {
      outside |= last - address[l];  // addresses have 32 bits: negative when there
      unaligned |= address[l];
    };
    for_each_lane(mask, look);
    if (unaligned % block_bytes != 0 || outside >> 63 != 0) return mask;
    for_each_lane(mask, lane);
    return others;
  }

  /// Remembers whole dwords that race with nobody. @return the other lanes, of which nothing was touched.
  std::uint64_t touch_dwords(const std::uint64_t* address, const Stamp& whole, const Use& use,
                             std::uint64_t mask) {
    if (group_.lds_bytes < 4) return mask;
    if (shadow_.cells.empty()) shadow_.cells.resize(4 * shadow_.blocks.size());
    const std::uint64_t last = group_.lds_bytes - 4;
    const Tag split = tag(shadow_.epoch, several_waves);
    const Cell* const blocks = shadow_.blocks.data();
    Cell* const cells = shadow_.cells.data();
    std::uint64_t others = 0;
    for (std::uint64_t m = mask; m != 0; m &= m - 1) {
      const std::uint64_t at = address[std::countr_zero(m)];
      if (at % 4 != 0 || at > last) {
        others |= m & -m;
        continue;
      }
      const auto dword = static_cast<std::uint32_t>(at / 4);
      Cell& c = blocks[dword / 4].write.by == split ? cells[dword] : cell(dword);
      if (clash(c, whole, use)) [[unlikely]]
        others |= m & -m;
      else
        leave(c, whole, use);
    }
    return others;
  }

  void touch_lanes(const Step& step, const Access& access, Use& use, unsigned part, std::uint64_t mask) {
    use.bytes = 0xf;
    const Stamp whole = stamp(step, use);
    const bool quiet = arrivals_ == 0 && shadow_.unwaited_epoch != shadow_.epoch;
    if (quiet && access.bytes == 4) mask = touch_dwords(access.address[part], whole, use, mask);
    for (std::uint64_t m = mask; m != 0; m &= m - 1) {
      use.lane = std::countr_zero(m);
      const std::uint64_t address = access.address[part][use.lane];
      if ((address | access.bytes) % 4 == 0 && address + access.bytes <= group_.lds_bytes) {
        use.bytes = 0xf;
        for (std::uint32_t k = 0; k < access.bytes; k += 4) {
          use.address = static_cast<std::uint32_t>(address) + k;
          if (quiet) {
            Cell& c = cell(use.address / 4);
            if (!clash(c, whole, use)) {
              leave(c, whole, use);
              continue;
            }
          }
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

  [[nodiscard]] Stamp stamp(const Step& step, const Use& use) const {
    Stamp s;
    s.by = tag(shadow_.epoch, step.wave.id_in_group);
    s.index = step.index & 0xffffff;
    s.bytes = use.bytes & 0xf;
    s.atomic = use.atomic ? 1 : 0;
    s.dma = use.dma ? 1 : 0;
    return s;
  }

  /// What is remembered of one dword, apart from its block from now on.
  Cell& cell(std::uint32_t dword) {
    Cell& b = shadow_.blocks[dword / 4];
    if (shadow_.cells.empty()) shadow_.cells.resize(4 * shadow_.blocks.size());
    Cell* first = &shadow_.cells[dword / 4 * std::size_t{4}];
    if (const Tag split = tag(shadow_.epoch, several_waves); b.write.by != split) {
      std::fill_n(first, 4, b);
      b.write.by = b.read.by = split;
    }
    return first[dword % 4];
  }

  void touch(const Step& step, const Use& use) {
    Cell& c = cell(use.address / 4);
    const Stamp now = stamp(step, use);
    if (arrivals_ != 0) [[unlikely]] {
      if (const std::uint16_t slot = shadow_.arriving[use.address / 4]; slot == in_parts)
        too_early_in_part(step, use);
      else if (slot != 0)
        too_early(step, use, arriving_[slot - 1u]);
    }
    if (clashes(c.write.by ^ now.by) && (c.write.bytes & use.bytes) != 0 && !(use.atomic && c.write.atomic))
        [[unlikely]]
      race(step, use, c.write, /*with_write=*/true);
    if (use.write && clashes(c.read.by ^ now.by) && (c.read.bytes & use.bytes) != 0) [[unlikely]]
      race(step, use, c.read, /*with_write=*/false);
    if (shadow_.unwaited_epoch == shadow_.epoch) [[unlikely]]
      behind_barrier(step, use);
    leave(c, now, use);
  }

  /// Whether `now` races with one of what the dword remembers.
  static bool clash(const Cell& c, const Stamp& now, const Use& use) {
    return (clashes(c.write.by ^ now.by) && (c.write.bytes & use.bytes) != 0 &&
            !(use.atomic && c.write.atomic)) ||
           (use.write && clashes(c.read.by ^ now.by) && (c.read.bytes & use.bytes) != 0);
  }
  /// Remembers it.
  static void leave(Cell& c, const Stamp& now, const Use& use) {
    if (use.write) {
      const std::uint32_t before = c.write.by == now.by ? c.write.bytes : 0;
      c.write = now;
      c.write.bytes |= before & 0xf;
    } else if (const Tag difference = c.read.by ^ now.by; difference > several_waves) {
      c.read = now;
    } else {
      if (difference != 0) c.read.by |= several_waves;
      c.read.bytes |= now.bytes;
    }
  }

  // LDS-DMA.
  void fill(const Step& step, const Access& access, std::uint64_t id) {
    std::size_t slot = 0;
    while (slot < arriving_.size() && arriving_[slot].used) ++slot;
    if (slot == arriving_.size()) arriving_.emplace_back();
    ++arrivals_;
    Use use;
    use.write = use.dma = true;
    std::vector<std::uint32_t> addresses;
    for (std::uint64_t m = access.dma; m != 0; m &= m - 1) {
      use.lane = std::countr_zero(m);
      for_dwords(access.address[1][use.lane], 4, [&](std::uint32_t dword, std::uint8_t bytes) {
        use.address = dword * 4;
        use.bytes = bytes;
        touch(step, use);
        claim(dword, bytes, static_cast<std::uint16_t>(slot + 1));
        addresses.push_back(use.address);
      });
    }
    arriving_[slot] = {id,         step.number,
                       step.index, static_cast<std::uint8_t>(step.wave.id_in_group),
                       true,       std::move(addresses)};
  }

  void claim(std::uint32_t dword, std::uint8_t bytes, std::uint16_t slot) {
    std::uint16_t& at = shadow_.arriving[dword];
    if (bytes != 0xf) {
      auto& byte = parts_[dword];
      if (at != in_parts) byte.fill(at);
      for (unsigned b = 0; b < 4; ++b)
        if ((bytes >> b & 1) != 0) byte[b] = slot;
      at = in_parts;
      if (byte[0] != byte[1] || byte[0] != byte[2] || byte[0] != byte[3]) return;
    }
    if (at == in_parts) parts_.erase(dword);
    at = slot;
  }
  /// @return the bytes of the dword that were on their way.
  std::uint8_t release(std::uint32_t dword, std::uint16_t slot) {
    std::uint16_t& at = shadow_.arriving[dword];
    if (at == slot) {
      at = 0;
      return 0xf;
    }
    if (at != in_parts) return 0;
    auto& byte = parts_[dword];
    std::uint8_t bytes = 0;
    for (unsigned b = 0; b < 4; ++b)
      if (byte[b] == slot) bytes |= static_cast<std::uint8_t>(1u << b);
    for (std::uint16_t& b : byte)
      if (b == slot) b = 0;
    if ((byte[0] | byte[1] | byte[2] | byte[3]) == 0) {
      parts_.erase(dword);
      at = 0;
    }
    return bytes;
  }

  /// Done: from here on an ordinary write of its wave, now.
  void land(const Arriving& a) {
    const auto slot = static_cast<std::uint16_t>(&a - arriving_.data() + 1);
    Stamp write;
    write.by = tag(shadow_.epoch, a.wave);
    write.index = a.index & 0xffffff;
    write.dma = 1;
    for (const std::uint32_t address : a.addresses) {
      write.bytes = release(address / 4, slot) & 0xf;
      if (write.bytes != 0) leave(cell(address / 4), write, {.write = true});
    }
  }

  void retire(WaveState& w, const Wave& wave, const Pending& p) {
    if (p.lds_dma) {
      for (Arriving& a : arriving_) {
        if (!a.used || a.id != p.id || a.wave != wave.id_in_group) continue;
        land(a);
        a.used = false;
        --arrivals_;
      }
    } else if (p.unit == Unit::ds) {
      const auto at =
          std::find_if(w.issued.begin(), w.issued.end(), [&p](const Issued& i) { return i.id == p.id; });
      if (at == w.issued.end()) return;
      spare_.push_back(std::move(at->addresses));
      w.issued.erase(at);
    }
  }

  void too_early_in_part(const Step& step, Use use) {
    const auto& byte = parts_[use.address / 4];
    const std::uint8_t touched = use.bytes;
    for (unsigned b = 0; b < 4; ++b) {
      if ((touched >> b & 1) == 0 || byte[b] == 0) continue;
      use.bytes = static_cast<std::uint8_t>(1u << b);
      too_early(step, use, arriving_[byte[b] - 1u]);
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
    i.write = access.writes();
    i.atomic = access.shape.kind == AccessKind::atomic;
    const bool ranges = access.layout[0] != Layout::scattered &&
                        (access.shape.parts == 1 || access.layout[1] == access.layout[0]);
    i.bytes = ranges ? access.extent(0) : access.bytes;
    for (unsigned part = 0; part < access.shape.parts; ++part) {
      const std::uint64_t* address = access.address[part];
      if (ranges)
        i.addresses.push_back(static_cast<std::uint32_t>(address[std::countr_zero(access.lds)]));
      else if (access.lds == all_lanes)
        i.addresses.insert(i.addresses.end(), address, address + lanes);
      else
        for_each_lane(access.lds,
                      [&](int l) { i.addresses.push_back(static_cast<std::uint32_t>(address[l])); });
    }
  }

  void mark_unwaited(const Issued& i, std::uint8_t wave) {
    if (shadow_.unwaited.size() < shadow_.arriving.size()) shadow_.unwaited.resize(shadow_.arriving.size());
    shadow_.unwaited_epoch = shadow_.epoch;
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

  void race(const Step& step, const Use& use, const Stamp& other, bool with_write) {
    const std::uint32_t index = other.index, wave = wave_of(other.by);
    const bool dma = with_write && other.dma != 0;
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
                                std::uint32_t wave) const {
    Hazard h = hazard_at(launch_.context, detector, step, with);
    h.rank = 1;
    h.lane = use.lane;
    h.other_wave = wave == step.wave.id_in_group ? -1 : static_cast<int>(wave);
    h.buffer = "LDS";
    h.offset = use.address + static_cast<std::uint32_t>(std::countr_zero(use.bytes));
    return h;
  }

  Launch& launch_;
  Workgroup& group_;
  Shadow shadow_;
  std::vector<WaveState> waves_;
  std::vector<Arriving> arriving_;
  std::uint32_t arrivals_ = 0;  ///< of these, in use
  /// By dword that is in_parts: of each byte, what `arriving` says of others.
  std::map<std::uint32_t, std::array<std::uint16_t, 4>> parts_;
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
