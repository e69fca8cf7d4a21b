// SPDX-License-Identifier: MIT
#include "device/simulator/detect/provenance.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "device/simulator/core/dispatch.h"
#include "device/simulator/core/memory.h"
#include "device/simulator/detect/hazard_at.h"

namespace attest::device::sim::detect {
namespace {

using u64 = std::uint64_t;

std::string register_name(const Wave& wave, std::int32_t row, std::int32_t scalar_code) {
  if (row >= 0) return vector_name(wave, static_cast<unsigned>(row));
  return scalar_code >= 0 ? scalar_name(static_cast<unsigned>(scalar_code)) : std::string();
}

std::uint32_t scalar_bits(const Wave& wave, unsigned code) {
  if (code < 128) return wave.sgpr[code];
  return code == scalar::scc ? wave.scc : wave.mode;
}

/// Makes a Step of what a launch tells, for one observer, and tells the next watch.
class Watch final : public WorkgroupWatch {
 public:
  Watch(const LaunchView& view, const Analysis& analysis, std::unique_ptr<Observer> observer,
        std::unique_ptr<WorkgroupWatch> next)
      : code_(view.program.code()),
        analysis_(analysis),
        observer_(std::move(observer)),
        next_(std::move(next)) {}

  bool before(Wave& wave, std::uint32_t index, u64 number) override {
    if (observer_ != nullptr) {
      const AccessShape& shape = analysis_.access[index];
      const Instruction& instruction = code_[index].instruction;
      if (shape.touches_memory()) locate(wave, instruction, shape, located_);
      now_ = analysis_.effects[index];
      if (depends_on_m0(now_, wave.mode)) now_ = effects_of(instruction, wave.mode, wave.sgpr[operand::m0]);
      observer_->before(step(wave, index, number));
    }
    return next_ == nullptr || next_->before(wave, index, number);
  }
  void after(Wave& wave, std::uint32_t index, u64 number) override {
    if (observer_ != nullptr) observer_->after(step(wave, index, number));
    if (next_ != nullptr) next_->after(wave, index, number);
  }
  void barrier() override {
    if (next_ != nullptr) next_->barrier();
  }
  void end() override {
    if (next_ != nullptr) next_->end();
  }

 private:
  [[nodiscard]] Step step(Wave& wave, std::uint32_t index, u64 number) const {
    return {wave,
            index,
            code_[index].instruction,
            number,
            0,
            now_,
            analysis_.access[index].touches_memory() ? &located_ : nullptr};
  }

  const Bound* code_;
  const Analysis& analysis_;
  std::unique_ptr<Observer> observer_;
  std::unique_ptr<WorkgroupWatch> next_;
  Access located_;
  Effects now_;
};

}  // namespace

/// Looks at every store of a launch.
class Finder final : public Observer {
 public:
  Finder(Provenance& p, const Memory& memory, std::uint32_t launch, u64 group)
      : p_(p), memory_(memory), launch_(launch), group_(group) {}

  bool before(const Step& step) override {
    const Access* a = step.access;
    if (a == nullptr || !a->writes() || a->global == 0) return true;
    bool seen = false;
    for (u64 m = a->global; m != 0; m &= m - 1) {
      const int lane = std::countr_zero(m);
      for (unsigned part = 0; part < a->shape.parts; ++part) {
        const u64 address = a->address[part][lane];
        if (!in_buffer(address)) continue;
        const u64 begin = address - region_->base, end = begin + a->bytes_of(lane);
        const u64 first = std::max(begin, p_.question_.offset);
        const u64 last = std::min(end, p_.question_.offset + p_.question_.bytes);
        if (first >= last || seen) continue;
        seen = true;
        ++p_.times_written_;
        Provenance::Producer producer;
        producer.launch = launch_;
        producer.group = group_;
        producer.number = step.number;
        producer.wave = step.wave.id_in_group;
        producer.index = step.index;
        producer.bytes = {lane, part, static_cast<std::uint32_t>(first - begin),
                          static_cast<std::uint32_t>(last - first)};
        std::copy_n(step.wave.group->id, 3, producer.workgroup);
        p_.producer_ = producer;
      }
    }
    return true;
  }

 private:
  bool in_buffer(u64 address) {
    if (region_ == nullptr || address - region_->base >= region_->size) {
      region_ = memory_.find(address);
      if (region_ == nullptr) return false;
      auto& launches = p_.stored_in_[region_->name];
      if (launches.empty() || launches.back() != launch_) launches.push_back(launch_);
      matches_ = launch_ < p_.question_.before && region_->name == p_.question_.buffer;
    }
    return matches_;
  }

  Provenance& p_;
  const Memory& memory_;
  std::uint32_t launch_;
  u64 group_;
  const Region* region_ = nullptr;
  bool matches_ = false;
};

/// Records the producer's workgroup up to it, and its wave a little further.
class Recorder final : public Observer {
 public:
  Recorder(Provenance& p, std::uint32_t waves) : p_(p), waves_(waves) {}

