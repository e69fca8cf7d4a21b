// SPDX-License-Identifier: MIT
//
// What is remembered. Inputs are by far most of the traffic: they are only read, mostly once, a row of a
// cache by one wave, and nobody ever asks about them. So a page of memory starts with a list of the ranges
// that were read, in order. When the list is full, or something is written to the page, it is played back
// into a reader per dword (the last one, or "several workgroups") and a writer per dword, as if these had
// been there from the beginning. The dwords of a page were touched by few: each holds an index into a palette
// of those. A page that is only listed costs half its size, one with readers and writers twice.
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
#include "device/simulator/detect/per_dword.h"

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
  bool operator==(const Reader&) const = default;
};

struct Writer {
  std::uint32_t group = nobody;
  std::uint32_t who = 0;
  std::uint32_t epoch = 0;
  std::uint16_t time = 0;  ///< of the group's own clock, saturating
  std::uint8_t bytes = 0;
  bool atomic = false;
  bool operator==(const Writer&) const = default;
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
      const std::size_t behind = std::size_t{last.first} + last.count;
      if (first >= last.first && first <= behind && last.by.group == by.group && last.by.who == by.who &&
          last.by.epoch == by.epoch) {
        last.count = static_cast<std::uint16_t>(std::max(behind, first + count) - last.first);
        return;
      }
    }
    if (listed == most_listed) {
      play_back();
      note(by, first, first + count);
      return;
    }
    ranges[listed++] = {by, static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(count)};
  }
  void play_back() {
    if (has_readers) return;
    has_readers = true;
    if (dwords == nullptr) dwords = std::make_unique<Dwords>();
    dwords->readers.clear();
    for (std::size_t n = 0; n < listed; ++n)
      note(ranges[n].by, ranges[n].first, std::size_t{ranges[n].first} + ranges[n].count);
  }
  [[gnu::always_inline]] void read(const Reader& by, std::size_t first, std::size_t behind) {
    if (!has_readers) return list(by, first, behind - first);
    if (behind - first != 1 || !knows(dwords->readers[first], by)) note(by, first, behind);
  }
  /// Whether note_reader(r, by) would leave r as it is.
  static bool knows(const Reader& r, const Reader& by) {
    if (r.group == several) return true;
    return r.group == by.group && r.epoch == by.epoch && ((r.who ^ by.who) >> 24 == 0 || r.who >> 24 == 0xff);
  }
  /// Dwords [first, behind) are read.
  void note(const Reader& by, std::size_t first, std::size_t behind) {
    dwords->readers.change(first, behind, [&by](Reader r) {
      note_reader(r, by);
      return r;
    });
  }

  void open_for_writing() {
    if (has_writers) return;
    play_back();
    has_writers = true;
    dwords->writers.clear();
  }

  void forget() {
    listed = 0;
    has_readers = has_writers = false;
  }

  struct Dwords {
    PerDword<Reader, page_dwords> readers;
    PerDword<Writer, page_dwords> writers;
  };
  std::size_t listed = 0;
  bool has_readers = false;  ///< else: what is listed
  bool has_writers = false;  ///< never without readers
  std::unique_ptr<Dwords> dwords;
  std::array<ReadRange, most_listed> ranges;
};

}  // namespace

/// The pages of a launch by number, in a table of its own: open addressing, never more than half full. Their
/// storage is used again by the next launch.
class GlobalPages {
 public:
  /// nullptr: there are `most_pages` already, and this is none of them.
  Page* at(std::uint64_t number) {
    if (2 * used_ >= slots_.size()) grow();
    Slot& slot = find(number);
    if (slot.page != nullptr) return slot.page;
    if (used_ == most_pages) return nullptr;
    slot = {number, fresh()};
    return slot.page;
  }
  /// What is remembered, not the storage, unless that is large.
  void forget() {
    if (chunks_.size() * chunk_pages > most_kept) {
      chunks_.clear();
      slots_.clear();
    }
    for (std::size_t n = 0; n < std::min(used_, chunks_.size() * chunk_pages); ++n)
      chunks_[n / chunk_pages][n % chunk_pages].forget();
    std::fill(slots_.begin(), slots_.end(), Slot());
    used_ = 0;
  }

 private:
  static constexpr std::size_t chunk_pages = 64, most_kept = 4096;
  struct Slot {
    std::uint64_t number = 0;
    Page* page = nullptr;
  };

