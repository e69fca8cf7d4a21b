// SPDX-License-Identifier: MIT
//
// What a workgroup finds at entry follows LLVM's "User Guide for AMDGPU Backend", Initial Kernel Execution
// State; what the ABI leaves undefined is filled with fixed patterns, so that a kernel that reads it gives
// the same wrong answer every time.
//
// Turns of one instruction are the default. A whole-turn-to-the-barrier schedule is no faster (the next wave
// runs the same handler, which the host's branch predictor likes), and it hides what short turns show.
#include "device/simulator/core/dispatch.h"

#include <fmt/format.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "device/simulator/core/workgroup.h"
#include "device/simulator/detect/screen.h"

namespace attest::device::sim {
namespace {

constexpr std::uint32_t lds_per_workgroup = 64 * 1024;
constexpr std::uint32_t threads_per_workgroup = 1024;
constexpr std::uint32_t compute_units = 304;
constexpr std::uint32_t dynamic_stack_bytes = 16 * 1024;
// Rounds a workgroup gets before the next one's turn, when workgroups share a thread.
constexpr std::uint32_t rounds_per_turn = 512;
// What such workgroups may hold together before another one joins only reluctantly, and the turns without one
// that ended after which it does.
constexpr std::size_t shared_bytes = std::size_t{256} << 20;
constexpr std::uint32_t patience = 256;

std::uint64_t splitmix(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

struct Freer {
  void operator()(void* p) const { ::operator delete(p, std::align_val_t{64}); }
};

/// Uninitialised storage that only grows.
template <typename T>
class Buffer {
 public:
  T* reserve(std::size_t count) {
    if (count > capacity_) {
      data_.reset();
      data_.reset(static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{64})));
      capacity_ = count;
    }
    return data_.get();
  }

 private:
  std::unique_ptr<T, Freer> data_;
  std::size_t capacity_ = 0;
};

/// A region of guest memory for the time of one launch.
class Scratchpad {
 public:
  Scratchpad(Memory& memory, std::uint64_t bytes, std::string_view name) : memory_(memory) {
    const auto address = memory.allocate_image(bytes, bytes, name);
    if (!address) throw Fault(FaultKind::launch, fmt::format("no memory for the {}", name));
    address_ = *address;
  }
  ~Scratchpad() { memory_.release(address_); }
  Scratchpad(const Scratchpad&) = delete;
  Scratchpad& operator=(const Scratchpad&) = delete;
  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] std::byte* host() const { return memory_.translate(address_, 1); }

 private:
  Memory& memory_;
  std::uint64_t address_ = 0;
};

template <typename T>
void put(std::byte* block, std::size_t room, std::size_t offset, std::size_t size, T value) {
  if (offset > room || size > room - offset) return;
  std::memcpy(block + offset, &value, std::min(size, sizeof value));
}

constexpr std::uint64_t not_null = 1;

void fill_hidden_arguments(std::byte* block, std::size_t room, const Kernel& kernel, const Launch& launch,
                           std::uint32_t dynamic_lds) {
  const std::uint32_t grid_dims = launch.blocks[2] * launch.threads[2] + launch.remainder[2] > 1   ? 3
                                  : launch.blocks[1] * launch.threads[1] + launch.remainder[1] > 1 ? 2
                                                                                                   : 1;
  for (const KernelArgument& a : kernel.arguments) {
    if (!a.kind.starts_with("hidden_")) continue;
    const std::string_view kind = std::string_view(a.kind).substr(7);
    std::uint64_t value = 0;
    for (int d = 0; d < 3; ++d) {
      const char axis = "xyz"[d];
      if (kind.back() != axis || kind.size() < 2 || kind[kind.size() - 2] != '_') continue;
      if (kind.starts_with("block_count")) value = launch.blocks[d];
      if (kind.starts_with("group_size")) value = launch.threads[d];
      if (kind.starts_with("remainder")) value = launch.remainder[d];
    }
    if (kind == "grid_dims") value = grid_dims;
    if (kind == "dynamic_lds_size") value = dynamic_lds;
    if (kind == "shared_base") value = aperture::shared_base >> 32;
    if (kind == "private_base") value = aperture::private_base >> 32;
    if (kind == "hostcall_buffer") value = launch.hostcall_buffer;
    // Kernels ask whether it is null to know whether the grid may be synchronised.
    if (kind == "multigrid_sync_arg") value = launch.cooperative ? not_null : 0;
    put(block, room, a.offset, a.size, value);
  }
}

