// SPDX-License-Identifier: MIT
//
// Whole kernels, from assembly through code object, program and launch.
#include "device/simulator/core/dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "device/simulator/core/module.h"
#include "device/simulator/tests/file_bytes.h"

namespace attest::device::sim {
namespace {

struct Fixture {
  Fixture() : module(memory, file_bytes(ATTEST_TEST_KERNELS)) {}

  const LoadedKernel& kernel(const char* name) {
    const LoadedKernel* found = module.kernel(name);
    REQUIRE(found != nullptr);
    return *found;
  }
  LaunchResult run(const char* name, Launch launch, std::uint64_t out, std::uint64_t argument = 0) {
    const std::uint64_t block[2] = {out, argument};
    launch.kernarg = std::as_bytes(std::span(block));
    return dispatcher.run(kernel(name), launch, memory, settings);
  }
  KernelFault fault(const char* name, const Launch& launch, std::uint64_t out = 0,
                    std::uint64_t argument = 0) {
    try {
      run(name, launch, out, argument);
    } catch (const KernelFault& raised) {
      return raised;
    }
    FAIL(name << " did not fault");
    return {Fault(FaultKind::trap, ""), ""};
  }
  std::uint64_t buffer(std::uint64_t dwords, const char* name = "out") {
    return memory.allocate(dwords * 4, name).value();
  }
  std::vector<std::uint32_t> read(std::uint64_t address, std::size_t dwords) {
    std::vector<std::uint32_t> values(dwords);
    const std::byte* p = memory.translate(address, dwords * 4);
    REQUIRE(p != nullptr);
    std::memcpy(values.data(), p, dwords * 4);
    return values;
  }

  Memory memory{0};
  LoadedModule module;
  Dispatcher dispatcher;
  Settings settings;
};

/// How many workgroups have started and not ended.
class Residents final : public LaunchWatch {
 public:
  void begin(const LaunchView&) override { most = now = 0; }
  std::unique_ptr<WorkgroupWatch> watch(Workgroup&, std::uint64_t) override {
    most = std::max(most, ++now);
    return std::make_unique<Resident>(now);
  }
  std::uint64_t most = 0, now = 0;

 private:
  class Resident final : public WorkgroupWatch {
   public:
    explicit Resident(std::uint64_t& now) : now_(now) { hears_after_ = false; }
    ~Resident() override { --now_; }
    Resident(const Resident&) = delete;
    Resident& operator=(const Resident&) = delete;
    bool before(Wave&, std::uint32_t, std::uint64_t) override { return true; }
    void after(Wave&, std::uint32_t, std::uint64_t) override {}

   private:
    std::uint64_t& now_;
  };
};

/// Of the stacked kernels in kernels.s.
constexpr std::uint64_t stack_bytes = 262144, stacked_bytes = (stack_bytes + 8 * 4) * 64;
/// As dispatch.cpp has it: workgroups that take turns hold no more as long as they get on.
constexpr std::uint64_t at_ease = (std::uint64_t{256} << 20) / stacked_bytes;

Launch grid(std::uint32_t blocks, std::uint32_t threads) {
  Launch launch;
  launch.blocks[0] = blocks;
  launch.threads[0] = threads;
  return launch;
}

}  // namespace

TEST_CASE("work-item and workgroup ids arrive where the ABI says") {
  Fixture f;
  Launch launch;
  launch.blocks[0] = 3, launch.blocks[1] = 5, launch.blocks[2] = 2;
  launch.threads[0] = 8, launch.threads[1] = 6, launch.threads[2] = 4;
  const std::uint64_t out = f.buffer(30 * 192);
  const LaunchResult result = f.run("ids", launch, out);
  CHECK(result.instructions == 30u * 3 * 16);
  const auto values = f.read(out, std::size_t{30} * 192);
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    const std::uint32_t local = i % 192;
    REQUIRE(values[i] == (local % 8 | local / 8 % 6 << 10 | local / 48 << 20));
  }
}

TEST_CASE("waves of a workgroup meet at barriers") {
  for (const std::uint32_t quantum : {1u, 3u, 1000u}) {
    for (const std::uint64_t seed : {0ull, 1ull, 77ull}) {
      Fixture f;
      f.settings.quantum = quantum;
      f.settings.seed = seed;
      const std::uint64_t out = f.buffer(256);
      f.run("reverse", grid(1, 256), out);
      const auto values = f.read(out, 256);
      for (std::uint32_t i = 0; i < 256; ++i) REQUIRE(values[i] == (255 - i) * 3);
    }
  }
}