  Page* fresh() {
    if (used_ == chunks_.size() * chunk_pages) chunks_.push_back(std::make_unique<Page[]>(chunk_pages));
    Page* page = &chunks_[used_ / chunk_pages][used_ % chunk_pages];
    ++used_;
    return page;
  }
  Slot& find(std::uint64_t number) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t k = (number * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (slots_[k].page != nullptr && slots_[k].number != number) k = (k + 1) & mask;
    return slots_[k];
  }
  void grow() {
    std::vector<Slot> old(std::max<std::size_t>(1024, 2 * slots_.size()));
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.page != nullptr) find(slot.number) = slot;
  }

  std::vector<Slot> slots_;  ///< a power of two
  std::vector<std::unique_ptr<Page[]>> chunks_;
  std::size_t used_ = 0;
};

std::shared_ptr<GlobalPages> make_global_pages() {
  return std::make_shared<GlobalPages>();
}

namespace {

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
  Launch(const LaunchContext& launch, GlobalPages& pages)
      : context(launch), communicates(launch.view.program.communicates()), pages_(pages) {}
  ~Launch() override { pages_.forget(); }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  std::unique_ptr<Observer> observe(Workgroup& group, std::uint64_t linear_id) override;
  [[nodiscard]] Interest interest(std::uint32_t index) const override {
    const AccessShape& shape = context.analysis.access[index];
    const bool global =
        shape.touches_memory() && (shape.space == Space::global || shape.space == Space::flat);
    return {.before = global ? when::always : when::never, .after = global && shape.kind != AccessKind::load};
  }
  void end() override {
    for (auto& [pair, hazard] : harmless) context.findings.report.add(std::move(hazard));
    harmless.clear();
  }

