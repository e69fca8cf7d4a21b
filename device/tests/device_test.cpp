// SPDX-License-Identifier: MIT
//
// Opening devices, launching, what becomes of a kernel that goes wrong, and the guard zones.
#include "device/hip/device.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "device/hip/buffer.h"
#include "device/hip/buffer_set.h"
#include "device/hip/installation.h"
#include "device/kernel.h"

using namespace attest;
using namespace attest::device;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

struct Sim {
  std::unique_ptr<Device> device = open_device("sim", 0);
  hip::HipDevice& hip = hip::hip_device(*device);

  hip::Function probe(const char* kernel) {
    return hip.function(hip::kernel_directory() / "probe.co", kernel);
  }

  struct Poke {
    std::byte* buffer;
    std::int64_t offset;
    std::uint32_t value;
    std::uint32_t unused = 0;
  };
  hip::LaunchReport poke(const hip::DeviceBuffer& buffer, std::int64_t offset, std::uint32_t value) {
    return hip.launch(probe("poke"), {.threads = 1}, Poke{buffer.data(), offset, value}, 1000);
  }
};

bool single_line(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos;
}

}  // namespace

TEST_CASE("an unknown kind of device is refused by name") {
  CHECK_THROWS_AS(open_device("cuda", 0), DeviceError);
  CHECK_THROWS_WITH(open_device("cuda", 0), Contains("cuda") && Contains("sim and hip"));
}

TEST_CASE("without a GPU, hip is unavailable in one line") {
  std::string message;
  try {
    const auto device = open_device("hip", 0);
    // This machine has one: then it must say which.
    CHECK_THAT(device->arch(), StartsWith("gfx"));
    return;
  } catch (const DeviceUnavailable& unavailable) {
    message = unavailable.what();
  }
  CHECK_THAT(message, StartsWith("hip: "));
  CHECK(single_line(message));
  CHECK_THAT(message, Contains("it reports no device (hipError") || Contains("no ROCm runtime here"));
}

TEST_CASE("the simulator loaded first does not pass for ROCm") {
  const auto sim = open_device("sim", 0);
  try {
    const auto device = open_device("hip", 0);
    CHECK_FALSE(hip::hip_device(*device).api().is_simulator());
  } catch (const DeviceUnavailable& unavailable) {
    CHECK_THAT(unavailable.what(), StartsWith("hip: "));
  }
}

TEST_CASE("a simulator that is not there, or is none, is named") {
  CHECK_THROWS_AS(hip::load_simulator("/nonexistent/libamdhip64.so.5"), DeviceUnavailable);
  CHECK_THROWS_WITH(
      hip::load_simulator("/nonexistent/libamdhip64.so.5"),
      StartsWith("sim: ") && Contains("/nonexistent/libamdhip64.so.5") && Contains("ATTEST_SIMULATOR"));
  CHECK_THROWS_WITH(hip::load_simulator("libm.so.6"), Contains("libm.so.6 has no symbol hipInit"));
}

TEST_CASE("the simulator is a gfx942 and has finitely many ordinals") {
  CHECK(open_device("sim", 0)->arch() == "gfx942");
  CHECK(open_device("sim", 0)->name() == "sim");
  CHECK_THROWS_WITH(open_device("sim", 1000), Contains("device 1000 asked for"));
  CHECK_THROWS_AS(open_device("sim", -1), DeviceUnavailable);
}