TEST_CASE("loops, calls, scratch, partial waves") {
  Fixture f;
  const std::uint64_t out = f.buffer(100);
  f.run("loop", grid(1, 100), out, 1000);
  CHECK(f.read(out, 100) == std::vector<std::uint32_t>(100, 500500));
  f.run("caller", grid(1, 100), out);
  for (std::uint32_t i = 0; i < 100; ++i) REQUIRE(f.read(out, 100)[i] == 100 + i);
  f.run("private", grid(1, 100), out);
  for (std::uint32_t i = 0; i < 100; ++i) REQUIRE(f.read(out, 100)[i] == 7 * i);
}

TEST_CASE("a wave that has ended counts as arrived at a barrier") {
  Fixture f;
  const std::uint64_t out = f.buffer(64);
  f.run("leaver", grid(1, 128), out);
  CHECK(f.read(out, 1)[0] == 7);
}

TEST_CASE("dispatch packet, and the pattern of undefined registers") {
  Fixture f;
  const std::uint64_t out = f.buffer(4);
  Launch launch = grid(3, 64);
  launch.threads[1] = 2;
  f.run("packet", launch, out);
  CHECK(f.read(out, 4) ==
        std::vector<std::uint32_t>{192, 64 | 2u << 16, undefined_register, undefined_register});
}

TEST_CASE("results do not depend on the number of threads or on earlier launches") {
  const auto hash = [](std::uint32_t threads, bool dirty) {
    Fixture f;
    f.settings.threads = threads;
    const std::uint64_t out = f.buffer(64 * 256);
    if (dirty) f.run("reverse", grid(2, 256), out);
    const LaunchResult result = f.run("hash", grid(64, 256), out);
    CHECK(result.instructions == 64u * 4 * (5 + 300 * 7 + 3));
    return f.read(out, 64 * 256);
  };
  const auto once = hash(1, false);
  CHECK(hash(2, false) == once);
  CHECK(hash(4, true) == once);
}

TEST_CASE("floating-point atomics add in the same order whatever the number of threads") {
  const auto sum = [](std::uint32_t threads) {
    Fixture f;
    f.settings.threads = threads;
    const std::uint64_t out = f.buffer(1);
    CHECK(f.kernel("float_sum").program->communicates());
    f.run("float_sum", grid(100, 256), out);
    return f.read(out, 1)[0];
  };
  const std::uint32_t once = sum(1);
  CHECK(once != 0);
  CHECK(sum(2) == once);
  CHECK(sum(2) == once);
}

TEST_CASE("workgroups that wait for each other all get on") {
  Fixture f;
  const std::uint64_t out = f.buffer(1);
  f.run("rendezvous", grid(300, 256), out, 300 * 4);
  CHECK(f.read(out, 1)[0] == 1200);
}

// 15 stacks of 16 MiB are the 256 MiB that such workgroups may hold. None of 40 ends within ten turns, by which
// time all of those with small stacks have started.
TEST_CASE("workgroups with large stacks take turns few at a time, and compute the same") {
  REQUIRE(at_ease == 15);
  Fixture f;
  Residents residents;
  f.settings.watch = &residents;
  const std::uint64_t out = f.buffer(std::uint64_t{40} * 64);
  CHECK(f.kernel("stacked_large").program->communicates());
  const LaunchResult small = f.run("stacked_small", grid(40, 64), out, 1000);
  CHECK(residents.most == 40);
  const std::vector<std::uint32_t> values = f.read(out, std::size_t{40} * 64);
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    std::uint32_t expected = i;
    for (int k = 0; k < 1000; ++k) expected = expected * 0x9e3779b1u + 0x1234567u;
    REQUIRE(values[i] == expected);
  }
  f.memory.release(out);

  const std::uint64_t again = f.buffer(std::uint64_t{40} * 64);
  const LaunchResult large = f.run("stacked_large", grid(40, 64), again, 1000);
  CHECK(residents.most == at_ease);
  CHECK(residents.now == 0);
  CHECK(large.instructions == small.instructions);
  CHECK(f.read(again, std::size_t{40} * 64) == values);
}

TEST_CASE("workgroups with large stacks that wait for each other all get on") {
  constexpr std::uint32_t blocks = at_ease + 3;
  Fixture f;
  Residents residents;
  f.settings.watch = &residents;
  f.settings.instruction_budget = 20'000'000;
  const std::uint64_t out = f.buffer(64 + std::uint64_t{blocks} * 64);
  f.run("stacked_rendezvous", grid(blocks, 64), out, blocks);
  CHECK(residents.most == blocks);
  CHECK(f.read(out, 1)[0] == blocks);
  const std::vector<std::uint32_t> values = f.read(out + 256, std::size_t{blocks} * 64);
  for (std::uint32_t i = 0; i < values.size(); ++i) REQUIRE(values[i] == i);
}

