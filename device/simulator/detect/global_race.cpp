// SPDX-License-Identifier: MIT
//
// What is remembered. Inputs are by far most of the traffic: they are only read, mostly once, a row of a
// cache by one wave, and nobody ever asks about them. So a page of memory starts with a list of the ranges
// that were read, in order. When the list is full, or something is written to the page, it is played back
// into a reader per dword (12 bytes: the last one, or "several workgroups"), as if it had been there from the
// beginning; a page that is written to gets writers as well. A page that is only listed costs half its size,
// one with readers three times, one with writers seven times.
#include "device/simulator/detect/global_race.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/simulator/core/memory.h"
#include "device/simulator/core/workgroup.h"
#include "device/simulator/detect/hazard_at.h"

namespace attest::device::sim::detect {
namespace {

constexpr std::uint64_t page_bytes = 1024;  // about a row of a KV cache: rows are scattered
constexpr std::size_t page_dwords = page_bytes / 4;
/// Beyond so many pages nothing new is remembered: 128 MiB of memory touched in one launch.
constexpr std::size_t most_pages = 128 * 1024;
constexpr std::uint32_t nobody = 0xffffffff, several = 0xfffffffe;

struct Reader {
  std::uint32_t group = nobody;
  std::uint32_t who = 0;    ///< wave in bits 31:24 (0xff: several), instruction in 23:0
  std::uint32_t epoch = 0;  ///< of the group
};

struct Writer {
  std::uint32_t group = nobody;
  std::uint32_t who = 0;
  std::uint32_t epoch = 0;
  std::uint16_t time = 0;  ///< of the group's own clock, saturating
  std::uint8_t bytes = 0;
  bool atomic = false;
};

/// Remembers a reader of a dword.
void note_reader(Reader& r, const Reader& now) {
  if (r.group == nobody || (r.group == now.group && r.epoch != now.epoch)) {
    r = now;
  } else if (r.group != now.group) {
    r.group = several;
  } else if ((r.who ^ now.who) >> 24 != 0) {
    r.who |= 0xffu << 24;
  }
}

/// Dwords [first, first + count) of a page were read.
struct ReadRange {
  Reader by;
  std::uint16_t first = 0, count = 0;
};

struct Page {
  static constexpr std::size_t most_listed = 32;

  void list(const Reader& by, std::size_t first, std::size_t count) {
    if (listed != 0) {
      ReadRange& last = ranges[listed - 1];
      if (last.first + last.count == static_cast<int>(first) && last.by.group == by.group &&
          last.by.who == by.who && last.by.epoch == by.epoch) {
        last.count = static_cast<std::uint16_t>(last.count + count);
        return;
      }
    }
    if (listed == most_listed) {
      play_back();
      for (std::size_t k = first; k < first + count; ++k) note_reader(readers[k], by);
      return;
    }
    ranges[listed++] = {by, static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(count)};
  }
  void play_back() {
    if (!readers.empty()) return;
    readers.resize(page_dwords);
    for (std::size_t n = 0; n < listed; ++n)
      for (std::size_t k = ranges[n].first; k < std::size_t{ranges[n].first} + ranges[n].count; ++k)
        note_reader(readers[k], ranges[n].by);
  }

  std::size_t listed = 0;
  std::array<ReadRange, most_listed> ranges;
  std::vector<Reader> readers;  ///< [page_dwords], or empty: what is listed
  std::vector<Writer> writers;  ///< [page_dwords] or empty; never without readers
};

constexpr std::uint32_t pack(std::uint32_t wave, std::uint32_t index) {
  return wave << 24 | (index & 0xffffff);
}

/// How much of each workgroup's past somebody knows.
using Clock = std::unordered_map<std::uint32_t, std::uint16_t>;

void join(Clock& into, const Clock& other) {
  for (const auto& [group, time] : other) {
    std::uint16_t& known = into[group];
    known = std::max(known, time);
  }
}

struct Use {
  std::uint64_t address = 0;  ///< of the dword
  std::uint8_t bytes = 0;
  bool write = false, atomic = false;
  int lane = 0;
};

class Launch final : public LaunchObserver {
 public:
  explicit Launch(const LaunchContext& launch)
      : context(launch), communicates(launch.view.program.communicates()) {}
  std::unique_ptr<Observer> observe(Workgroup& group, std::uint64_t linear_id) override;
  void end() override {
    for (auto& [pair, hazard] : harmless) context.findings.report.add(std::move(hazard));
    harmless.clear();
  }

