// SPDX-License-Identifier: MIT
//
// Never-written and not bit-exact data: kernels in which it gets where it matters (dataflow.s), each caught
// by name, and the same kernels mended, in which the same garbage lies about and reaches nothing.
#include <catch2/catch.hpp>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "device/simulator/core/module.h"
#include "device/simulator/detect/session.h"
#include "device/simulator/detect/sources.h"
#include "device/simulator/tests/file_bytes.h"

namespace attest::device::sim::detect {
namespace {

struct Fixture {
  explicit Fixture(const char* path = ATTEST_DATAFLOW_KERNELS) : module(memory, file_bytes(path)) {
    settings.watch = &session;
    memory.keep_notes(true);
    DetectorSet set;
    set.add(Detector::uninitialised);
    set.add(Detector::fidelity);
    session.choose(set);
  }

  std::vector<Hazard> run(const std::string& name, std::uint32_t blocks = 1, std::uint32_t threads = 64) {
    const std::uint64_t out = memory.allocate(4096, "out").value();
    const std::uint64_t in = memory.allocate(4096, "in").value();
    memory.mark(in, 4096, true);
    const std::uint64_t block[3] = {out, in, 40};  // the third: a length, for compiled kernels
    Launch launch;
    launch.blocks[0] = blocks;
    launch.threads[0] = threads;
    launch.kernarg = std::as_bytes(std::span(block));
    const LoadedKernel* kernel = module.kernel(name);
    INFO(name);
    REQUIRE(kernel != nullptr);
    dispatcher.run(*kernel, launch, memory, settings);
    memory.release(out);
    memory.release(in);
    findings = session.take();
    return findings.report.ranked();
  }

