// SPDX-License-Identifier: MIT
//
// For each detector: kernels with exactly one planted fault (hazards.s, hazards.hip), each caught by that
// detector and no other with all of them on, and the same kernels mended, on which all are silent.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "device/simulator/core/module.h"
#include "device/simulator/detect/session.h"
#include "device/simulator/tests/file_bytes.h"

namespace attest::device::sim::detect {
namespace {

struct Fixture {
  explicit Fixture(const char* path = ATTEST_HAZARD_KERNELS) : module(memory, file_bytes(path)) {
    settings.watch = &session;
    session.choose(DetectorSet::all());
  }

  std::vector<Hazard> run(const std::string& name, std::uint32_t blocks, std::uint32_t threads) {
    const std::uint64_t out = memory.allocate(64 * 1024, "out").value();
    const std::uint64_t in = memory.allocate(64 * 1024, "in").value();
    for (std::uint32_t k = 1; k < 1024; ++k) {
      const std::uint32_t value = 3 * k;  // in[0] counts workgroups, from 0
      std::memcpy(memory.translate(in + 4 * k, 4), &value, 4);
    }
    const std::uint64_t block[2] = {out, in};
    Launch launch;
    launch.blocks[0] = blocks;
    launch.threads[0] = threads;
    launch.kernarg = std::as_bytes(std::span(block));
    const LoadedKernel* kernel = module.kernel(name);
    INFO(name);
    REQUIRE(kernel != nullptr);
    dispatcher.run(*kernel, launch, memory, settings);
    result.assign(1024, 0);
    std::memcpy(result.data(), memory.translate(out, 4096), 4096);
    memory.release(out);
    memory.release(in);
    return session.take().report.ranked();
  }