  Page* page_of(std::uint64_t address) {
    const std::uint64_t number = address / page_bytes;
    Recent& recent = recent_[number % recent_.size()];
    if (recent.number == number) return recent.page;
    Page* page = pages_.at(number);
    if (page != nullptr) recent = {number, page};
    return page;
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
  GlobalPages& pages_;
  std::array<Recent, 256> recent_;
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
    if (access.shortened != 0 || use.atomic)
      touch_lanes(step, use, access, access.global);
    else
      touch_runs(step, use, access);
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
  /// Consecutive lanes whose bytes follow each other, or are the same.
  struct Run {
    std::uint64_t start = 0, end = 0;
    std::uint64_t lanes = 0;
    std::uint64_t pages = 0;  ///< that it lies in
    Page* page[2] = {};       ///< the first of these
  };
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

  void touch_lanes(const Step& step, Use use, const Access& access, std::uint64_t mask) {
    for (std::uint64_t m = mask; m != 0; m &= m - 1) {
      use.lane = std::countr_zero(m);
      touch(step, use, access.address[0][use.lane], access.bytes_of(use.lane));
    }
  }

  /// Lanes whose bytes follow each other or are the same, all at once, where nobody has written what they read or touched
  /// what they write.
  void touch_runs(const Step& step, const Use& use, const Access& access) {
    const std::uint64_t* address = access.address[0];
    int runs = 0;
    std::uint64_t latest = ~std::uint64_t{0};
    Page* latest_page = nullptr;
    for (std::uint64_t m = access.global; m != 0;) {
      Run& run = runs_[runs++];
      run.start = address[std::countr_zero(m)];
      std::uint64_t end = run.start + access.bytes, rest = m & (m - 1);
      if (access.layout[0] != Layout::scattered) {
        end = run.start + access.extent(0);
        rest = 0;
      }
      for (; rest != 0; rest &= rest - 1) {
        const std::uint64_t next = address[std::countr_zero(rest)];
        if (next == end)
          end += access.bytes;
        else if (next + access.bytes != end)
          break;
      }
      run.end = end;
      run.lanes = m & ~rest;
      m = rest;
      if (use.write) continue;
      // Pages are scattered, and most are met for the first time in a while: fetched all at once.
      const std::uint64_t first_page = run.start / page_bytes, last_page = (end - 1) / page_bytes;
      run.pages = last_page - first_page + 1;
      for (std::uint64_t n = 0; n < std::min<std::uint64_t>(run.pages, 2); ++n) {
        if (first_page + n != latest) {
          latest = first_page + n;
          latest_page = launch_.page_of(latest * page_bytes);
          __builtin_prefetch(latest_page);
        }
        run.page[n] = latest_page;
      }
    }
    for (int k = 0; k < runs; ++k) {
      const Run& run = runs_[k];
      const bool done = use.write ? write_run(step, run.start, run.end) : read_run(step, run);
      if (!done) touch_lanes(step, use, access, run.lanes);
    }
  }

  /// @return false: somebody wrote to one of the pages, and nothing was remembered
  bool read_run(const Step& step, const Run& run) {
    const std::uint64_t start = run.start, end = run.end, first_page = start / page_bytes;
    if (run.pages > 2) return false;  // of 64 times 16 bytes: only from addresses that wrap
    for (std::uint64_t n = 0; n < run.pages; ++n)
      if (run.page[n] != nullptr && run.page[n]->has_writers) return false;
    const Reader by{me_, pack(step.wave.id_in_group, step.index), epoch_};
    if (run.pages == 1) {
      if (run.page[0] != nullptr)
        run.page[0]->read(by, start % page_bytes / 4, (end - 1) % page_bytes / 4 + 1);
      return true;
    }
    for (std::uint64_t n = first_page; n < first_page + run.pages; ++n) {
      Page* page = run.page[n - first_page];
      if (page == nullptr) continue;
      const std::uint64_t base = n * page_bytes;
      const std::size_t first = (std::max(start, base) - base) / 4,
                        behind = (std::min(end, base + page_bytes) - base + 3) / 4;
      page->read(by, first, behind);
    }
    return true;
  }

  /// @return false: not that simple, and nothing was remembered
  bool write_run(const Step& step, std::uint64_t start, std::uint64_t end) {
    const std::uint64_t base = start / page_bytes * page_bytes;
    if ((start | end) % 4 != 0 || end - base > page_bytes) return false;
    Page* page = launch_.page_of(start);
    if (page == nullptr) return true;
    const std::size_t first = (start - base) / 4, behind = (end - base) / 4;
    page->open_for_writing();
    const std::uint32_t wave = step.wave.id_in_group;
    bool alone = true;
    for (std::size_t k = first; k < behind; ++k) {
      const Writer& w = page->dwords->writers[k];
      const Reader& r = page->dwords->readers[k];
      alone = alone &&
              (w.group == nobody || (w.group == me_ && (w.epoch != epoch_ || w.who >> 24 == wave))) &&
              (r.group == nobody || (r.group == me_ && (r.epoch != epoch_ || r.who >> 24 == wave)));
    }
    if (!alone) return false;
    const Writer now{me_, pack(wave, step.index), epoch_, time_, 0xf, false};
    page->dwords->writers.change(first, behind, [&now](const Writer&) { return now; });
    return true;
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
      if (!use.write && !page->has_writers) {
        const std::size_t first = address % page_bytes / 4, behind = (address % page_bytes + in_page + 3) / 4;
        const Reader by{me_, who, epoch_};
        if (page->has_readers)
          page->note(by, first, behind);
        else
          page->list(by, first, behind - first);
        address += in_page;
        continue;
      }
      if (use.write) page->open_for_writing();
      for (const std::uint64_t end = address + in_page; address < end;) {
        const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(4 - address % 4, end - address));
        const std::size_t dword = address % page_bytes / 4;
        use.address = address & ~std::uint64_t{3};
        use.bytes = static_cast<std::uint8_t>(((1u << part) - 1) << address % 4);
        if (page->has_writers) after_writer(step, use, page->dwords->writers[dword]);
        if (use.write)
          write(step, use, *page, dword, who);
        else
          page->note({me_, who, epoch_}, dword, dword + 1);
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
    const Reader& r = page.dwords->readers[dword];
    if (!use.atomic && r.group != nobody) {
      // Which workgroups read is not kept in full, so a kernel that orders its workgroups is given the
      // benefit.
      if (r.group != me_) {
        if (!launch_.communicates) race(step, use, r.group, r.who, false);
      } else if (r.epoch == epoch_ && r.who >> 24 != step.wave.id_in_group) {
        race(step, use, r.group, r.who, false);
      }
    }
    page.dwords->writers.change(dword, dword + 1, [&](const Writer& w) {
      const bool same = w.group == me_ && w.epoch == epoch_ && w.who >> 24 == who >> 24;
      const auto bytes = static_cast<std::uint8_t>(same ? w.bytes | use.bytes : use.bytes);
      return Writer{me_, who, epoch_, time_, bytes, use.atomic};
    });
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
  Run runs_[lanes];
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

std::unique_ptr<LaunchObserver> check_global(const LaunchContext& launch, GlobalPages& pages) {
  return std::make_unique<Launch>(launch, pages);
}

}  // namespace attest::device::sim::detect