TEST_CASE("a kernel is launched with its argument block") {
  Sim sim;
  constexpr std::uint32_t count = 1000;
  std::vector<std::uint32_t> a(count);
  std::iota(a.begin(), a.end(), 5u);
  const std::vector<std::uint32_t> b(count, 7u);
  hip::DeviceBuffer device_a(sim.hip, "a", count * 4, 256);
  hip::DeviceBuffer device_b(sim.hip, "b", count * 4, 256);
  device_a.upload(std::as_bytes(std::span(a)));
  device_b.upload(std::as_bytes(std::span(b)));
  struct {
    std::byte* a;
    std::byte* b;
    std::uint32_t count;
    std::uint32_t unused;
  } const args{device_a.data(), device_b.data(), count, 0};
  const hip::LaunchReport report = sim.hip.launch(sim.probe("add"), {{4, 1, 1}, 256}, args, 100'000);
  INFO(report.detail);
  REQUIRE(report.status == Status::ok);
  CHECK(report.wave_instructions > 16);
  std::vector<std::uint32_t> sum(count);
  const auto bytes = device_a.download();
  std::memcpy(sum.data(), bytes.data(), bytes.size());
  for (std::uint32_t i = 0; i < count; ++i) REQUIRE(sum[i] == i + 12);
  CHECK_FALSE(device_a.guard_damage());
  CHECK_FALSE(device_b.modification(std::as_bytes(std::span(b))));
}

TEST_CASE("damage to a guard zone is found where it hit") {
  // By the host: the simulator does not let a kernel touch a guard zone, a GPU does.
  Sim sim;
  const auto damage = [&](const hip::DeviceBuffer& buffer, std::int64_t offset) {
    const std::uint32_t anything = 42;
    sim.hip.copy_to_device(buffer.data() + offset, std::as_bytes(std::span(&anything, 1)), "guard");
  };
  for (const auto pattern : {hip::GuardPattern::words, hip::GuardPattern::fp8}) {
    hip::DeviceBuffer buffer(sim.hip, "out", 1000, 512, pattern);
    CHECK_FALSE(buffer.guard_damage());
    REQUIRE(sim.poke(buffer, 996, 42).status == Status::ok);  // the last word inside
    CHECK_FALSE(buffer.guard_damage());
    damage(buffer, 1000 + 508);
    CHECK(buffer.guard_damage() == "guard after out, +508 bytes");
    damage(buffer, 1012);
    CHECK(buffer.guard_damage() == "guard after out, +12 bytes");
    damage(buffer, -512);
    CHECK(buffer.guard_damage() == "guard before out, -512 bytes");
    damage(buffer, -4);
    CHECK(buffer.guard_damage() == "guard before out, -4 bytes");
  }
}

TEST_CASE("a kernel that writes into a guard zone faults on the simulator") {
  Sim sim;
  hip::DeviceBuffer buffer(sim.hip, "out", 1000, 512);
  for (const std::int64_t offset : {-512, -4, 1000, 1508}) {
    INFO(offset);
    const hip::LaunchReport report = sim.poke(buffer, offset, 42);
    CHECK(report.status == Status::crash);
    CHECK(report.diagnosis == "memory fault: write outside every buffer");
    CHECK_THAT(report.detail, Contains("out"));
  }
  CHECK_FALSE(buffer.guard_damage());
}

TEST_CASE("the bytes between an odd size and the next word are guarded too") {
  Sim sim;
  hip::DeviceBuffer buffer(sim.hip, "q", 1001, 256);
  const std::vector<std::byte> contents(1001, std::byte{9});
  buffer.upload(contents);
  CHECK_FALSE(buffer.guard_damage());
  CHECK_FALSE(buffer.modification(contents));
  sim.hip.copy_to_device(buffer.data() + 1001, std::span(contents).first(1), "guard");
  CHECK_FALSE(buffer.modification(contents));
  CHECK(buffer.guard_damage() == "guard after q, +0 bytes");
}

TEST_CASE("a set of buffers tells of every input that was written to, and of no output") {
  Sim sim;
  const std::vector<std::int32_t> indices(100, 3);
  const std::vector<float> weights(50, 1.0F);
  cases::SparseBytes sparse;
  sparse.size = 4096;
  sparse.extents.push_back({64, std::vector<std::byte>(128, std::byte{1})});
  hip::BufferSet buffers(sim.hip, 256);
  auto& q = buffers.add_input("indices", indices);
  auto& w = buffers.add_input("weights", weights);
  auto& pool = buffers.add_input("kv_pool", sparse, cases::Format::bf16);
  auto& out = buffers.add("out", 400);
  REQUIRE(sim.poke(out, 0, 1).status == Status::ok);
  CHECK(buffers.damage().empty());
  REQUIRE(sim.poke(pool, 100, 5).status == Status::ok);
  REQUIRE(sim.poke(w, 4, 9).status == Status::ok);
  REQUIRE(sim.poke(q, 8, 4).status == Status::ok);
  sim.hip.copy_to_device(out.data() + 400, std::as_bytes(std::span(indices)).first(4), "guard");
  CHECK(buffers.damage() ==
        std::vector<std::string>{"guard after out, +0 bytes", "indices was modified at byte 8",
                                 "weights was modified at byte 4", "kv_pool was modified at byte 100"});
}

TEST_CASE("an input that changed is told by its first byte") {
  Sim sim;
  cases::SparseBytes sparse;
  sparse.size = std::uint64_t{5} << 30;
  sparse.extents.push_back({64, std::vector<std::byte>(128, std::byte{1})});
  sparse.extents.push_back({std::uint64_t{9} << 29, std::vector<std::byte>(128, std::byte{2})});
  hip::DeviceBuffer pool(sim.hip, "kv_pool", sparse.size, 256);
  pool.upload(sparse);
  CHECK_FALSE(pool.modification(sparse));
  REQUIRE(sim.poke(pool, 32, 7).status == Status::ok);  // between extents: nobody's
  CHECK_FALSE(pool.modification(sparse));
  const std::int64_t far = std::int64_t{9} << 29;
  REQUIRE(sim.poke(pool, far + 40, 0x02020302).status == Status::ok);
  CHECK(pool.modification(sparse) == "kv_pool was modified at byte " + std::to_string(far + 41));
}

TEST_CASE("a buffer refuses contents of another size") {
  Sim sim;
  hip::DeviceBuffer buffer(sim.hip, "q", 16, 256);
  CHECK_THROWS_WITH(buffer.upload(std::vector<std::byte>(15)), Contains("q: 15 bytes for a buffer of 16"));
}

TEST_CASE("a kernel that writes outside every buffer is a crash with a place") {
  Sim sim;
  hip::DeviceBuffer buffer(sim.hip, "out", 256, 256);
  const hip::LaunchReport report = sim.poke(buffer, std::int64_t{1} << 38, 1);
  CHECK(report.status == Status::crash);
  CHECK(report.diagnosis == "memory fault: write outside every buffer");
  CHECK(single_line(report.detail));
  CHECK_THAT(report.detail, Contains("pc") && Contains("global_store_dword") && Contains("poke"));

  // The device lives on.
  CHECK(sim.poke(buffer, 0, 1).status == Status::ok);
}

TEST_CASE("a kernel that does not end is a timeout") {
  Sim sim;
  hip::DeviceBuffer flag(sim.hip, "flag", 4, 256);
  flag.upload(std::vector<std::byte>(4));
  const hip::LaunchReport report = sim.hip.launch(sim.probe("spin"), {.threads = 64}, flag.data(), 100'000);
  CHECK(report.status == Status::timeout);
  CHECK(report.diagnosis == "runaway kernel");
  CHECK(sim.poke(flag, 0, 1).status == Status::ok);
}

TEST_CASE("what is missing from a code object is named") {
  Sim sim;
  CHECK_THROWS_AS(sim.probe("no_such_kernel"), DeviceError);
  CHECK_THROWS_WITH(sim.probe("no_such_kernel"), Contains("probe.co") && Contains("no_such_kernel"));
  CHECK_THROWS_WITH(sim.hip.function(hip::kernel_directory() / "missing.co", "add"), Contains("missing.co"));
  CHECK_THROWS_AS(sim.hip.function("/proc/self/exe", "add"), DeviceError);
}

TEST_CASE("more memory than there is is a failed call that says how much") {
  Sim sim;
  CHECK_THROWS_AS(sim.hip.allocate(std::size_t{1} << 60, "kv_pool"), hip::CallFailed);
  CHECK_THROWS_WITH(sim.hip.allocate(std::size_t{1} << 60, "kv_pool"),
                    Contains("kv_pool, 1152921504606846976 bytes") && Contains("hipErrorOutOfMemory"));
}

TEST_CASE("fault reports are read") {
  const auto read = [](const char* json) { return hip::read_fault_report(json, "hipErrorLaunchFailure"); };
  const hip::LaunchReport full = read(
      R"({"kind": "memory_read", "message": "reads 16 bytes", "kernel": "k", "pc": 6912,
          "disassembly": "global_load_dwordx4 v[0:3], v[4:5], off", "workgroup": [0, 1, 2], "wave": 3, "lane": 17,
          "address": 8192})");
  CHECK(full.status == Status::crash);
  CHECK(full.diagnosis == "memory fault: read outside every buffer");
  CHECK(full.detail ==
        "reads 16 bytes; in k at pc 0x1b00: global_load_dwordx4 v[0:3], v[4:5], off, workgroup [0,1,2], wave "
        "3, "
        "lane 17");
  CHECK(read(R"({"kind": "trap", "message": "s_trap", "wave": -1, "lane": -1})").detail == "s_trap");
  CHECK(read(R"({"kind": "instruction_budget"})").status == Status::timeout);
  CHECK(read(R"({"kind": "barrier_deadlock"})").status == Status::timeout);
  CHECK(read(R"({"kind": "unsupported"})").status == Status::harness_error);
  CHECK(read(R"({"kind": "something new"})").diagnosis == "something new");
  for (const char* nothing : {"", "{", "[]", "null"}) {
    const hip::LaunchReport bare = read(nothing);
    CHECK(bare.status == Status::crash);
    CHECK(bare.diagnosis == "launch failure: hipErrorLaunchFailure");
  }
}

TEST_CASE("detectors are chosen by name, and what they find is read") {
  Sim sim;
  CHECK_THROWS_WITH(sim.device->choose_detectors("lds-race,racy"),
                    Contains("no detector is called racy") && Contains("lds-race") && Contains("all, none"));
  CHECK(sim.device->take_observations().hazards.empty());
  sim.device->choose_detectors("clipped");
  const hip::DeviceBuffer buffer(sim.hip, "buffer", 64, 256);
  CHECK(sim.poke(buffer, 0, 1).status == Status::ok);
  CHECK(sim.device->take_observations().hazards.empty());
  sim.device->choose_detectors("none");
  CHECK(sim.device->take_observations().hazards.empty());

  const Observations seen = hip::read_findings(
      R"({"hazards": [{"severity": "advisory", "detector": "waits", "signature": "k waits 0x4 0x0",
          "line": "said", "extra": 1}], "clipped": {"loads": 3, "stores": 4, "atomics": 5},
          "fidelity": [{"op": "v_exp_f32", "count": 7, "exactness": "approximate", "ulp": 1, "reason": "r"},
                       {"op": "v_mov_b32", "count": 9, "exactness": "exact"}]})");
  REQUIRE(seen.hazards.size() == 1);
  CHECK_FALSE(seen.hazards[0].hard);
  CHECK(seen.hazards[0].detector == "waits");
  CHECK(seen.hazards[0].signature == "k waits 0x4 0x0");
  CHECK(seen.hazards[0].line == "said");
  CHECK_THAT(seen.hazards[0].json, Contains("extra"));
  CHECK(seen.clipped_loads == 3);
  CHECK(seen.clipped_stores == 4);
  CHECK(seen.clipped_atomics == 5);
  REQUIRE(seen.ledger.size() == 2);
  CHECK(seen.ledger[0].op == "v_exp_f32");
  CHECK(seen.ledger[0].count == 7);
  CHECK(seen.ledger[0].ulp == 1);
  CHECK(seen.ledger[0].reason == "r");
  CHECK(seen.ledger[1].exactness == "exact");
  CHECK_THROWS_AS(hip::read_findings("{}"), DeviceError);
}

TEST_CASE("schedules are chosen by their word") {
  Sim sim;
  CHECK_THROWS_WITH(sim.device->choose_schedule("quantum"),
                    Contains("quantum is no schedule") && Contains("delivery="));
  const hip::DeviceBuffer buffer(sim.hip, "buffer", 64, 256);
  for (const char* schedule : {"quantum=7,seed=3,skew=40,delivery=poison", "delivery=stale", ""}) {
    sim.device->choose_schedule(schedule);
    CHECK(sim.poke(buffer, 0, 1).status == Status::ok);
  }
}