void fill_packet(std::byte* packet, const LoadedKernel& loaded, const Launch& launch, std::uint32_t lds,
                 std::uint64_t kernarg) {
  constexpr std::size_t size = 64;
  put(packet, size, 0, 2, std::uint16_t{0x1502});  // kernel dispatch, system fences
  put(packet, size, 2, 2, std::uint16_t{3});
  for (std::size_t d = 0; d < 3; ++d) {
    put(packet, size, 4 + 2 * d, 2, static_cast<std::uint16_t>(launch.threads[d]));
    put(packet, size, 12 + 4 * d, 4, launch.blocks[d] * launch.threads[d] + launch.remainder[d]);
  }
  put(packet, size, 24, 4, loaded.kernel.descriptor.private_segment_bytes);
  put(packet, size, 28, 4, lds);
  put(packet, size, 32, 8, loaded.descriptor_address);
  put(packet, size, 40, 8, kernarg);
}

/// What every workgroup of a launch has in common.
struct Plan {
  const LoadedKernel& loaded;
  const Launch& launch;
  const Settings& settings;
  Memory& memory;
  std::uint64_t groups[3] = {};
  std::uint64_t group_count = 0;
  std::uint32_t lds_bytes = 0;
  std::uint32_t scratch_bytes = 0;
  std::uint32_t user_sgprs[16] = {};
  std::uint32_t user_sgpr_count = 0;
  std::uint32_t entry = 0;
  mutable GlobalBarrier global_barrier = {};  ///< of workgroups that take turns on one thread
};

/// What the loop over instructions does besides executing them.
enum class Mode { plain, counting, watched };

/// One workgroup's registers, LDS and scratch; used again and again.
class Group {
 public:
  void start(const Plan& plan, std::uint64_t linear);
  /// Runs until the workgroup ends or `rounds` turns of every wave have passed; true when it has ended.
  bool run(const Plan& plan, std::uint64_t rounds, std::uint64_t budget);

  /// After the last run of a launch, whether or not the workgroup ended.
  void leave() { watch_.reset(); }

  std::uint64_t linear = 0;
  std::uint64_t instructions = 0;
  std::uint64_t random = 0;
  Workgroup group;
  Wave* current = nullptr;  ///< whose instruction a Fault came from

 private:
  template <Mode mode, bool shuffled>
  bool turns(const Plan& plan, std::uint64_t rounds, std::uint64_t budget);
  template <Mode mode>
  bool run_in(const Plan& plan, std::uint64_t rounds, std::uint64_t budget);
  void execute_watched(const Plan& plan, Wave& w, std::uint64_t number);
  void collect_running();
  [[noreturn]] void throw_budget(const Plan& plan);

  Buffer<Wave> waves_;
  Buffer<std::uint32_t> vgprs_;
  Buffer<std::byte> lds_;
  Buffer<std::uint32_t> scratch_;
  Wave* running_[threads_per_workgroup / lanes] = {};
  std::uint32_t running_count_ = 0;
  std::uint32_t head_start_[threads_per_workgroup / lanes] =
      {};  ///< instructions added to the wave's first turn
  std::unique_ptr<WorkgroupWatch> watch_;
};