TEST_CASE("workgroups that wait for more than there is room for stop at the budget, which says so") {
  Fixture f;
  Residents residents;
  f.settings.watch = &residents;
  f.settings.instruction_budget = 5'000'000;
  f.settings.memory_budget = 3 * stacked_bytes;
  const std::uint64_t out = f.buffer(64 + std::uint64_t{4} * 64);
  const KernelFault memory = f.fault("stacked_rendezvous", grid(4, 64), out, 4);
  CHECK(memory.kind == FaultKind::instruction_budget);
  CHECK(residents.most == 3);
  CHECK(std::string(memory.what())
            .find("1 of 4 workgroups have not started, 3 at a time take the 48 MiB that they "
                  "may hold together; at ") != std::string::npos);
  f.settings.memory_budget = 1;
  CHECK(f.run("stacked_rendezvous", grid(1, 64), f.buffer(128), 1).instructions != 0);
  CHECK(residents.most == 1);

  f.settings.memory_budget = Settings().memory_budget;
  f.settings.watch = nullptr;
  Launch launch = grid(305, 64);
  launch.dynamic_lds_bytes = 65536;
  CHECK(f.fault("rendezvous", launch, f.buffer(1), 305).message ==
        "the budget of 5000000 wave instructions is used up; 1 of 305 workgroups have not started, 304 at a "
        "time fill "
        "the device");
  launch.blocks[0] = 304;
  f.run("rendezvous", launch, f.buffer(1), 304);
  // One that never gets on by itself is not told about others.
  CHECK(f.fault("endless", grid(400, 64)).message == "the budget of 5000000 wave instructions is used up");
}

TEST_CASE("runaway kernels stop at the budget, with the place") {
  Fixture f;
  f.settings.instruction_budget = 10000;
  const KernelFault endless = f.fault("endless", grid(4, 256));
  CHECK(endless.kind == FaultKind::instruction_budget);
  CHECK(endless.disassembly == "s_branch 65535");
  CHECK(endless.workgroup[0] == 0);
  f.settings.threads = 1;
  const KernelFault again = f.fault("endless", grid(4, 256));
  CHECK(std::string(again.what()) == endless.what());
  const std::uint64_t out = f.buffer(1);
  const KernelFault waiting = f.fault("rendezvous", grid(4, 64), out, 5);
  CHECK(waiting.kind == FaultKind::instruction_budget);
  const KernelFault sum = f.fault("hash", grid(64, 64), f.buffer(64 * 256));
  CHECK(sum.message.find("wave instructions in all, the budget is 10000") != std::string::npos);
}

TEST_CASE("a wave left alone at a barrier") {
  Fixture f;
  f.settings.instruction_budget = 10000;
  const KernelFault fault = f.fault("lonely", grid(1, 128));
  CHECK(fault.kind == FaultKind::barrier_deadlock);
  CHECK(fault.message.find("wave 0 waits at the barrier") != std::string::npos);
  CHECK(fault.message.find("wave 1, which runs on") != std::string::npos);
}

TEST_CASE(
    "a memory fault says which kernel, instruction, workgroup, wave, lane and buffer; the first in grid "
    "order") {
  for (const std::uint32_t threads : {1u, 2u}) {
    for (int repeat = 0; repeat < 5; ++repeat) {
      Fixture f;
      f.settings.threads = threads;
      const std::uint64_t out = f.buffer(5 * 128 - 1);
      const KernelFault fault = f.fault("overrun", grid(12, 128), out);
      CHECK(fault.kind == FaultKind::memory_write);
      CHECK(fault.kernel == "overrun");
      CHECK(fault.workgroup[0] == 4);
      CHECK(fault.wave == 1);
      CHECK(fault.lane == 63);
      CHECK(fault.disassembly == "global_store_dword v2, v1, s[8:9]");
      CHECK(fault.address == out + (5 * 128 - 1) * 4);
      CHECK(fault.message == fmt::format("global_store_dword writes 4 bytes at {:#x}, 0 bytes after the end "
                                         "of out (2556 bytes at {:#x})",
                                         fault.address, out));
      CHECK(std::string(fault.what()) ==
            fmt::format(
                "overrun: {}; at {:#x}: global_store_dword v2, v1, s[8:9] (workgroup 4,0,0 wave 1 lane 63)",
                fault.message, fault.pc));
      // pc is an address of the file: the instruction is the second but last of its function.
      CHECK(fault.pc ==
            f.kernel("overrun").kernel.entry_address + f.kernel("overrun").kernel.code_bytes - 12);
    }
  }
}

