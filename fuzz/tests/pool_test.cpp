// SPDX-License-Identifier: MIT
//
// The pool and the shrink loop against workers that misbehave in known ways (fake_worker.cpp).
#include "fuzz/pool.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "fuzz/cause_of_death.h"
#include "fuzz/generate.h"
#include "fuzz/shrink.h"
#include "fuzz/tests/fixtures.h"

namespace {

using namespace attest;
using namespace attest::fuzz;
using fuzz::testing::TemporaryFolder;
using oracle::VerdictKind;

PoolOptions fake(int jobs, std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
  PoolOptions options;
  options.device = "sim";
  options.jobs = jobs;
  options.deadline = deadline;
  options.command = {ATTEST_FAKE_WORKER};
  return options;
}

cases::Case simple(int kv_len, int q_len = 1) {
  cases::Case c;
  cases::MlaDecode problem;
  problem.requests = {{q_len, kv_len}};
  c.problem = problem;
  return c;
}

std::vector<oracle::Verdict> verdicts(Pool& pool, const std::vector<std::string>& kernels) {
  std::vector<oracle::Verdict> all;
  std::size_t asked = 0;
  pool.run(
      [&]() -> std::optional<Pool::Task> {
        if (asked == kernels.size()) return std::nullopt;
        return Pool::Task{kernels[asked++], simple(1)};
      },
      [&](std::size_t index, const Evaluation& e) {
        CHECK(index == all.size());
        all.push_back(e.verdict);
        return true;
      });
  return all;
}

std::vector<VerdictKind> run(Pool& pool, const std::vector<std::string>& kernels) {
  std::vector<VerdictKind> kinds;
  for (const oracle::Verdict& v : verdicts(pool, kernels)) kinds.push_back(v.kind);
  return kinds;
}

}  // namespace