void Group::start(const Plan& plan, std::uint64_t linear_id) {
  const Descriptor& d = plan.loaded.kernel.descriptor;
  linear = linear_id;
  instructions = 0;
  random = plan.settings.seed ^ (linear_id + 1) * 0xd1342543de82ef95u;
  std::uint64_t rest = linear_id;
  std::uint32_t size[3];
  for (int k = 0; k < 3; ++k) {
    group.id[k] = static_cast<std::uint32_t>(rest % plan.groups[k]);
    rest /= plan.groups[k];
    size[k] = group.id[k] < plan.launch.blocks[k] ? plan.launch.threads[k] : plan.launch.remainder[k];
  }
  const std::uint32_t threads = size[0] * size[1] * size[2];
  group.wave_count = (threads + lanes - 1) / lanes;
  group.waves = waves_.reserve(group.wave_count);
  group.lds = lds_.reserve(std::max<std::size_t>(plan.lds_bytes, 64));
  group.lds_bytes = plan.lds_bytes;
  group.global_barrier = &plan.global_barrier;
  group.interrupt = &plan.launch.interrupt;
  std::memset(group.lds, 0xff, plan.lds_bytes);
  const std::size_t rows = std::size_t{d.vgpr_count()} * lanes;
  std::uint32_t* vgprs = vgprs_.reserve(rows * group.wave_count);
  std::fill_n(vgprs, rows * group.wave_count, undefined_register);
  const std::size_t scratch_dwords = std::size_t{plan.scratch_bytes} / 4 * lanes;
  std::uint32_t* scratch = nullptr;
  if (scratch_dwords != 0) {
    scratch = scratch_.reserve(scratch_dwords * group.wave_count);
    std::fill_n(scratch, scratch_dwords * group.wave_count, undefined_register);
  }

  const std::uint32_t dimensions = d.rsrc2 >> 11 & 3;  // 0: x, 1: x and y, 2: all three
  for (std::uint32_t n = 0; n < group.wave_count; ++n) {
    Wave& w = *new (&group.waves[n]) Wave;
    std::fill(std::begin(w.sgpr), std::end(w.sgpr), undefined_register);
    w.vgpr = vgprs + rows * n;
    w.vgpr_count = d.vgpr_count();
    w.accum_offset = d.accum_offset();
    w.mode = d.mode();
    w.pc = plan.entry;
    w.id_in_group = n;
    w.program = plan.loaded.program.get();
    w.group = &group;
    w.memory = &plan.memory;
    w.scratch = scratch + scratch_dwords * n;
    w.scratch_bytes = plan.scratch_bytes;
    const std::uint32_t present = std::min<std::uint32_t>(lanes, threads - n * lanes);
    w.set_s64(126, present == lanes ? ~std::uint64_t{0} : (std::uint64_t{1} << present) - 1);
    std::copy_n(plan.user_sgprs, plan.user_sgpr_count, w.sgpr);
    std::uint32_t next = plan.user_sgpr_count;
    for (int k = 0; k < 3; ++k) {
      if ((d.rsrc2 >> (7 + k) & 1) != 0) w.sgpr[next++] = group.id[k];
    }
    if ((d.rsrc2 >> 10 & 1) != 0) w.sgpr[next++] = group.wave_count;
    for (std::uint32_t l = 0; l < present; ++l) {
      const std::uint32_t id = n * lanes + l;
      std::uint32_t packed = id % size[0];
      if (dimensions >= 1) packed |= id / size[0] % size[1] << 10;
      if (dimensions >= 2) packed |= id / size[0] / size[1] << 20;
      w.vgpr[l] = packed;
    }
  }
  std::fill(std::begin(head_start_), std::end(head_start_), 0);
  for (std::uint32_t n = 0; n < group.wave_count && plan.settings.skew != 0; ++n) {
    head_start_[n] = static_cast<std::uint32_t>(splitmix(random) % (std::uint64_t{plan.settings.skew} + 1));
  }
  collect_running();
  if (plan.settings.watch != nullptr) watch_ = plan.settings.watch->watch(group, linear);
}

void Group::collect_running() {
  running_count_ = 0;
  std::uint32_t waiting = 0;
  for (std::uint32_t n = 0; n < group.wave_count; ++n) {
    if (group.waves[n].state == WaveState::running) running_[running_count_++] = &group.waves[n];
    if (group.waves[n].state == WaveState::at_barrier) ++waiting;
  }
  if (running_count_ != 0 || waiting == 0) return;
  // Every wave that has not ended has arrived.
  if (watch_ != nullptr) watch_->barrier();
  for (std::uint32_t n = 0; n < group.wave_count; ++n) {
    if (group.waves[n].state != WaveState::at_barrier) continue;
    group.waves[n].state = WaveState::running;
    running_[running_count_++] = &group.waves[n];
  }
}

void Group::throw_budget(const Plan& plan) {
  current = running_[0];
  std::string at_barrier;
  for (std::uint32_t n = 0; n < group.wave_count; ++n) {
    const Wave& w = group.waves[n];
    if (w.state != WaveState::at_barrier) continue;
    at_barrier = fmt::format("wave {} waits at the barrier behind {:#x} for wave {}, which runs on", n,
                             plan.loaded.program->address_of(w.pc - 1) - plan.loaded.image_base,
                             running_[0]->id_in_group);
    break;
  }
  // Blame the instruction the wave would execute next; the dispatcher looks one back.
  ++current->pc;
  if (!at_barrier.empty()) {
    throw Fault(FaultKind::barrier_deadlock, fmt::format("{}: {} wave instructions and no end", at_barrier,
                                                         plan.settings.instruction_budget));
  }
  throw Fault(FaultKind::instruction_budget,
              fmt::format("the budget of {} wave instructions is used up", plan.settings.instruction_budget));
}