  bool before(const Step& step) override {
    const Provenance::Producer& producer = *p_.producer_;
    const bool of_wave = step.wave.id_in_group == producer.wave;
    if (of_wave && p_.question_.window > 0) look(step, producer.number);
    if (found_) return true;
    recording_.add(step);
    if (!of_wave || step.number != producer.number) return true;
    found_ = true;
    p_.keep(recording_, waves_);
    return true;
  }

 private:
  void look(const Step& step, u64 producer) {
    const u64 half = p_.question_.window / 2;
    if (step.number + half < producer || step.number > producer + half) return;
    Provenance::Seen s;
    s.index = step.index;
    s.wave = step.wave.id_in_group;
    s.number = step.number;
    s.exec = step.wave.exec();
    s.lane = p_.producer_->bytes.lane;
    if (!step.effects.vector_writes.empty())
      s.row = step.effects.vector_writes[0].first;
    else if (!step.effects.scalar_writes.empty())
      s.scalar = step.effects.scalar_writes[0].first;
    p_.window_.push_back(std::move(s));
  }

  Provenance& p_;
  std::uint32_t waves_;
  Recording recording_;
  bool found_ = false;
};

/// Reads the registers of the instructions of the answer.
class ValueReader final : public Observer {
 public:
  explicit ValueReader(Provenance& p) : view_(p.launch_->view) {
    for (auto* list : {&p.chain_, &p.window_})
      for (Provenance::Seen& s : *list) wanted_[key(s.wave, s.number)].push_back(&s);
  }

  bool before(const Step& step) override {
    const auto found = wanted_.find(key(step.wave.id_in_group, step.number));
    if (found == wanted_.end()) return true;
    for (Provenance::Seen* s : found->second) {
      describe(*s, step);
      if (s->row < 0 && s->scalar < 0) stored_value(*s, step);
      if (step.effects.unit == Unit::valu || step.effects.unit == Unit::salu) read_sources(*s, step);
      if (step.access != nullptr) where(*s, *step.access);
    }
    return true;
  }
  void after(const Step& step) override {
    const auto found = wanted_.find(key(step.wave.id_in_group, step.number));
    if (found == wanted_.end()) return;
    for (Provenance::Seen* s : found->second) {
      if (s->row >= 0) s->bits = step.wave.v(static_cast<std::uint32_t>(s->row))[std::max(s->lane, 0)];
      if (s->scalar >= 0) s->bits = scalar_bits(step.wave, static_cast<unsigned>(s->scalar));
    }
  }

 private:
  static u64 key(std::uint32_t wave, u64 number) { return u64{wave} << 48 | number; }

  void describe(Provenance::Seen& s, const Step& step) {
    const Site at = site(view_, s.index);
    s.pc = at.pc;
    s.disassembly = at.disassembly;
    s.target = register_name(step.wave, s.row, s.scalar);
  }
  static void stored_value(Provenance::Seen& s, const Step& step) {
    const std::uint16_t data = step.instruction.data[0];
    if (data == operand::none) return;
    if (data >= operand::vgpr0) {
      s.target = vector_name(step.wave, data - operand::vgpr0);
      s.bits = step.wave.v(data - operand::vgpr0)[std::max(s.lane, 0)];
    } else if (data < 128) {
      s.target = scalar_name(data);
      s.bits = step.wave.sgpr[data];
    }
  }
  static void read_sources(Provenance::Seen& s, const Step& step) {
    if (step.effects.matrix != Matrix::none) return;
    for (const std::uint16_t code : step.instruction.src) {
      if (code == operand::none) continue;
      if (code >= operand::vgpr0 && s.lane >= 0 && step.instruction.extension != Extension::dpp)
        s.sources.push_back(
            {vector_name(step.wave, code - operand::vgpr0), step.wave.v(code - operand::vgpr0)[s.lane]});
      else if (code < 128)
        s.sources.push_back({scalar_name(code), step.wave.sgpr[code]});
    }
  }
  void where(Provenance::Seen& s, const Access& a) const {
    const int lane = a.shape.scalar ? 0 : std::max(s.lane, 0);
    const u64 bit = u64{1} << lane;
    if ((a.touched() & bit) == 0) return;
    const u64 address = a.address[0][lane];
    if ((a.lds & bit) != 0) {
      s.buffer = "LDS";
      s.offset = address;
    } else if ((a.scratch & bit) != 0) {
      s.buffer = "scratch";
      s.offset = address;
    } else if (const Region* region = view_.memory.find(address); region != nullptr) {
      s.buffer = region->name;
      s.offset = address - region->base;
    }
  }