TEST_CASE("results come in the order of the tasks whichever worker is slow") {
  Pool pool(fake(3));
  std::size_t asked = 0;
  std::vector<std::size_t> order;
  pool.run(
      [&]() -> std::optional<Pool::Task> {
        if (asked == 20) return std::nullopt;
        return Pool::Task{"slow", simple(static_cast<int>(asked++) % 7 * 3)};
      },
      [&](std::size_t index, const Evaluation&) {
        order.push_back(index);
        return true;
      });
  REQUIRE(order.size() == 20);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("a dying worker costs one verdict and the next case gets a fresh one") {
  Pool pool(fake(1));
  CHECK(run(pool, {"pass", "crash", "pass", "mute", "pass"}) ==
        std::vector{VerdictKind::pass, VerdictKind::crash, VerdictKind::pass, VerdictKind::crash,
                    VerdictKind::pass});
}

TEST_CASE("a hanging worker is killed at its deadline") {
  Pool pool(fake(2, std::chrono::milliseconds(300)));
  CHECK(run(pool, {"pass", "hang", "pass"}) ==
        std::vector{VerdictKind::pass, VerdictKind::timeout, VerdictKind::pass});
}

TEST_CASE("an answer that is not one is the harness's error, not a pass") {
  Pool pool(fake(1));
  CHECK(run(pool, {"garbage", "pass"}) == std::vector{VerdictKind::harness_error, VerdictKind::pass});
}

TEST_CASE("a device that is not there is said in the greeting's words, with its exit code") {
  PoolOptions options = fake(1);
  options.device = "none";
  try {
    const Pool pool(options);
    FAIL("no error");
  } catch (const PoolError& error) {
    CHECK(std::string(error.what()) == "none: there is no such device");
    CHECK(error.exit_code == 3);
  }
}

TEST_CASE("a GPU fault is a crash with the runtime's words") {
  Pool pool(fake(1));
  const auto all = verdicts(pool, {"gpu_fault", "pass"});
  CHECK(all[0].kind == VerdictKind::crash);
  CHECK(all[0].diagnosis == "gpu memory fault: page not present");
  CHECK(all[0].detail.find("on address 0x7f5a00000000") != std::string::npos);
  CHECK(all[1].kind == VerdictKind::pass);
}

TEST_CASE("causes of death are read from the wait status and the last words") {
  const auto signalled = [](int signal) { return signal; };
  const auto exited = [](int code) { return code << 8; };
  CHECK(cause_of_death(signalled(SIGSEGV), "").diagnosis == "worker killed by SIGSEGV");
  CHECK(cause_of_death(exited(7), "").diagnosis == "worker exited with 7");
  CHECK(cause_of_death(signalled(SIGKILL), "").from_outside);
  CHECK_FALSE(cause_of_death(signalled(SIGSEGV), "").from_outside);
  CHECK(cause_of_death(signalled(SIGABRT),
                       "noise\nHW Exception by GPU node-1 (Agent handle: 0x1) reason :GPU Hang\n")
            .diagnosis == "gpu hardware exception: gpu hang");
  CHECK(cause_of_death(signalled(SIGABRT),
                       ":0:rocdevice.cpp:2660: aborting with error : "
                       "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: The agent attempted to")
            .diagnosis == "gpu runtime: HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION");
  CHECK(cause_of_death(exited(1), "==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1 at")
            .diagnosis == "sanitizer: heap-buffer-overflow");
  CHECK(
      cause_of_death(signalled(SIGABRT), "terminate called after throwing an instance of 'std::bad_alloc'\n")
          .diagnosis == "out of host memory");
}

TEST_CASE("a worker that outgrows its memory is killed, and its case is a crash") {
  PoolOptions options = fake(1);
  options.memory_bytes = std::uint64_t{128} << 20U;
  Pool pool(options);
  const auto all = verdicts(pool, {"pass", "bloat", "pass"});
  CHECK(all[0].kind == VerdictKind::pass);
  CHECK(all[1].kind == VerdictKind::crash);
  CHECK(all[1].diagnosis == "memory blow-up");
  CHECK(all[1].detail.find("its limit is 128 MiB") != std::string::npos);
  CHECK(all[2].kind == VerdictKind::pass);
}

TEST_CASE("a case whose worker is killed from outside is run again, and that is told") {
  const TemporaryFolder folder;
  std::ofstream(folder.path + "/once") << "x";
  ::setenv("FAKE_WORKER_ONCE", (folder.path + "/once").c_str(), 1);
  Pool pool(fake(1));
  std::vector<Json> told;
  pool.on_incident([&](const Json& incident) { told.push_back(incident); });
  CHECK(run(pool, {"pass", "killed_once", "pass"}) == std::vector(3, VerdictKind::pass));
  REQUIRE(told.size() == 1);
  CHECK(told[0].at("diagnosis") == "worker killed by SIGKILL");
  CHECK(told[0].at("kernel") == "killed_once");
  CHECK(told[0].at("rerun") == true);
}

TEST_CASE("a case over which the worker is killed each time is a crash after the eighth") {
  Pool pool(fake(2));
  std::size_t told = 0;
  pool.on_incident([&](const Json&) { ++told; });
  CHECK(run(pool, {"killed", "pass"}) == std::vector{VerdictKind::crash, VerdictKind::pass});
  CHECK(told == 8);
}

TEST_CASE("a device that fails its health probe after a death is waited for, then given up") {
  const TemporaryFolder folder;
  const std::string sick = folder.path + "/sick";
  ::setenv("FAKE_WORKER_SICK", sick.c_str(), 1);
  PoolOptions options = fake(1);
  options.recovery_pause = std::chrono::milliseconds(5);
  std::vector<Json> told;
  Pool pool(options);
  pool.on_incident([&](const Json& incident) {
    told.push_back(incident);
    if (told.size() == 1) std::ofstream(sick) << "x";     // sick from the crash on
    if (told.size() == 3) std::filesystem::remove(sick);  // well after two probes
  });
  CHECK(run(pool, {"crash", "pass"}) == std::vector{VerdictKind::crash, VerdictKind::pass});
  REQUIRE(told.size() == 3);
  CHECK(told[1].at("detail") == "the health probe reads back other bytes than it wrote");

  pool.on_incident([&](const Json&) { std::ofstream(sick) << "x"; });
  try {
    run(pool, {"crash", "pass"});
    FAIL("no error");
  } catch (const PoolError& error) {
    CHECK(error.exit_code == 4);
    CHECK(std::string(error.what()).find("does not recover: the health probe") != std::string::npos);
  }
  ::unsetenv("FAKE_WORKER_SICK");
}

TEST_CASE("streams are served in turn, each in its own order, and may be added on the way") {
  struct Numbered final : Pool::Stream {
    std::size_t left, taken = 0;
    std::function<void()> on_first;
    explicit Numbered(std::size_t n) : left(n) {}
    std::optional<Pool::Task> next() override {
      if (left == 0) return std::nullopt;
      --left;
      return Pool::Task{"slow", simple(static_cast<int>(left % 5))};
    }
    void take(std::size_t index, Evaluation) override {
      CHECK(index == taken);
      if (++taken == 1 && on_first) on_first();
    }
  };
  Numbered one(9), two(4), added(5);
  std::vector<Pool::Stream*> streams = {&one, &two};
  one.on_first = [&] { streams.push_back(&added); };
  Pool pool(fake(3));
  pool.run(streams);
  CHECK(one.taken == 9);
  CHECK(two.taken == 4);
  CHECK(added.taken == 5);
}

TEST_CASE("after done says stop, tasks under way end and are not delivered") {
  Pool pool(fake(3));
  std::size_t asked = 0, delivered = 0;
  pool.run(
      [&]() -> std::optional<Pool::Task> {
        return Pool::Task{"slow", simple(static_cast<int>(asked++) % 20)};
      },
      [&](std::size_t, const Evaluation&) { return ++delivered < 5; });
  CHECK(delivered == 5);
  CHECK(asked <= 5 + 3 * 20);
  CHECK(run(pool, {"pass"}) == std::vector{VerdictKind::pass});
}

TEST_CASE("shrinking keeps to its bug and ends at the smallest case of it") {
  cases::Case start = simple(250, 7);
  std::get<cases::MlaDecode>(start.problem).requests.push_back({5, 180});
  std::get<cases::MlaDecode>(start.problem).heads = 48;
  const std::string signature = "mla_decode/two_bugs/fail/result/bug A";
  ShrinkResult first;
  for (const int jobs : {1, 3}) {
    Pool pool(fake(jobs));
    const ShrinkResult small = shrink(pool, "two_bugs", signature, start, {}, 2000);
    CHECK(small.minimal);
    const auto& p = std::get<cases::MlaDecode>(small.c.problem);
    REQUIRE(p.requests.size() == 1);
    CHECK(p.requests[0].q_len == 3);
    CHECK(p.requests[0].kv_len <= 3);
    CHECK(p.heads == 1);
    CHECK(signature_of("two_bugs", small.c, small.evaluation.verdict) == signature);
    if (jobs == 1)
      first = small;
    else {
      CHECK(small.c == first.c);
      CHECK(small.evaluations == first.evaluations);
    }
  }
}

TEST_CASE("a shrink budget is kept and said") {
  Pool pool(fake(2));
  const ShrinkResult small =
      shrink(pool, "two_bugs", "mla_decode/two_bugs/fail/result/bug A", simple(250, 7), {}, 3);
  CHECK(small.evaluations == 3);
  CHECK_FALSE(small.minimal);
}