void Group::execute_watched(const Plan& plan, Wave& w, std::uint64_t number) {
  const Program& program = *plan.loaded.program;
  const std::uint32_t index = w.pc++;
  const Bound& bound = program.code()[index];
  if (index >= program.size()) return bound.handler(w, bound.instruction);  // a guard: raises its Fault
  if (plan.settings.counts != nullptr) ++(*plan.settings.counts)[index];
  if (detect::Screen* screen = watch_->screen(); screen != nullptr && screen->lets_by(w, index, number))
    return bound.handler(w, bound.instruction);
  if (!watch_->before(w, index, number)) return;
  bound.handler(w, bound.instruction);
  if (watch_->hears_after()) watch_->after(w, index, number);
}

template <Mode mode, bool shuffled>
bool Group::turns(const Plan& plan, std::uint64_t rounds, std::uint64_t budget) {
  const Bound* code = plan.loaded.program->code();
  std::uint64_t* counts = mode == Mode::counting ? plan.settings.counts->data() : nullptr;
  const std::uint32_t quantum = std::max<std::uint32_t>(plan.settings.quantum, 1);
  while (running_count_ != 0) {
    if (rounds-- == 0) return false;
    if (instructions >= budget) throw_budget(plan);
    if constexpr (shuffled) {
      for (std::uint32_t k = running_count_ - 1; k > 0; --k) {
        std::swap(running_[k], running_[splitmix(random) % (k + 1)]);
      }
    }
    bool changed = false;
    for (std::uint32_t k = 0; k < running_count_; ++k) {
      Wave& w = *running_[k];
      current = &w;
      std::uint32_t n = 0;
      const std::uint32_t turn = quantum + std::exchange(head_start_[w.id_in_group], 0);
      do {
        if constexpr (mode == Mode::watched) {
          execute_watched(plan, w, w.instructions + n++);
        } else {
          const Bound& bound = code[w.pc];
          if constexpr (mode == Mode::counting) ++(*(counts + std::min(w.pc, plan.loaded.program->size())));
          ++w.pc;
          ++n;
          bound.handler(w, bound.instruction);
        }
      } while (n < turn && w.state == WaveState::running);
      w.instructions += n;
      instructions += n;
      changed |= w.state != WaveState::running;
    }
    if (changed) [[unlikely]] {
      collect_running();
    }
  }
  if constexpr (mode == Mode::watched) watch_->end();
  return true;
}

template <Mode mode>
bool Group::run_in(const Plan& plan, std::uint64_t rounds, std::uint64_t budget) {
  return plan.settings.seed != 0 ? turns<mode, true>(plan, rounds, budget)
                                 : turns<mode, false>(plan, rounds, budget);
}

bool Group::run(const Plan& plan, std::uint64_t rounds, std::uint64_t budget) {
  if (watch_ != nullptr) return run_in<Mode::watched>(plan, rounds, budget);
  if (plan.settings.counts != nullptr) return run_in<Mode::counting>(plan, rounds, budget);
  return run_in<Mode::plain>(plan, rounds, budget);
}

KernelFault locate(const Plan& plan, const Group& g, const Fault& fault) {
  KernelFault located(fault, plan.loaded.kernel.name);
  std::copy(std::begin(g.group.id), std::end(g.group.id), located.workgroup);
  if (g.current != nullptr) {
    const Program& program = *plan.loaded.program;
    const std::uint32_t index = program.blame(g.current->pc - 1);
    located.wave = static_cast<int>(g.current->id_in_group);
    located.pc = program.address_of(index) - plan.loaded.image_base;
    located.disassembly = program.disassembly(index);
  }
  located.complete();
  return located;
}

}  // namespace

KernelFault::KernelFault(const Fault& fault, std::string kernel_name)
    : Fault(fault), kernel(std::move(kernel_name)) {}

void KernelFault::complete() {
  line = fmt::format("{}: {}", kernel, message);
  if (!disassembly.empty()) line += fmt::format("; at {:#x}: {}", pc, disassembly);
  if (wave >= 0) {
    line += fmt::format(" (workgroup {},{},{} wave {}", workgroup[0], workgroup[1], workgroup[2], wave);
    line += lane >= 0 ? fmt::format(" lane {})", lane) : ")";
  }
}