  const LaunchView& view_;
  std::unordered_map<u64, std::vector<Provenance::Seen*>> wanted_;
};

Provenance::~Provenance() = default;

void Provenance::begin(const LaunchView& view) {
  if (next_ != nullptr) next_->begin(view);
  launch_.emplace(Launched{view, Analysis(view.program)});
  ++launches_;
}

void Provenance::end() {
  launch_.reset();
  if (next_ != nullptr) next_->end();
}

std::unique_ptr<WorkgroupWatch> Provenance::watch(Workgroup& group, u64 linear_id) {
  std::unique_ptr<WorkgroupWatch> next;
  if (next_ != nullptr) next = next_->watch(group, linear_id);
  return std::make_unique<Watch>(launch_->view, launch_->analysis, observer(group, linear_id),
                                 std::move(next));
}

/// nullptr: nothing to see there.
std::unique_ptr<Observer> Provenance::observer(Workgroup& group, u64 linear_id) {
  const std::uint32_t launch = launches_ - 1;
  if (phase_ == Phase::find) return std::make_unique<Finder>(*this, launch_->view.memory, launch, linear_id);
  if (phase_ == Phase::done || !producer_ || launch != producer_->launch || linear_id != producer_->group)
    return nullptr;
  if (phase_ == Phase::values) return std::make_unique<ValueReader>(*this);
  return std::make_unique<Recorder>(*this, group.wave_count);
}

void Provenance::keep(const Recording& recording, std::uint32_t waves) {
  const Launched& launch = *launch_;
  kernel_ = launch.view.kernel.kernel.name;
  const Slice slice = slice_back(recording, launch.view, launch.analysis, waves, producer_->bytes);
  recorded_ = recording.all().size();
  cut_ = recording.cut();
  executions_ = slice.executions;
  links_ = slice.links.size();
  for (const Link& link : slice.links) {
    if (chain_.size() == most_links) break;
    const Executed& e = recording.all()[link.executed];
    Seen s;
    s.index = link.index;
    s.wave = e.wave;
    s.number = e.number;
    s.exec = e.exec;
    s.lane = link.lane;
    s.row = link.row;
    s.scalar = link.scalar;
    s.role = link.role;
    s.times = link.times;
    chain_.push_back(std::move(s));
  }
  for (const Role role : {Role::value, Role::address})
    for (const auto& [first, last] : slice.reads[static_cast<std::size_t>(role)]) {
      const Region* region = launch.view.memory.find(first);
      if (region == nullptr) continue;
      reads_.push_back({role, region->name, first - region->base, last - first});
    }
  for (const std::uint32_t index : slice.loads) {
    const Site at = site(launch.view, index);
    loads_.emplace_back(at.pc, at.disassembly);
  }
}

bool Provenance::again() {
  launches_ = 0;
  switch (phase_) {
    case Phase::find:
      phase_ = producer_ ? Phase::record : Phase::done;
      break;
    case Phase::record:
      phase_ = Phase::values;
      break;
    case Phase::values:
    case Phase::done:
      phase_ = Phase::done;
  }
  return phase_ != Phase::done;
}

nlohmann::json Provenance::json() const {
  using Json = nlohmann::json;
  Json answer = {{"buffer", question_.buffer},
                 {"offset", question_.offset},
                 {"bytes", question_.bytes},
                 {"times_written", times_written_},
                 {"found", producer_.has_value()}};
  if (!producer_) return answer;
  const auto seen_json = [&](const Seen& s) {
    Json json = {{"pc", s.pc},          {"disassembly", s.disassembly}, {"wave", s.wave},
                 {"lane", s.lane},      {"number", s.number},           {"exec", s.exec},
                 {"register", s.target}};
    json["value"] = s.bits ? Json(*s.bits) : Json(nullptr);
    if (s.times > 0) {
      json["times"] = s.times;
      json["role"] = s.role == Role::value ? "value" : "address";
    }
    if (!s.buffer.empty()) json["memory"] = {{"buffer", s.buffer}, {"offset", s.offset}};
    Json sources = Json::array();
    for (const Source& source : s.sources)
      sources.push_back({{"register", source.name}, {"value", source.bits}});
    if (!sources.empty()) json["sources"] = std::move(sources);
    return json;
  };
  Json chain = Json::array(), window = Json::array(), reads = Json::array(), loads = Json::array();
  for (const Seen& s : chain_) chain.push_back(seen_json(s));
  for (const Seen& s : window_) window.push_back(seen_json(s));
  for (const Read& read : reads_) {
    Json json = {{"buffer", read.buffer},
                 {"offset", read.offset},
                 {"bytes", read.bytes},
                 {"role", read.role == Role::value ? "value" : "address"}};
    if (const auto stored = stored_in_.find(read.buffer); stored != stored_in_.end())
      json["stored_in"] = stored->second;
    reads.push_back(std::move(json));
  }
  for (const auto& [pc, disassembly] : loads_) loads.push_back({{"pc", pc}, {"disassembly", disassembly}});
  answer["producer"] = {
      {"kernel", kernel_},       {"launch", producer_->launch},   {"workgroup", producer_->workgroup},
      {"wave", producer_->wave}, {"lane", producer_->bytes.lane}, {"number", producer_->number}};
  answer["chain"] = std::move(chain);
  answer["links"] = links_;
  answer["executions"] = executions_;
  answer["recorded"] = recorded_;
  answer["cut"] = cut_;
  answer["reads"] = std::move(reads);
  answer["loads"] = std::move(loads);
  if (question_.window > 0) answer["window"] = std::move(window);
  return answer;
}

}  // namespace attest::device::sim::detect