  Memory memory{0};
  LoadedModule module;
  Dispatcher dispatcher;
  Settings settings;
  Session session;
  Findings findings;
};

struct Planted {
  const char* name;
  Detector detector;
  const char *with, *at;  ///< how the two instructions begin; with "": none, a register at entry
  const char* says;
  int lane;
};

constexpr Detector undefined = Detector::uninitialised, inexact = Detector::fidelity;

const Planted planted[] = {
    {"register_stored", undefined, "", "global_store_dword", "v5, never written, is stored", 0},
    {"register_address", undefined, "", "global_load_dword", "v5, never written, is an address", 0},
    {"register_bytes", undefined, "", "global_store_dword", "v2, never written, is stored", 0},
    {"register_halves", undefined, "", "global_store_dword", "v2, never written, is stored", 0},
    {"register_lanes", undefined, "", "global_store_dword", "v5, never written, is stored", 32},
    {"register_selected", undefined, "", "global_store_dword", "v5, never written, is stored", 32},
    {"register_neighbour", undefined, "", "global_store_dword", "v5, never written, is stored", 30},
    {"register_permuted", undefined, "", "global_store_dword", "v5, never written, is stored", 0},
    {"register_matrix", undefined, "", "global_store_dword", "v10, never written, is stored", 3},
    {"scalar_branch", undefined, "", "s_cbranch_scc1", "s20, never written, decides a branch", -1},
    {"scalar_memory", undefined, "s_load_dword s20", "s_cbranch_scc1", "never-written out decides a branch",
     0},
    {"mask_branch", undefined, "", "s_cbranch_vccz", "v5, never written, decides a branch", 0},
    {"mask_store", undefined, "", "global_store_dword", "v5, never written, decides whether this is stored",
     0},
    {"scalar_spilled", undefined, "", "s_cbranch_scc1", "v9, never written, decides a branch", -1},
    {"mask_spilled", undefined, "", "s_cbranch_scc0", "v5, never written, decides a branch", -1},
    {"memory_global", undefined, "global_load_dword v2", "global_store_dword", "never-written out is stored",
     0},
    {"memory_own", undefined, "global_load_dword v2", "global_store_dword", "never-written out is stored", 0},
    {"memory_lds", undefined, "ds_read_b32", "global_store_dword", "never-written LDS is stored", 0},
    {"memory_through", undefined, "", "global_store_dword",
     "v5, never written, went through LDS and is stored", 0},
    {"memory_scratch", undefined, "scratch_load_dword", "global_store_dword",
     "never-written scratch is stored", 0},
    {"memory_dma", undefined, "buffer_load_dword v1", "global_store_dword",
     "never-written out went through LDS and is stored", 0},
    {"memory_dma_bytes", undefined, "ds_read_u16", "global_store_dword", "never-written LDS is stored", 0},
    {"memory_clipped", undefined, "buffer_load_dword", "global_store_dword", "never-written out is stored",
     0},
    {"inexact_address", inexact, "v_exp_f32", "global_load_dword", "not bit-exact is an address", 0},
    {"inexact_branch", inexact, "v_exp_f32", "s_cbranch_vccz", "not bit-exact decides a branch", 0},
    {"inexact_close", inexact, "v_exp_f32", "s_cbranch_vccz", "not bit-exact decides a branch", 0},
    {"register_wide", undefined, "", "global_store_dword", "v4, never written, is stored", 0},
    {"inexact_through", inexact, "ds_read_b32", "s_cbranch_scc1", "not bit-exact decides a branch", -1},
};

}  // namespace

TEST_CASE("data that nobody wrote, and results that are not bit-exact, are caught where they matter") {
  Fixture f;
  for (const Planted& p : planted) {
    const std::vector<Hazard> hazards = f.run(std::string(p.name) + "_bad");
    std::string lines;
    for (const Hazard& h : hazards) lines += h.line() + "\n";
    INFO(p.name << ":\n" << lines);
    CHECK(hazards.size() == 1);
    if (hazards.empty()) continue;
    const Hazard& h = hazards[0];
    CHECK(h.detector == p.detector);
    CHECK(h.severity == (p.detector == undefined ? Severity::hard : Severity::advisory));
    CHECK(h.at.disassembly.starts_with(p.at));
    CHECK(h.with.disassembly.starts_with(p.with));
    CHECK(h.with.disassembly.empty() == (*p.with == '\0'));
    CHECK(h.message.find(p.says) != std::string::npos);
    CHECK(h.lane == p.lane);
  }
}

TEST_CASE("the mended kernels are silent") {
  Fixture f;
  for (const Planted& p : planted) {
    for (const Hazard& h : f.run(std::string(p.name) + "_good")) FAIL_CHECK(h.line());
  }
}

// Compiled kernels: what the compiler makes of the fault is its own affair, so only the message is looked at.
TEST_CASE("faults that a compiler lets through") {
  struct Compiled {
    const char* name;
    Detector detector;
    const char* says;
  };
  Fixture f(ATTEST_DATAFLOW_HIP_KERNELS);
  for (const Compiled& p : {Compiled{"tail", undefined, "never-written LDS is stored"},
                            Compiled{"merge", undefined, "never-written out is stored"},
                            Compiled{"table", undefined, "never-written LDS is an address"},
                            Compiled{"staged", undefined, "never-written out went through LDS and is stored"},
                            Compiled{"local", undefined, "never-written scratch is stored"},
                            Compiled{"estimate", inexact, "not bit-exact is an address"}}) {
    const std::vector<Hazard> hazards = f.run(std::string(p.name) + "_bad");
    std::string lines;
    for (const Hazard& h : hazards) lines += h.line() + "\n";
    INFO(p.name << ":\n" << lines);
    CHECK(hazards.size() == 1);
    if (hazards.empty()) continue;
    CHECK(hazards[0].detector == p.detector);
    CHECK(hazards[0].message.find(p.says) != std::string::npos);
    for (const Hazard& h : f.run(std::string(p.name) + "_good")) FAIL_CHECK(h.line());
  }
  for (const Hazard& h : f.run("division_good")) FAIL_CHECK(h.line());
  CHECK(f.findings.executed.contains(Op::v_rcp_iflag_f32));
}

TEST_CASE("where never-written memory was read is part of the report") {
  Fixture f;
  const std::vector<Hazard> hazards = f.run("memory_global_bad");
  REQUIRE(hazards.size() == 1);
  CHECK(hazards[0].buffer == "out");
  CHECK(hazards[0].offset == 256);
  CHECK(hazards[0].distance == 2);
  CHECK(hazards[0].trip == 0);
  CHECK(hazards[0].wave == 0);
  CHECK(hazards[0].count == 1);
}

// The buffer of the hazard, and the byte in it; "": none. Threads: two waves where one leaves it to the other.
TEST_CASE("never-written data that went through LDS or scratch is reported where it came from") {
  struct Travelled {
    const char* name;
    std::uint32_t blocks, threads;
    const char *with, *at, *says, *buffer;
    std::uint64_t offset;
    int wave, other_wave, lane;
    std::int64_t distance;
  };
  constexpr const char *load = "global_load_dword v2", *store = "global_store_dword";
  constexpr Travelled all[] = {
      {"through_lds", 1, 64, load, store, "never-written out went through LDS and is stored", "out", 256, 0,
       -1, 0, 5},
      {"through_waves", 1, 128, load, "global_load_dword v4",
       "never-written out went through LDS and is an address", "out", 508, 1, 0, 0, -1},
      {"through_waves_register", 1, 128, "", store,
       "v5 of wave 0, never written, went through LDS and is stored", "", 0, 1, 0, 0, -1},
      {"through_scratch", 1, 64, load, "s_cbranch_vccz",
       "never-written out went through scratch and decides a branch", "out", 256, 0, -1, 0, 8},
      {"through_scratch_lanes", 1, 64, load, store, "never-written out went through scratch and is stored",
       "out", 384, 0, -1, 32, 12},
      {"through_scratch_waves", 1, 128, load, store, "never-written out went through scratch and is stored",
       "out", 256, 0, -1, 0, 7},
      {"memory_upper", 1, 64, load, store, "never-written out is stored", "out", 384, 0, -1, 32, 3},
      {"memory_flat", 1, 64, "flat_load_dword", store, "never-written out is stored", "out", 128, 0, -1, 32,
       3},
      {"through_dma_backwards", 1, 64, "buffer_load_dword v1", store,
       "never-written out went through LDS and is stored", "out", 248, 0, -1, 0, 6},
      {"through_both", 1, 64, load, store, "never-written out went through LDS and scratch and is stored",
       "out", 256, 0, -1, 0, 9},
      {"through_two", 1, 64, "global_load_dword v3", store,
       "never-written out went through LDS and is stored", "out", 512, 0, -1, 0, 5},
      {"through_beside", 1, 64, "ds_read_b32", store, "never-written LDS is stored", "LDS", 0, 0, -1, 0, 2},
      {"through_wide", 1, 64, "global_load_dword v3", store,
       "never-written out went through LDS and is stored", "out", 512, 0, -1, 0, 5},
      {"through_mixed", 1, 64, "ds_read2st64_b32", store, "never-written LDS is stored", "LDS", 256, 0, -1, 0,
       2},
      {"through_replaced", 1, 64, load, store, "never-written out went through LDS and is stored", "out", 256,
       0, -1, 0, 6},
      {"through_again", 1, 64, "", store, "v5, never written, went through LDS and is stored", "", 0, 0, -1,
       0, -1},
      {"through_loop", 1, 64, load, store, "never-written out went through LDS and is stored", "out", 512, 0,
       -1, 0, 19},
      {"through_groups", 3, 64, "ds_read_b32", store, "never-written LDS is stored", "LDS", 0, 0, -1, 0, 2},
      {"through_groups_scratch", 3, 64, "scratch_load_dword", store, "never-written scratch is stored",
       "scratch", 8, 0, -1, 0, 2},
      {"through_scratch_dma", 1, 64, load, store,
       "never-written out went through LDS and scratch and is stored", "out", 256, 0, -1, 0, 10},
      {"memory_dma", 1, 64, "buffer_load_dword v1", store, "never-written out went through LDS and is stored",
       "out", 0, 0, -1, 0, 4},
  };
  Fixture f;
  for (const Travelled& t : all) {
    const std::vector<Hazard> hazards = f.run(std::string(t.name) + "_bad", t.blocks, t.threads);
    std::string lines;
    for (const Hazard& h : hazards) lines += h.line() + "\n";
    INFO(t.name << ":\n" << lines);
    CHECK(hazards.size() == 1);
    for (const Hazard& h : f.run(std::string(t.name) + "_good", t.blocks, t.threads)) FAIL_CHECK(h.line());
    if (hazards.empty()) continue;
    const Hazard& h = hazards[0];
    CHECK(h.message == t.says);
    CHECK(h.at.disassembly.starts_with(t.at));
    CHECK(h.with.disassembly.starts_with(t.with));
    CHECK(h.with.none() == (*t.with == '\0'));
    CHECK(h.buffer == t.buffer);
    CHECK(h.offset == t.offset);
    CHECK(h.wave == t.wave);
    CHECK(h.other_wave == t.other_wave);
    CHECK(h.lane == t.lane);
    CHECK(h.distance == t.distance);
    CHECK(h.trip == 0);
  }
}

TEST_CASE("kept sources stay as they were, and do not grow for ever") {
  constexpr Origin load = origin::instruction(7);
  constexpr std::uint64_t told_apart = 4096, all = 10'000;
  Sources sources;
  Places places;
  std::vector<Origin> kept;
  for (std::uint64_t n = 0; n < all; ++n) {
    places = Places();
    places.add(Space::global, 5, 65536 + n);
    places.add(Space::scratch, 8, 131072 + n);
    places.add(Space::lds, 8, 0);
    sources.loaded({load, 3, n}, places);
    kept.push_back(sources.keep(load, 3, Space::lds));
    CHECK(sources.keep(load, 3, Space::lds) == kept.back());
  }
  CHECK(sources.find(load, 3, -1).number == all - 1);
  CHECK(sources.find(load, 3, -1).address == 65536 + all - 1);
  CHECK(sources.find(load, 3, 8).address == 131072 + all - 1);
  CHECK(sources.find(load, 3, 8).space == Space::scratch);
  CHECK(sources.find(load, 3, 5).space == Space::global);
  CHECK(sources.find(load, 3, 6).lane == 5);
  CHECK(sources.find(load, 2, 5).lane == -1);
  for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{1}, told_apart - 1})
    CHECK(sources.find(kept[n], 0, 0).number == n);
  CHECK(sources.find(kept.back(), 0, 0).number == all - 1);
  CHECK(std::set<Origin>(kept.begin(), kept.end()).size() == told_apart + 1);

  // Once more, by way of scratch, in another wave: the lane is still the load's.
  const Origin of_8 = Sources::of_lane(kept[1], load, 8);
  const Origin again = sources.keep(of_8, 0, Space::scratch);
  const Source twice = sources.find(Sources::of_lane(again, of_8, 40), 1, 5);
  CHECK((twice.wave == 3 && twice.number == 1 && twice.lane == 8 && twice.address == 131073));
  CHECK((twice.through_lds && twice.through_scratch));
  CHECK_FALSE(sources.find(of_8, 0, 0).through_scratch);

  // A register is another one in every wave.
  const Origin of_0 = sources.keep(origin::vector + 5, 0, Space::lds);
  CHECK(of_0 != sources.keep(origin::vector + 5, 1, Space::lds));
  CHECK((sources.find(of_0, 1, 0).wave == 0 && sources.find(of_0, 1, 0).origin == origin::vector + 5));
}

TEST_CASE("detectors that are not chosen say nothing") {
  Fixture f;
  DetectorSet only;
  only.add(inexact);
  f.session.choose(only);
  CHECK(f.run("register_stored_bad").empty());
  only = DetectorSet();
  only.add(undefined);
  f.session.choose(only);
  CHECK(f.run("inexact_branch_bad").empty());
  CHECK(f.findings.executed.empty());
}

TEST_CASE("the ledger counts what was executed") {
  Fixture f;
  f.run("inexact_branch_bad", 3, 128);
  CHECK(f.findings.executed.at(Op::v_exp_f32) == 6);
  CHECK(f.findings.executed.at(Op::s_endpgm) == 6);
  const nlohmann::json ledger = to_json(f.findings)["fidelity"];
  REQUIRE(ledger.size() == f.findings.executed.size());
  CHECK(ledger[0]["op"] == "v_exp_f32");
  CHECK(ledger[0]["exactness"] == "approximate");
  CHECK(ledger[0]["ulp"] == 1);
  CHECK(ledger[0]["count"] == 6);
  CHECK(ledger[1]["exactness"] == "exact");
}

}  // namespace attest::device::sim::detect