struct Dispatcher::Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<Group>> idle;

  std::unique_ptr<Group> take() {
    const std::scoped_lock lock(mutex);
    if (idle.empty()) return std::make_unique<Group>();
    std::unique_ptr<Group> group = std::move(idle.back());
    idle.pop_back();
    return group;
  }
  void give(std::unique_ptr<Group> group) {
    group->leave();
    const std::scoped_lock lock(mutex);
    // Enough for every thread; a grid that was wholly resident does not stay in memory.
    if (idle.size() < 64) idle.push_back(std::move(group));
  }

  std::uint64_t run_in_parallel(const Plan& plan);
  std::uint64_t run_interleaved(const Plan& plan);
};

std::uint64_t Dispatcher::Pool::run_in_parallel(const Plan& plan) {
  // A fault stops the workgroups behind it, never those in front: the one reported is the first in grid order
  // whatever the threads did.
  std::atomic<std::uint64_t> first_fault{std::numeric_limits<std::uint64_t>::max()};
  std::optional<KernelFault> fault;
  std::mutex fault_mutex;
  std::atomic<std::uint64_t> total{0};
  const auto body = [&](std::uint64_t from, std::uint64_t to) {
    std::unique_ptr<Group> g = take();
    std::uint64_t sum = 0;
    for (std::uint64_t id = from; id < to; ++id) {
      if (id > first_fault.load(std::memory_order_relaxed)) break;
      g->current = nullptr;
      try {
        g->start(plan, id);
        g->run(plan, std::numeric_limits<std::uint64_t>::max(), plan.settings.instruction_budget);
      } catch (const Fault& raised) {
        const std::scoped_lock lock(fault_mutex);
        if (id < first_fault.load(std::memory_order_relaxed)) {
          first_fault = id;
          fault.emplace(locate(plan, *g, raised));
        }
      }
      sum += g->instructions;
    }
    total += sum;
    give(std::move(g));
  };
  if (plan.settings.threads == 1 || plan.group_count == 1 || plan.settings.counts != nullptr ||
      plan.settings.watch != nullptr) {
    body(0, plan.group_count);
  } else {
    const int most = tbb::info::default_concurrency();
    const int threads =
        plan.settings.threads == 0 ? most : std::min(most, static_cast<int>(plan.settings.threads));
    tbb::task_arena arena(threads);
    arena.execute([&] {
      tbb::parallel_for(
          tbb::blocked_range<std::uint64_t>(0, plan.group_count),
          [&](const tbb::blocked_range<std::uint64_t>& range) { body(range.begin(), range.end()); });
    });
  }
  if (fault) throw *fault;
  if (total > plan.settings.instruction_budget) {
    KernelFault over(
        Fault(FaultKind::instruction_budget, fmt::format("{} wave instructions in all, the budget is {}",
                                                         total.load(), plan.settings.instruction_budget)),
        plan.loaded.kernel.name);
    over.complete();
    throw over;
  }
  return total;
}