TEST_CASE("bad code is refused when it is reached, not before") {
  Fixture f;
  f.run("illegal", grid(1, 64), 0, 0);
  const KernelFault illegal = f.fault("illegal", grid(1, 64), 0, 1);
  CHECK(illegal.kind == FaultKind::illegal_instruction);
  CHECK(illegal.message.find("bfff0000") != std::string::npos);
  CHECK(illegal.disassembly == ".long 0xbfff0000");

  f.run("register", grid(1, 64), 0, 0);
  const KernelFault range = f.fault("register", grid(1, 64), 0, 1);
  CHECK(range.kind == FaultKind::register_range);
  CHECK(range.message == "v_mov_b32 uses v9, the kernel has 8 v-registers");

  f.run("jump", grid(1, 64), 0, 0);
  CHECK(f.fault("jump", grid(1, 64), 0, 1).message.find("32767 dwords away, outside the code") !=
        std::string::npos);
  CHECK(f.fault("jump", grid(1, 64), 0, 1).disassembly == "s_branch 32767");
  CHECK(f.fault("jump", grid(1, 64), 0, 2).message.find("middle of an instruction") != std::string::npos);
  const KernelFault nowhere = f.fault("jump", grid(1, 64), 0, 3);
  CHECK(nowhere.kind == FaultKind::bad_jump);
  CHECK(nowhere.address == 0x112345678);
  CHECK(f.fault("fallthrough", grid(1, 64)).message == "execution ran past the end of the code");
  CHECK(f.fault("trap", grid(1, 64)).kind == FaultKind::trap);
}

TEST_CASE("impossible launches are refused") {
  Fixture f;
  const std::uint64_t out = f.buffer(4096);
  CHECK(f.fault("hash", grid(1, 1025), out).kind == FaultKind::launch);
  CHECK(f.fault("hash", grid(0, 64), out).kind == FaultKind::launch);
  CHECK(f.fault("hash", grid(1, 0), out).kind == FaultKind::launch);
  Launch launch = grid(1, 64);
  launch.dynamic_lds_bytes = 65537;
  CHECK(f.fault("hash", launch, out).message == "65537 bytes of LDS per workgroup, gfx942 has 65536");
  launch.dynamic_lds_bytes = 65536;
  f.run("hash", launch, out);
  launch = grid(1, 64);
  launch.threads[1] = 0xffffffff;
  CHECK(f.fault("hash", launch, out).kind == FaultKind::launch);
  LoadedKernel big = f.kernel("hash");
  big.kernel.descriptor.rsrc1 |= 0x3f;  // 512 vector registers: four waves fill a compute unit
  CHECK_THROWS_AS(f.dispatcher.run(big, grid(1, 320), f.memory, f.settings), KernelFault);
}

TEST_CASE("execution counts per instruction") {
  Fixture f;
  const std::uint64_t out = f.buffer(64);
  std::vector<std::uint64_t> counts(f.kernel("loop").program->size());
  f.settings.counts = &counts;
  const LaunchResult result = f.run("loop", grid(3, 64), out, 10);
  std::uint64_t sum = 0;
  for (const std::uint64_t n : counts) sum += n;
  CHECK(sum == result.instructions);
  CHECK(counts[0] == 3);
  CHECK(counts[4] == 30);
}

TEST_CASE("a program knows which ways its conditional branches went") {
  Fixture f;
  const std::uint64_t out = f.buffer(64);
  const auto ways = [&](const char* name, const Launch& launch, std::uint64_t argument) {
    f.run(name, launch, out, argument);
    return f.kernel(name).program->take_branches();
  };
  CHECK(ways("loop", grid(1, 64), 1) == "1");
  CHECK(ways("loop", grid(1, 64), 2) == "3");
  CHECK(ways("leaver", grid(1, 64), 0) == "1");
  CHECK(ways("leaver", grid(8, 128), 0) == "3");
  CHECK(ways("illegal", grid(1, 64), 0) == "2");
  CHECK(f.kernel("illegal").program->take_branches() == "0");
  CHECK(ways("packet", grid(1, 64), 0).empty());
}

TEST_CASE("nothing of a launch stays in memory") {
  Fixture f;
  const std::uint64_t before = f.memory.in_use();
  f.run("packet", grid(1, 64), f.buffer(4));
  CHECK(f.memory.in_use() == before + 16);
  f.fault("trap", grid(1, 64));
  CHECK(f.memory.in_use() == before + 16);
}

}  // namespace attest::device::sim