  Memory memory{0};
  LoadedModule module;
  Dispatcher dispatcher;
  Settings settings;
  Session session;
  std::vector<std::uint32_t> result;  ///< of `out` after the last run
};

std::string lines(const std::vector<Hazard>& hazards) {
  std::string all;
  for (const Hazard& h : hazards) all += h.line() + "\n";
  return all;
}

/// A planted fault and what its hazard must say.
struct Planted {
  const char* name;
  std::uint32_t blocks, threads;
  Detector detector;
  Severity severity;
  const char *with, *at;  ///< how the two instructions begin
  const char* says;       ///< part of the message
};

constexpr Severity hard = Severity::hard, advisory = Severity::advisory;

const Planted planted[] = {
    {"wait_removed", 1, 64, Detector::waits, hard, "global_load_dword v2", "v_add_u32_e32 v2",
     "v2 is read before the load that fills it must have arrived; s_waitcnt vmcnt(0) is missing"},
    {"wait_count", 1, 64, Detector::waits, hard, "global_load_dword v3", "v_add_u32_e32 v2",
     "vmcnt(0) is missing"},
    {"wait_store_counts", 1, 64, Detector::waits, hard, "global_load_dword v2", "v_add_u32_e32 v3",
     "vmcnt(1) is missing"},
    {"wait_scalar_order", 1, 64, Detector::waits, hard, "s_load_dword s16", "v_mov_b32_e32 v2, s16",
     "s16 is read before the load that fills it must have arrived; s_waitcnt lgkmcnt(0) is missing"},
    {"wait_lds_order", 1, 64, Detector::waits, hard, "ds_read_b32 v2", "v_add_u32_e32 v4",
     "lgkmcnt(1) is missing"},
    {"wait_flat_both", 1, 64, Detector::waits, hard, "flat_load_dword", "v_add_u32_e32 v3",
     "s_waitcnt lgkmcnt(0) is missing"},
    {"wait_overwrite", 1, 64, Detector::waits, hard, "global_load_dword v2", "v_mov_b32_e32 v2, 7",
     "v2 is overwritten before"},
    {"wait_lanes", 1, 64, Detector::waits, hard, "global_load_dword v2", "v_add_u32_e32 v3",
     "v2 is read before"},
    {"dma_wait", 1, 64, Detector::lds_dma, hard, "buffer_load_dword v1", "ds_read_b32",
     "s_waitcnt vmcnt(0) is missing"},
    {"dma_bytes", 1, 64, Detector::lds_dma, hard, "buffer_load_dword v1", "ds_read_u16 v2",
     "s_waitcnt vmcnt(0) is missing"},
    {"dma_halves", 1, 64, Detector::lds_dma, hard, "buffer_load_dword v1", "ds_read_u16",
     "s_waitcnt vmcnt(0) is missing"},
    {"dma_over", 1, 64, Detector::lds_dma, hard, "buffer_load_dword v1, s[8:11], 0 offen lds", "ds_read_u16",
     "s_waitcnt vmcnt(1) is missing"},
    {"dma_beside", 1, 128, Detector::lds_dma, hard, "buffer_load_dword v1", "ds_write_b16",
     "written and, with no barrier in between, written by wave 0"},
    {"dma_barrier", 1, 128, Detector::lds_dma, hard, "buffer_load_dword v1", "ds_read_b32",
     "no barrier in between"},
    {"lds_barrier", 1, 256, Detector::lds_race, hard, "ds_write_b32", "ds_read_b32",
     "LDS is read and, with no barrier in between, written by wave"},
    {"lds_edge", 1, 128, Detector::lds_race, hard, "ds_write_b32", "ds_read_b32",
     "LDS is read and, with no barrier in between, written by wave 1"},
    {"lds_edge_dword", 1, 128, Detector::lds_race, hard, "ds_write_b32", "ds_read_b32",
     "LDS is read and, with no barrier in between, written by wave"},
    {"lds_wide", 1, 256, Detector::lds_race, hard, "ds_write_b128", "ds_read_b128",
     "LDS is read and, with no barrier in between, written by wave"},
    {"lds_part", 1, 256, Detector::lds_race, hard, "ds_write_b32", "ds_read_b128",
     "LDS is read and, with no barrier in between, written by wave"},
    {"lds_reuse", 1, 256, Detector::lds_race, hard, "ds_read_b32", "ds_write_b32",
     "LDS is written and, with no barrier in between, read by wave"},
    {"lds_writers", 1, 256, Detector::lds_race, hard, "ds_write_b32", "ds_write_b32", "written by wave"},
    {"lds_bytes", 1, 256, Detector::lds_race, hard, "ds_write_b8", "ds_write_b8", "written by wave"},
    {"lds_unwaited", 1, 256, Detector::lds_race, advisory, "ds_write_b32", "ds_read_b32",
     "did not wait for lgkmcnt(0)"},
    {"global_overlap", 4, 64, Detector::global_race, hard, "global_store_dword", "global_store_dword",
     "written by workgroup 0, which nothing orders"},
    {"global_neighbour", 4, 64, Detector::global_race, hard, "", "", "which nothing orders"},
    {"global_barrier", 1, 256, Detector::global_race, hard, "global_store_dword", "global_load_dword",
     "no barrier in between"},
    {"global_epochs", 1, 256, Detector::global_race, hard, "global_load_dword", "global_store_dword",
     "memory is written and, with no barrier in between, read by another wave"},
    {"global_last", 4, 64, Detector::global_race, hard, "global_store_dword", "global_load_dword",
     "which nothing orders"},
    {"barrier_trips", 1, 128, Detector::barrier, hard, "s_endpgm", "s_barrier",
     "wave 1 has ended after 2 barriers"},
    {"barrier_sides", 1, 128, Detector::barrier, advisory, "s_barrier", "s_barrier", "different s_barrier"},
    {"state_trans", 1, 64, Detector::wait_states, hard, "v_exp_f32", "v_mul_f32",
     "0 wait states in between, 1 needed"},
    {"state_partial", 1, 64, Detector::wait_states, hard, "v_add_u32_sdwa", "v_add_u32_e32", "1 needed"},
    {"state_readlane", 1, 64, Detector::wait_states, hard, "v_add_u32", "v_readfirstlane_b32", "1 needed"},
    {"state_dpp", 1, 64, Detector::wait_states, hard, "v_add_u32", "v_mov_b32_dpp",
     "0 wait states in between, 2 needed"},
    {"state_dpp_near", 1, 64, Detector::wait_states, advisory, "v_add_u32", "v_mov_b32_dpp",
     "1 wait state in between, 2 needed"},
    {"state_sgpr_valu", 1, 64, Detector::wait_states, hard, "v_cmp_lt_u32", "v_cndmask_b32",
     "s16: a VALU result in an SGPR"},
    {"state_sgpr_vmem", 1, 64, Detector::wait_states, hard, "v_readfirstlane_b32 s18", "global_store_dword",
     "4 wait states in between, 5 needed"},
    {"state_lane_select", 1, 64, Detector::wait_states, hard, "v_readfirstlane_b32", "v_readlane_b32",
     "3 wait states in between, 4 needed"},
    {"state_lane_select_branch", 1, 64, Detector::wait_states, hard, "v_readfirstlane_b32", "v_readlane_b32",
     "3 wait states in between, 4 needed"},
    {"state_dpp_branch", 1, 64, Detector::wait_states, advisory, "v_add_u32", "v_mov_b32_dpp",
     "1 wait state in between, 2 needed"},
    {"state_div_fmas", 1, 64, Detector::wait_states, hard, "v_cmp_lt_u32", "v_div_fmas_f32", "4 needed"},
    {"state_exec_dpp", 1, 64, Detector::wait_states, hard, "v_cmpx_le_u32", "v_mov_b32_dpp", "5 needed"},
    {"state_store_data", 1, 64, Detector::wait_states, hard, "global_store_dwordx4", "v_mov_b32_e32 v5, 9",
     "2 needed"},
    {"state_setreg", 1, 64, Detector::wait_states, hard, "s_setreg_imm32_b32", "s_getreg_b32", "2 needed"},
    {"state_m0_dma", 1, 64, Detector::wait_states, advisory, "s_mov_b32 m0", "buffer_load_dword", "1 needed"},
    {"state_valu_mfma", 1, 64, Detector::wait_states, hard, "v_mov_b32_e32 v8", "v_mfma",
     "1 wait state in between, 2 needed"},
    {"state_mfma_valu", 1, 64, Detector::wait_states, hard, "v_mfma", "v_add_f32",
     "6 wait states in between, 7 needed"},
    {"state_mfma_store", 1, 64, Detector::wait_states, hard, "v_mfma", "global_store_dword",
     "18 wait states in between, 19 needed"},
    {"state_mfma_operand", 1, 64, Detector::wait_states, hard, "v_mfma", "v_mfma",
     "read as A or B: 6 wait states in between, 7 needed"},
    {"state_mfma_overlap", 1, 64, Detector::wait_states, hard, "v_mfma", "v_mfma",
     "read as C: 4 wait states in between, 5 needed"},
    {"state_mfma_waw", 1, 64, Detector::wait_states, hard, "v_mfma", "v_mov_b32_e32 v16",
     "overwritten: 6 wait states in between, 7 needed"},
    {"state_mfma_war", 1, 64, Detector::wait_states, hard, "v_mfma", "v_mov_b32_e32 v12",
     "the C of an MFMA, overwritten by VALU: 2 wait states in between, 3 needed"},
};

// What clang makes of hazards.hip decides which instructions are named.
const Planted compiled[] = {
    {"hip_reduce", 1, 256, Detector::lds_race, hard, "ds_write", "ds_read",
     "LDS is read and, with no barrier"},
    {"hip_buffers", 1, 256, Detector::lds_race, hard, "ds_", "ds_", "no barrier in between"},
    {"hip_rows", 4, 128, Detector::global_race, hard, "global_store", "global_store", "which nothing orders"},
    {"hip_neighbour", 4, 64, Detector::global_race, hard, "global_", "global_", "which nothing orders"},
    {"hip_trips", 1, 256, Detector::barrier, hard, "s_endpgm", "s_barrier", "wave 0 has ended after"},
};

void check_caught(Fixture& f, const Planted& p) {
  const std::vector<Hazard> hazards = f.run(std::string(p.name) + "_bad", p.blocks, p.threads);
  INFO(p.name << "\n" << lines(hazards));
  CHECK_FALSE(hazards.empty());
  if (hazards.empty()) return;
  for (const Hazard& h : hazards) CHECK(h.detector == p.detector);
  const Hazard& h = hazards.front();
  CHECK(h.severity == p.severity);
  CHECK(h.message.find(p.says) != std::string::npos);
  CHECK(h.with.disassembly.rfind(p.with, 0) == 0);
  CHECK(h.at.disassembly.rfind(p.at, 0) == 0);
  CHECK(h.kernel == std::string(p.name) + "_bad");
}

void check_silent(Fixture& f, const Planted& p) {
  const std::vector<Hazard> hazards = f.run(std::string(p.name) + "_good", p.blocks, p.threads);
  INFO(p.name << "\n" << lines(hazards));
  CHECK(hazards.empty());
}

}  // namespace

TEST_CASE("Each planted fault is caught by its detector and by no other") {
  Fixture assembled;
  for (const Planted& p : planted) check_caught(assembled, p);
  Fixture from_hip(ATTEST_HAZARD_HIP_KERNELS);
  for (const Planted& p : compiled) check_caught(from_hip, p);
}

TEST_CASE("The same kernels mended are silent") {
  Fixture assembled;
  for (const Planted& p : planted) check_silent(assembled, p);
  Fixture from_hip(ATTEST_HAZARD_HIP_KERNELS);
  for (const Planted& p : compiled) check_silent(from_hip, p);
}

TEST_CASE("A detector that is off says nothing") {
  Fixture f;
  for (const Planted& p : planted) {
    DetectorSet others = DetectorSet::all();
    others.remove(p.detector);
    f.session.choose(others);
    const std::vector<Hazard> hazards = f.run(std::string(p.name) + "_bad", p.blocks, p.threads);
    INFO(p.name << "\n" << lines(hazards));
    CHECK(hazards.empty());
  }
}

namespace {

void choose(Fixture& f, const Schedule& schedule) {
  f.settings.seed = schedule.seed;
  f.settings.quantum = schedule.quantum;
  f.settings.skew = schedule.skew;
  f.session.deliver(schedule.delivery);
}

}  // namespace

TEST_CASE("A load that is not waited for brings its data late") {
  Fixture f;
  f.session.choose({});
  const auto second = [&f](const char* name, Delivery delivery) {
    choose(f, {.delivery = delivery});
    f.run(name, 1, 64);
    return f.result[1];
  };
  // in[1] is 3.
  CHECK(second("wait_removed_bad", Delivery::immediate) == 4);
  CHECK(second("wait_removed_bad", Delivery::poison) == undefined_register + 1);
  CHECK(second("wait_removed_good", Delivery::poison) == 4);
  CHECK(second("wait_overwrite_bad", Delivery::immediate) == 7);
  CHECK(second("wait_overwrite_bad", Delivery::stale) == 3);
  CHECK(second("wait_overwrite_good", Delivery::stale) == 7);
  CHECK(second("dma_wait_bad", Delivery::immediate) == 3);
  CHECK(second("dma_wait_bad", Delivery::stale) == 0xffffffff);
  CHECK(second("dma_wait_bad", Delivery::poison) == undefined_register);
  CHECK(second("dma_wait_good", Delivery::poison) == 3);
  CHECK(second("wait_lds_order_bad", Delivery::poison) == undefined_register + 2);
  CHECK(second("wait_lds_order_good", Delivery::poison) == 3);
}

TEST_CASE("What a mended kernel computes depends on no schedule") {
  Fixture f;
  for (const Planted& p : planted) {
    choose(f, {});
    f.run(std::string(p.name) + "_good", p.blocks, p.threads);
    const std::vector<std::uint32_t> plain = f.result;
    for (const Schedule& schedule : Schedule::probes()) {
      choose(f, schedule);
      const std::vector<Hazard> hazards = f.run(std::string(p.name) + "_good", p.blocks, p.threads);
      INFO(p.name << " " << schedule.text() << "\n" << lines(hazards));
      CHECK(f.result == plain);
      CHECK(hazards.empty());
    }
  }
}

TEST_CASE("What a kernel with a race computes depends on the schedule") {
  Fixture f;
  f.session.choose({});
  for (const char* name : {"lds_barrier_bad", "lds_reuse_bad", "global_barrier_bad"}) {
    choose(f, {});
    f.run(name, 1, 256);
    const std::vector<std::uint32_t> plain = f.result;
    bool differs = false;
    for (const Schedule& schedule : Schedule::probes()) {
      choose(f, schedule);
      f.run(name, 1, 256);
      differs = differs || f.result != plain;
    }
    INFO(name);
    CHECK(differs);
  }
}

}  // namespace attest::device::sim::detect