std::uint64_t Dispatcher::Pool::run_interleaved(const Plan& plan) {
  // As many workgroups as the device would hold at a time, but no more than it takes: as long as all of them
  // end within their turn, one is enough. Code compiled at -O0 looks as if it communicated (indirect calls lead
  // anywhere), never ends within a turn and holds megabytes of stack per workgroup; a thousand of them at a time
  // do not fit.
  const Descriptor& d = plan.loaded.kernel.descriptor;
  const std::uint32_t waves =
      (plan.launch.threads[0] * plan.launch.threads[1] * plan.launch.threads[2] + lanes - 1) / lanes;
  const std::uint32_t by_registers = 4 * std::min(8u, 512 / d.vgpr_count()) / waves;
  const std::uint32_t by_lds = plan.lds_bytes == 0 ? 32 : lds_per_workgroup / plan.lds_bytes;
  const std::size_t on_device = std::size_t{compute_units} * std::max(1u, std::min(by_registers, by_lds));

  const std::size_t bytes_each =
      (std::size_t{plan.scratch_bytes} + std::size_t{d.vgpr_count()} * 4) * lanes * waves + plan.lds_bytes;
  const std::size_t in_memory = std::max<std::size_t>(1, plan.settings.memory_budget / bytes_each);
  const std::size_t resident = std::min(on_device, in_memory);
  const std::size_t at_ease = std::clamp<std::size_t>(shared_bytes / bytes_each, 1, resident);

  std::vector<std::unique_ptr<Group>> active;
  std::uint32_t fruitless = 0;
  std::uint64_t next = 0;
  std::uint64_t total = 0;
  Group* in_turn = nullptr;
  try {
    std::size_t wanted = 1;
    while (next < plan.group_count || !active.empty()) {
      while (active.size() < wanted && next < plan.group_count) {
        active.push_back(take());
        in_turn = active.back().get();
        in_turn->current = nullptr;
        in_turn->start(plan, next++);
      }
      const std::size_t before = active.size();
      for (auto& g : active) {
        in_turn = g.get();
        const std::uint64_t had = g->instructions;
        const std::uint64_t left =
            plan.settings.instruction_budget - std::min(total, plan.settings.instruction_budget);
        const bool ended = g->run(plan, rounds_per_turn, had + left);
        total += g->instructions - had;
        if (ended) give(std::move(g));
      }
      std::erase(active, nullptr);
      if (active.size() != before)
        fruitless = 0;
      else if (wanted < at_ease || ++fruitless == patience) {
        wanted = std::min(2 * wanted, resident);
        if (fruitless == 0) wanted = std::min(wanted, at_ease);
        fruitless = 0;
      }
    }
  } catch (const Fault& raised) {
    KernelFault located = locate(plan, *in_turn, raised);
    if (raised.kind == FaultKind::instruction_budget && active.size() >= resident &&
        next < plan.group_count) {
      // Perhaps they waited for those that never came.
      located.message += fmt::format(
          "; {} of {} workgroups have not started, {} at a time {}", plan.group_count - next,
          plan.group_count, resident,
          in_memory < on_device
              ? fmt::format("take the {} MiB that they may hold together", plan.settings.memory_budget >> 20)
              : "fill the device");
      located.complete();
    }
    for (auto& g : active) {
      if (g) give(std::move(g));
    }
    throw located;
  }
  return total;
}

Dispatcher::Dispatcher() : pool_(std::make_unique<Pool>()) {}
Dispatcher::~Dispatcher() = default;

