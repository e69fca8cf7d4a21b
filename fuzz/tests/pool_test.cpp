// SPDX-License-Identifier: MIT
//
// The pool, the shrink loop and the campaign against workers that misbehave in known ways (fake_worker.cpp).
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fuzz/campaign.h"
#include "fuzz/generate.h"
#include "fuzz/shrink.h"
#include "fuzz/worker.h"

namespace {

using namespace attest;
using namespace attest::fuzz;
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

std::vector<VerdictKind> run(Pool& pool, const std::vector<std::string>& kernels) {
  std::vector<VerdictKind> kinds;
  std::size_t asked = 0;
  pool.run(
      [&]() -> std::optional<Pool::Task> {
        if (asked == kernels.size()) return std::nullopt;
        return Pool::Task{kernels[asked++], simple(1)};
      },
      [&](std::size_t index, const Evaluation& e) {
        CHECK(index == kinds.size());
        kinds.push_back(e.verdict.kind);
        return true;
      });
  return kinds;
}

struct TemporaryFolder {
  std::string path;
  TemporaryFolder() {
    char name[] = "/tmp/attest-test-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
};

Summary campaign(const std::string& kernel, int jobs, std::uint64_t cases, const std::string& folder) {
  CampaignOptions options;
  options.kernels = {kernel};
  options.seed = 11;
  options.cases = cases;
  Pool pool(fake(jobs));
  RunFolder run_folder(folder);
  Progress progress(true);
  return run_campaign(options, pool, run_folder, progress);
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

TEST_CASE("a campaign gives the same findings with any number of workers") {
  const TemporaryFolder folder;
  const Summary one = campaign("two_bugs", 1, 60, folder.path + "/1");
  const Summary three = campaign("two_bugs", 3, 60, folder.path + "/3");
  REQUIRE(one.findings.size() == 2);
  REQUIRE(three.findings.size() == 2);
  CHECK(one.verdicts == three.verdicts);
  CHECK(one.cases == 60);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(one.findings[i].signature == three.findings[i].signature);
    CHECK(one.findings[i].minimised == three.findings[i].minimised);
    CHECK(one.findings[i].first_number == three.findings[i].first_number);
    CHECK(one.findings[i].count == three.findings[i].count);
    CHECK(read_reproduction(folder.path + "/1/" + one.findings[i].file).c == one.findings[i].minimised);
  }
}

TEST_CASE("a failure that does not repeat is flaky, with its rate") {
  const TemporaryFolder folder;
  const Summary summary = campaign("coin", 1, 4, folder.path + "/run");
  REQUIRE_FALSE(summary.findings.empty());
  CHECK(summary.findings[0].verdict.kind == VerdictKind::flaky);
  CHECK(summary.findings[0].verdict.detail.find("2 of 3 runs agree") != std::string::npos);
  CHECK_FALSE(summary.findings[0].shrunk);
}

TEST_CASE("every line of events.jsonl is JSON, from run to end, with a start before each verdict") {
  const TemporaryFolder folder;
  campaign("two_bugs", 2, 30, folder.path + "/run");
  std::ifstream file(folder.path + "/run/events.jsonl");
  std::vector<Json> events;
  for (std::string line; std::getline(file, line);) events.push_back(Json::parse(line));
  REQUIRE(events.size() > 62);
  CHECK(events.front().at("event") == "run");
  CHECK(events.back().at("event") == "end");
  std::vector<std::uint64_t> started, judged;
  for (const Json& e : events) {
    if (e.at("event") == "start") started.push_back(e.at("number").get<std::uint64_t>());
    if (e.at("event") == "verdict") {
      judged.push_back(e.at("number").get<std::uint64_t>());
      CHECK(std::find(started.begin(), started.end(), judged.back()) != started.end());
    }
  }
  CHECK(judged.size() == 30);
  CHECK(std::is_sorted(judged.begin(), judged.end()));
}

TEST_CASE("a run folder that cannot be made or is taken is refused") {
  const TemporaryFolder folder;
  {
    const RunFolder first(folder.path + "/run");
  }
  CHECK_THROWS_AS(RunFolder(folder.path + "/run"), RunFolderError);
  CHECK_THROWS_AS(RunFolder("/proc/attest/run"), RunFolderError);
}