  Page* page_of(std::uint64_t address) {
    const std::uint64_t number = address / page_bytes;
    Recent& recent = recent_[number % recent_.size()];
    if (recent.number == number) return recent.page;
    auto found = pages_.find(number);
    if (found == pages_.end()) {
      if (pages_.size() >= most_pages) return nullptr;
      found = pages_.emplace(number, std::make_unique<Page>()).first;
    }
    recent = {number, found->second.get()};
    return recent.page;
  }

  const LaunchContext& context;
  const bool communicates;
  std::map<std::uint64_t, Clock> clocks;  ///< by the address of an atomic
  std::map<std::pair<std::uint64_t, std::uint64_t>, Hazard> harmless;

 private:
  struct Recent {
    std::uint64_t number = ~std::uint64_t{0};
    Page* page = nullptr;
  };
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::array<Recent, 1024> recent_;
};

class Group final : public Observer {
 public:
  Group(Launch& launch, std::uint64_t linear_id)
      : launch_(launch), me_(static_cast<std::uint32_t>(linear_id)) {}

  bool before(const Step& step) override {
    suspects_.clear();
    said_ = no_index;
    if (step.access == nullptr || step.access->global == 0) return true;
    const Access& access = *step.access;
    Use use;
    use.write = access.writes() && !(step.effects.lds_dma && step.effects.load);
    use.atomic = access.shape.kind == AccessKind::atomic || step.instruction.sc1;
    if (use.atomic && launch_.communicates) synchronise(access);
    for (std::uint64_t m = access.global; m != 0; m &= m - 1) {
      use.lane = std::countr_zero(m);
      touch(step, use, access.address[0][use.lane], access.bytes_of(use.lane));
    }
    return true;
  }

  void after(const Step& step) override {
    if (suspects_.empty()) return;
    const bool harmless = std::all_of(suspects_.begin(), suspects_.end(),
                                      [this](const Suspect& s) { return dword_at(s.address) == s.before; });
    if (harmless) {
      hazard_.severity = Severity::advisory;
      hazard_.message += " (the same values)";
      launch_.harmless.try_emplace({hazard_.at.pc, hazard_.with.pc}, std::move(hazard_));
    } else if (is_new(launch_.context, Detector::global_race, step, suspect_with_)) {
      launch_.context.findings.report.add(std::move(hazard_));
    }
    suspects_.clear();
  }

  void barrier() override { ++epoch_; }

 private:
  struct Suspect {
    std::uint64_t address;
    std::uint32_t before;
  };

  void synchronise(const Access& access) {
    for (std::uint64_t m = access.global; m != 0; m &= m - 1) {
      Clock& at = launch_.clocks[access.address[0][std::countr_zero(m)]];
      join(known_, at);
      known_[me_] = time_;
      at = known_;
    }
    if (time_ != 0xffff) ++time_;
  }

  /// Whether what group `other` did at its `time` lies in this group's past.
  [[nodiscard]] bool ordered(std::uint32_t other, std::uint16_t time) const {
    if (!launch_.communicates) return false;
    const auto found = known_.find(other);
    return found != known_.end() && found->second >= time;
  }

  void touch(const Step& step, Use& use, std::uint64_t address, std::uint32_t bytes) {
    const std::uint32_t who = pack(step.wave.id_in_group, step.index);
    while (bytes != 0) {
      Page* page = launch_.page_of(address);
      const std::uint64_t in_page = std::min<std::uint64_t>(bytes, page_bytes - address % page_bytes);
      bytes -= static_cast<std::uint32_t>(in_page);
      if (page == nullptr) {
        address += in_page;
        continue;
      }
      if (!use.write && page->writers.empty()) {
        const std::size_t first = address % page_bytes / 4, behind = (address % page_bytes + in_page + 3) / 4;
        const Reader by{me_, who, epoch_};
        if (page->readers.empty())
          page->list(by, first, behind - first);
        else
          for (std::size_t k = first; k < behind; ++k) note_reader(page->readers[k], by);
        address += in_page;
        continue;
      }
      if (use.write && page->writers.empty()) {
        page->play_back();
        page->writers.resize(page_dwords);
      }
      for (const std::uint64_t end = address + in_page; address < end;) {
        const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(4 - address % 4, end - address));
        const std::size_t dword = address % page_bytes / 4;
        use.address = address & ~std::uint64_t{3};
        use.bytes = static_cast<std::uint8_t>(((1u << part) - 1) << address % 4);
        if (!page->writers.empty()) after_writer(step, use, page->writers[dword]);
        if (use.write)
          write(step, use, *page, dword, who);
        else
          note_reader(page->readers[dword], {me_, who, epoch_});
        address += part;
      }
    }
  }