LaunchResult Dispatcher::run(const LoadedKernel& loaded, const Launch& launch, Memory& memory,
                             const Settings& settings) {
  const Kernel& kernel = loaded.kernel;
  const Descriptor& d = kernel.descriptor;
  const auto refuse = [&](std::string why) {
    KernelFault fault(Fault(FaultKind::launch, std::move(why)), kernel.name);
    fault.complete();
    throw fault;
  };

  Plan plan{.loaded = loaded, .launch = launch, .settings = settings, .memory = memory};
  std::uint64_t threads = 1;
  plan.group_count = 1;
  for (int k = 0; k < 3; ++k) {
    threads *= launch.threads[k];
    plan.groups[k] = std::uint64_t{launch.blocks[k]} + (launch.remainder[k] != 0 ? 1 : 0);
    plan.group_count *= plan.groups[k];
    if (launch.threads[k] > threads_per_workgroup || plan.groups[k] > 0xffffffff)
      threads = ~std::uint64_t{0} / 2;
    if (threads > threads_per_workgroup || threads == 0) break;
  }
  if (threads == 0 || plan.group_count == 0) refuse("the launch has no work-items");
  if (threads > threads_per_workgroup || threads > kernel.max_workgroup) {
    refuse(fmt::format("{}x{}x{} work-items per workgroup, the kernel allows {}", launch.threads[0],
                       launch.threads[1], launch.threads[2],
                       std::min(kernel.max_workgroup, threads_per_workgroup)));
  }
  if (plan.group_count > std::uint64_t{1} << 48) refuse("more workgroups than a grid can have");
  const std::uint64_t lds = std::uint64_t{d.group_segment_bytes} + launch.dynamic_lds_bytes;
  if (lds > lds_per_workgroup) {
    refuse(fmt::format("{} bytes of LDS per workgroup, gfx942 has {}", lds, lds_per_workgroup));
  }
  plan.lds_bytes = static_cast<std::uint32_t>(lds);
  const auto waves = static_cast<std::uint32_t>((threads + lanes - 1) / lanes);
  if (d.accum_offset() > d.vgpr_count() && d.vgpr_count() > 512)
    refuse("the descriptor's register counts do not fit");
  if (waves > 4 * (512 / d.vgpr_count())) {
    refuse(fmt::format("{} waves of {} vector registers in a workgroup, a compute unit holds {}", waves,
                       d.vgpr_count(), 4 * (512 / d.vgpr_count())));
  }
  std::uint64_t scratch = (std::uint64_t{d.private_segment_bytes} + 3) / 4 * 4;
  if ((d.properties >> 11 & 1) != 0) scratch += dynamic_stack_bytes;
  if (scratch > 1u << 20) refuse(fmt::format("{} bytes of scratch per work-item", scratch));
  plan.scratch_bytes = static_cast<std::uint32_t>(scratch);

  const std::size_t kernarg_bytes =
      (std::max<std::size_t>({kernel.kernarg_bytes, launch.kernarg.size(), 16}) + 15) / 16 * 16;
  const Scratchpad kernarg(memory, kernarg_bytes, "kernel arguments");
  fill_hidden_arguments(kernarg.host(), kernarg_bytes, kernel, launch, launch.dynamic_lds_bytes);
  if (!launch.kernarg.empty()) std::memcpy(kernarg.host(), launch.kernarg.data(), launch.kernarg.size());
  std::optional<Scratchpad> packet;
  std::optional<Scratchpad> queue;

  std::uint32_t next = 0;
  const auto add = [&](std::uint64_t value, std::uint32_t count) {
    for (std::uint32_t k = 0; k < count && next < 16; ++k, value >>= 32) {
      plan.user_sgprs[next++] = static_cast<std::uint32_t>(value);
    }
  };
  if ((d.properties & 1) != 0) add(0, 4);
  if ((d.properties >> 1 & 1) != 0) {
    packet.emplace(memory, 64, "dispatch packet");
    fill_packet(packet->host(), loaded, launch, plan.lds_bytes, kernarg.address());
    add(packet->address(), 2);
  }
  if ((d.properties >> 2 & 1) != 0) {
    queue.emplace(memory, 256, "queue descriptor");
    put(queue->host(), 256, 0x40, 4, static_cast<std::uint32_t>(aperture::shared_base >> 32));
    put(queue->host(), 256, 0x44, 4, static_cast<std::uint32_t>(aperture::private_base >> 32));
    add(queue->address(), 2);
  }
  if ((d.properties >> 3 & 1) != 0) add(kernarg.address(), 2);
  if ((d.properties >> 4 & 1) != 0) add(0, 2);
  if ((d.properties >> 5 & 1) != 0) add(0, 2);
  if ((d.properties >> 6 & 1) != 0) add(plan.scratch_bytes, 1);
  const std::uint32_t preload = d.kernarg_preload & 0x7f;
  for (std::uint32_t k = 0; k < preload; ++k) {
    const std::size_t at = (std::size_t{d.kernarg_preload} >> 7) * 4 + k * 4;
    std::uint32_t value = 0;
    if (at + 4 <= kernarg_bytes) std::memcpy(&value, kernarg.host() + at, 4);
    add(value, 1);
  }
  std::uint64_t defined_sgprs = (std::uint64_t{1} << next) - 1;
  plan.user_sgpr_count = d.rsrc2 >> 1 & 0x1f;
  if (plan.user_sgpr_count > 16) refuse("the descriptor asks for more than 16 user SGPRs");
  for (; next < plan.user_sgpr_count; ++next) plan.user_sgprs[next] = undefined_register;
  plan.entry = loaded.program->entry();
  // Firmware enters a kernel with preloaded arguments behind the code that would load them.
  if (preload != 0) plan.entry = loaded.program->index_of(loaded.program->address_of(plan.entry) + 256);

  const auto run_all = [&] {
    LaunchResult result;
    result.instructions =
        loaded.program->communicates() ? pool_->run_interleaved(plan) : pool_->run_in_parallel(plan);
    return result;
  };
  if (settings.watch == nullptr) return run_all();

  // Workgroup ids and, when asked for, the workgroup's info word follow the user SGPRs.
  const int after_user = std::popcount(d.rsrc2 >> 7 & 15);
  defined_sgprs |= ((std::uint64_t{1} << after_user) - 1) << plan.user_sgpr_count;
  settings.watch->begin({loaded, *loaded.program, launch, memory, defined_sgprs, plan.lds_bytes});
  try {
    const LaunchResult result = run_all();
    settings.watch->end();
    return result;
  } catch (...) {
    settings.watch->end();
    throw;
  }
}

}  // namespace attest::device::sim
