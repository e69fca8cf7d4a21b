// SPDX-License-Identifier: MIT
//
// The watched loop: what observers are told, and that watching changes nothing.
#include "device/simulator/detect/session.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "device/simulator/core/module.h"
#include "device/simulator/tests/file_bytes.h"

namespace attest::device::sim::detect {
namespace {

/// Counts what it is told; can hold instructions back.
struct Log final : LaunchWatch {
  struct Group final : WorkgroupWatch {
    Group(Log& owner, Workgroup& of) : log(owner), group(of) {}
    bool before(Wave& wave, std::uint32_t index, std::uint64_t number) override {
      ++log.before;
      if (number != wave.instructions) ++log.wrong;
      return !log.hold || wave.program->code()[index].instruction.op != Op::global_store_dword;
    }
    void after(Wave&, std::uint32_t, std::uint64_t) override { ++log.after; }
    void barrier() override {
      ++log.barriers;
      for (std::uint32_t k = 0; k < group.wave_count; ++k)
        if (group.waves[k].state == WaveState::running) ++log.wrong;
    }
    void end() override { ++log.ends; }
    Log& log;
    Workgroup& group;
  };
  void begin(const LaunchView& view) override {
    ++begins;
    defined_sgprs = view.defined_sgprs;
  }
  std::unique_ptr<WorkgroupWatch> watch(Workgroup& group, std::uint64_t id) override {
    ids.push_back(id);
    return std::make_unique<Group>(*this, group);
  }
  void end() override { ++finished; }

  bool hold = false;
  std::uint64_t before = 0, after = 0, barriers = 0, ends = 0, begins = 0, finished = 0, wrong = 0,
                defined_sgprs = 0;
  std::vector<std::uint64_t> ids;
};

struct Fixture {
  Fixture() : module(memory, file_bytes(ATTEST_TEST_KERNELS)) {}
  LaunchResult run(const char* name, std::uint32_t blocks, std::uint32_t threads, std::uint64_t out,
                   std::uint64_t argument = 0) {
    Launch launch;
    launch.blocks[0] = blocks;
    launch.threads[0] = threads;
    const std::uint64_t block[2] = {out, argument};
    launch.kernarg = std::as_bytes(std::span(block));
    const LoadedKernel* kernel = module.kernel(name);
    REQUIRE(kernel != nullptr);
    return dispatcher.run(*kernel, launch, memory, settings);
  }

  Memory memory{0};
  LoadedModule module;
  Dispatcher dispatcher;
  Settings settings;
};

}  // namespace

TEST_CASE("a watcher is told of every instruction, barrier and workgroup, in grid order") {
  Fixture f;
  Log log;
  f.settings.watch = &log;
  const std::uint64_t out = f.memory.allocate(256 * 4, "out").value();
  const LaunchResult result = f.run("reverse", 5, 256, out);
  CHECK(log.before == result.instructions);
  CHECK(log.after == result.instructions);
  CHECK(log.barriers == 5);
  CHECK(log.ends == 5);
  CHECK(log.begins == 1);
  CHECK(log.finished == 1);
  CHECK(log.wrong == 0);
  CHECK(log.ids == std::vector<std::uint64_t>{0, 1, 2, 3, 4});
  CHECK(log.defined_sgprs == 0x7);  // kernel arguments in s[0:1], workgroup id x in s2
  std::uint32_t first = 0;
  std::memcpy(&first, f.memory.translate(out, 4), 4);
  CHECK(first == 255 * 3);
}

TEST_CASE("an instruction that a watcher takes over is not executed") {
  Fixture f;
  Log log;
  log.hold = true;
  f.settings.watch = &log;
  const std::uint64_t out = f.memory.allocate(256 * 4, "out").value();
  f.run("reverse", 1, 256, out);
  CHECK(log.after == log.before - 4);
  std::uint32_t first = 1;
  std::memcpy(&first, f.memory.translate(out, 4), 4);
  CHECK(first == 0);
}

TEST_CASE("a faulting launch ends its watch") {
  Fixture f;
  Log log;
  f.settings.watch = &log;
  f.settings.instruction_budget = 1000;
  CHECK_THROWS_AS(f.run("endless", 1, 64, 0), KernelFault);
  CHECK(log.finished == 1);
  CHECK(log.ends == 0);
}

TEST_CASE("hazards of one pair count as one, the worst come first") {
  Report report;
  Hazard h;
  h.kernel = "k";
  h.at = {0x10, "v_mov_b32 v0, v1"};
  h.with = {0x8, "global_load_dword v1, v0, s[0:1]"};
  h.rank = 2;
  h.lane = 3;
  report.add(h);
  h.lane = 7;
  report.add(h);
  CHECK_FALSE(report.fresh("k", h.detector, 0x10, 0x8));
  CHECK(report.fresh("k", h.detector, 0x10, 0xc));
  Hazard worse = h;
  worse.at.pc = 0x20;
  worse.rank = 1;
  report.add(worse);
  Hazard advisory = h;
  advisory.at.pc = 0x30;
  advisory.rank = 0;
  advisory.severity = Severity::advisory;
  report.add(advisory);

  const std::vector<Hazard> ranked = report.ranked();
  REQUIRE(ranked.size() == 3);
  CHECK(ranked[0].at.pc == 0x20);
  CHECK(ranked[1].at.pc == 0x10);
  CHECK(ranked[1].count == 3);
  CHECK(ranked[1].lane == 3);
  CHECK(ranked[2].severity == Severity::advisory);
  CHECK(ranked[1].signature() == "k uninitialised 0x10 0x8");
  const nlohmann::json json = ranked[1];
  CHECK(json["detector"] == "uninitialised");
  CHECK(json["at"]["pc"] == 0x10);
  CHECK(json["with"]["disassembly"] == "global_load_dword v1, v0, s[0:1]");
  CHECK(json["count"] == 3);
}

}  // namespace attest::device::sim::detect