  void after_writer(const Step& step, const Use& use, const Writer& w) {
    if (w.group == nobody || (w.bytes & use.bytes) == 0 || (w.atomic && use.atomic)) return;
    if (w.group == me_) {
      if (w.epoch == epoch_ && w.who >> 24 != step.wave.id_in_group) race(step, use, w.group, w.who, true);
    } else if (!ordered(w.group, w.time)) {
      race(step, use, w.group, w.who, true);
    }
  }

  void write(const Step& step, const Use& use, Page& page, std::size_t dword, std::uint32_t who) {
    Reader& r = page.readers[dword];
    if (!use.atomic && r.group != nobody) {
      // Which workgroups read is not kept in full, so a kernel that orders its workgroups is given the
      // benefit.
      if (r.group != me_) {
        if (!launch_.communicates) race(step, use, r.group, r.who, false);
      } else if (r.epoch == epoch_ && r.who >> 24 != step.wave.id_in_group) {
        race(step, use, r.group, r.who, false);
      }
    }
    Writer& w = page.writers[dword];
    const bool same = w.group == me_ && w.epoch == epoch_ && w.who >> 24 == who >> 24;
    w = {me_,       who, epoch_, time_, static_cast<std::uint8_t>(same ? w.bytes | use.bytes : use.bytes),
         use.atomic};
  }

  void race(const Step& step, const Use& use, std::uint32_t group, std::uint32_t who, bool with_write) {
    const std::uint32_t with = who & 0xffffff;
    if (with == said_) return;
    const bool decide_later = with_write && use.write && !use.atomic;
    if (decide_later && !suspects_.empty()) {
      if (suspect_with_ == with) suspects_.push_back({use.address, dword_at(use.address)});
      return;
    }
    if (!decide_later) said_ = with;
    if (!decide_later && !is_new(launch_.context, Detector::global_race, step, with)) return;
    Hazard h = hazard_at(launch_.context, Detector::global_race, step, with);
    const char* did = with_write ? "written" : "read";
    if (group == me_) {
      const std::uint32_t wave = who >> 24;
      h.other_wave = wave == 0xff ? -1 : static_cast<int>(wave);
      h.message = fmt::format("memory is {} and, with no barrier in between, {} by another wave",
                              use.write ? "written" : "read", did);
    } else {
      h.message = fmt::format(
          "memory is {} and {} by {}, which nothing orders", use.write ? "written" : "read", did,
          group == several ? std::string("other workgroups") : fmt::format("workgroup {}", group));
    }
    h.rank = 1;
    h.lane = use.lane;
    if (const Region* region = launch_.context.view.memory.find(use.address); region != nullptr) {
      h.buffer = region->name;
      h.offset = use.address + static_cast<std::uint64_t>(std::countr_zero(use.bytes)) - region->base;
    }
    if (!decide_later) {
      launch_.context.findings.report.add(std::move(h));
      return;
    }
    suspects_.push_back({use.address, dword_at(use.address)});
    suspect_with_ = with;
    hazard_ = std::move(h);
  }

  [[nodiscard]] std::uint32_t dword_at(std::uint64_t address) const {
    std::uint32_t value = 0;
    const std::byte* host = launch_.context.view.memory.translate(address, 4);
    if (host != nullptr) std::memcpy(&value, host, 4);
    return value;
  }

  Launch& launch_;
  const std::uint32_t me_;
  std::uint32_t epoch_ = 1;
  std::uint16_t time_ = 1;
  Clock known_;
  std::vector<Suspect> suspects_;
  std::uint32_t suspect_with_ = no_index;
  std::uint32_t said_ =
      no_index;  ///< the other instruction of the last race of this one: one dword of it says enough
  Hazard hazard_;
};

std::unique_ptr<Observer> Launch::observe(Workgroup&, std::uint64_t linear_id) {
  return std::make_unique<Group>(*this, linear_id);
}

}  // namespace

std::unique_ptr<LaunchObserver> check_global(const LaunchContext& launch) {
  return std::make_unique<Launch>(launch);
}

}  // namespace attest::device::sim::detect
