// SPDX-License-Identifier: MIT
//
// Campaigns against workers that misbehave in known ways (fake_worker.cpp): whatever is killed, resumed or
// split, the findings are those of an undisturbed run.
#include "fuzz/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "fuzz/case_fields.h"
#include "fuzz/generate.h"
#include "fuzz/merge.h"
#include "fuzz/neighbours.h"
#include "fuzz/tests/fixtures.h"
#include "fuzz/usage_error.h"

namespace {

using attest::fuzz::testing::TemporaryFolder;
using namespace attest;
using namespace attest::fuzz;
using oracle::VerdictKind;

PoolOptions fake(int jobs) {
  PoolOptions options;
  options.jobs = jobs;
  options.deadline = std::chrono::seconds(30);
  options.recovery_pause = std::chrono::milliseconds(1);
  options.command = {ATTEST_FAKE_WORKER};
  return options;
}

CampaignOptions options_for(const std::vector<std::string>& kernels, std::uint64_t cases) {
  CampaignOptions options;
  options.kernels = kernels;
  options.seed = 11;
  options.cases = cases;
  return options;
}

Summary campaign(const CampaignOptions& options, int jobs, const std::string& folder) {
  Pool pool(fake(jobs));
  RunFolder run_folder(folder);
  Progress progress(true);
  return run_campaign(options, pool, run_folder, progress);
}

Summary resume(const CampaignOptions& options, int jobs, const std::string& folder) {
  Pool pool(fake(jobs));
  RunFolder run_folder(folder, RunFolder::Open::resume);
  Progress progress(true);
  return resume_campaign(options, pool, run_folder, progress);
}

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<Json> events_of(const std::string& folder) {
  std::vector<Json> events;
  read_events(folder, [&](const Json& event) { events.push_back(event); });
  return events;
}

/// All that a summary says but times, places and losses.
Json essence(const Summary& summary) {
  Json json = summary.json("run");
  json.erase("seconds");
  json.erase("workers_lost");
  return json;
}

/// The failure files of a run, by name, without the path in them.
std::map<std::string, Json> failures_of(const std::string& folder) {
  std::map<std::string, Json> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/failures")) {
    std::ifstream file(entry.path());
    Json json = Json::parse(file);
    json.erase("reproduce");
    files[entry.path().filename().string()] = std::move(json);
  }
  return files;
}

}  // namespace

TEST_CASE("a campaign gives the same findings with any number of workers") {
  const TemporaryFolder folder;
  const Summary one = campaign(options_for({"two_bugs"}, 60), 1, folder.path + "/1");
  const Summary three = campaign(options_for({"two_bugs"}, 60), 3, folder.path + "/3");
  REQUIRE(one.findings.size() == 2);
  CHECK(one.cases == 60);
  CHECK(essence(one) == essence(three));
  CHECK(failures_of(folder.path + "/1") == failures_of(folder.path + "/3"));
  for (const Finding& f : one.findings) {
    CHECK(f.shrunk);
    CHECK(f.best.minimal);
    CHECK(read_reproduction(folder.path + "/1/" + f.file()).c == f.best.c);
  }
}

TEST_CASE("kernels take turns, case by case") {
  const TemporaryFolder folder;
  campaign(options_for({"pass", "two_bugs"}, 5), 2, folder.path + "/run");
  std::vector<std::string> kernels;
  for (const Json& e : events_of(folder.path + "/run"))
    if (e.at("event") == "verdict") kernels.push_back(e.at("kernel").get<std::string>());
  REQUIRE(kernels.size() == 10);
  for (std::size_t i = 0; i < kernels.size(); ++i) CHECK(kernels[i] == (i % 2 == 0 ? "pass" : "two_bugs"));
}

TEST_CASE("a failure that does not repeat is flaky, with its rate") {
  const TemporaryFolder folder;
  const Summary summary = campaign(options_for({"coin"}, 4), 1, folder.path + "/run");
  REQUIRE_FALSE(summary.findings.empty());
  const oracle::Verdict verdict = summary.findings[0].verdict();
  CHECK(verdict.kind == VerdictKind::flaky);
  CHECK(verdict.detail.find(" of 3 runs agree") != std::string::npos);
  CHECK_FALSE(summary.findings[0].shrunk);
}

TEST_CASE(
    "every line of events.jsonl is JSON, from run to end, with the case on record before each verdict") {
  const TemporaryFolder folder;
  campaign(options_for({"two_bugs"}, 30), 2, folder.path + "/run");
  std::vector<Json> events;
  for (const std::string& line : lines_of(folder.path + "/run/events.jsonl"))
    events.push_back(Json::parse(line));
  REQUIRE(events.size() > 62);
  CHECK(events.front().at("event") == "run");
  CHECK(events.back().at("event") == "end");
  std::map<std::uint64_t, Json> started;
  std::vector<std::uint64_t> judged;
  for (const Json& e : events) {
    if (e.at("event") == "start") started[e.at("item").get<std::uint64_t>()] = e.at("case");
    if (e.at("event") != "verdict") continue;
    judged.push_back(e.at("item").get<std::uint64_t>());
    REQUIRE(started.count(judged.back()) == 1);
    CHECK(e.at("id") == cases::case_id(cases::parse_case(started[judged.back()].dump())));
  }
  CHECK(judged.size() == 30);
  CHECK(std::is_sorted(judged.begin(), judged.end()));
}

TEST_CASE("a run that is killed after any line, or within one, is resumed to the same result") {
  const TemporaryFolder folder;
  CampaignOptions options = options_for({"two_bugs", "pass"}, 20);
  options.max_shrunk = 1;
  const std::string whole = folder.path + "/whole";
  const Summary undisturbed = campaign(options, 2, whole);
  REQUIRE(undisturbed.findings.size() == 2);
  const std::vector<std::string> lines = lines_of(whole + "/events.jsonl");
  for (std::size_t kept = 1; kept <= lines.size(); kept += kept > 60 ? 7 : 11) {
    CAPTURE(kept, lines[kept - 1].substr(0, 60));
    const std::string cut = folder.path + "/cut";
    std::filesystem::create_directories(cut + "/failures");
    {
      std::ofstream events(cut + "/events.jsonl");
      for (std::size_t i = 0; i < kept; ++i) events << lines[i] << "\n";
      if (kept < lines.size()) events << lines[kept].substr(0, lines[kept].size() / 2);
    }
    const Summary resumed = resume(options, 2, cut);
    CHECK(essence(resumed) == essence(undisturbed));
    std::map<std::uint64_t, int> verdicts;
    for (const Json& e : events_of(cut))
      if (e.at("event") == "verdict") ++verdicts[e.at("item").get<std::uint64_t>()];
    CHECK(verdicts.size() == 40);
    CHECK(std::all_of(verdicts.begin(), verdicts.end(), [](const auto& v) { return v.second == 1; }));
    CHECK(failures_of(cut) == failures_of(whole));
    std::filesystem::remove_all(cut);
  }
}

TEST_CASE("a resumed run of another build's cases is refused") {
  const TemporaryFolder folder;
  const std::string run = folder.path + "/run";
  const CampaignOptions options = options_for({"pass"}, 5);
  campaign(options, 1, run);
  std::vector<std::string> lines = lines_of(run + "/events.jsonl");
  lines.pop_back();  // the end
  const auto at = lines.back().find("\"id\":\"") + 6;
  lines.back().replace(at, 16, "0123456789abcdef");
  std::ofstream events(run + "/events.jsonl");
  for (const std::string& line : lines) events << line << "\n";
  events.close();
  CHECK_THROWS_AS(resume(options, 1, run), RunFolderError);
}

TEST_CASE("a damaged line in the middle of a run is named") {
  const TemporaryFolder folder;
  const std::string run = folder.path + "/run";
  campaign(options_for({"pass"}, 5), 1, run);
  std::vector<std::string> lines = lines_of(run + "/events.jsonl");
  lines[3].pop_back();
  std::ofstream events(run + "/events.jsonl");
  for (const std::string& line : lines) events << line << "\n";
  events.close();
  try {
    read_summary(run);
    FAIL("no error");
  } catch (const RunFolderError& error) {
    CHECK(std::string(error.what()).find("line 4") != std::string::npos);
  }
}

TEST_CASE("workers killed from outside change nothing but the count of losses") {
  const TemporaryFolder folder;
  std::ofstream(folder.path + "/once") << "x";
  ::setenv("FAKE_WORKER_ONCE", (folder.path + "/once").c_str(), 1);
  const Summary disturbed = campaign(options_for({"killed_once"}, 8), 2, folder.path + "/1");
  CHECK(disturbed.workers_lost == 1);
  CHECK(disturbed.findings.empty());
  const Summary undisturbed = campaign(options_for({"killed_once"}, 8), 2, folder.path + "/2");
  CHECK(undisturbed.workers_lost == 0);
  CHECK(essence(disturbed) == essence(undisturbed));
}

TEST_CASE("when the last worker is given up, what is done is kept and can be resumed") {
  const TemporaryFolder folder;
  const std::string sick = folder.path + "/sick", run = folder.path + "/run";
  ::setenv("FAKE_WORKER_SICK", sick.c_str(), 1);
  CampaignOptions options = options_for({"pass", "crash"}, 3);
  options.observe = [&](const Json& verdict) {
    if (verdict.at("item") == 0) std::ofstream(sick) << "x";
  };
  CHECK_THROWS_AS(campaign(options, 1, run), PoolError);
  CHECK_FALSE(read_summary(run).complete);
  std::filesystem::remove(sick);
  options.observe = {};
  const Summary resumed = resume(options, 1, run);
  ::unsetenv("FAKE_WORKER_SICK");
  CHECK(resumed.complete);
  CHECK(resumed.cases == 6);
  CHECK(essence(resumed) == essence(campaign(options, 1, folder.path + "/undisturbed")));
}

TEST_CASE("shards joined are the whole run") {
  const TemporaryFolder folder;
  CampaignOptions options = options_for({"two_bugs", "pass"}, 41);
  const Summary whole = campaign(options, 2, folder.path + "/whole");
  REQUIRE(whole.findings.size() == 2);
  std::vector<std::string> parts;
  std::uint64_t cases = 0;
  for (const std::uint64_t i : {2, 0, 3, 1}) {
    options.shard = {i, 4};
    parts.push_back(folder.path + "/part" + std::to_string(i));
    cases += campaign(options, 2, parts.back()).cases;
  }
  CHECK(cases == whole.cases);
  RunFolder out(folder.path + "/joined");
  const Summary joined = merge_runs(parts, out);
  CHECK(essence(joined) == essence(whole));
  CHECK(failures_of(folder.path + "/joined") == failures_of(folder.path + "/whole"));
  CHECK(essence(read_summary(folder.path + "/joined")) == essence(whole));

  const auto refused = [](const std::vector<std::string>& folders) {
    try {
      check_shards(folders);
      return std::string("accepted");
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
  };
  CHECK(refused({parts[0], parts[1], parts[3]}) == "of 4 shards these are missing: 3");
  CHECK(refused({parts[0], parts[1], parts[2], parts[3], parts[0]}).find("are both shard 2/4") !=
        std::string::npos);
  options.seed = 12;
  options.shard = {0, 4};
  campaign(options, 1, folder.path + "/other");
  CHECK(refused({parts[0], folder.path + "/other"}).find("different campaigns") != std::string::npos);
  std::vector<std::string> lines = lines_of(parts[0] + "/events.jsonl");
  lines.pop_back();
  std::ofstream cut(parts[0] + "/events.jsonl");
  for (const std::string& line : lines) cut << line << "\n";
  cut.close();
  CHECK(refused(parts).find("has not ended") != std::string::npos);
}

TEST_CASE("shards are given by hand or by the launcher") {
  CHECK(parse_shard("3/4") == Shard{3, 4});
  for (const char* wrong : {"4/4", "1", "-1/4", "a/b", "1/0", "1/2/3", ""})
    CHECK_THROWS_AS(parse_shard(wrong), UsageError);
  std::map<std::string, std::string> environment;
  std::string from;
  const auto found = [&] {
    return shard_of_environment(
        [&](const char* name) -> const char* {
          const auto it = environment.find(name);
          return it == environment.end() ? nullptr : it->second.c_str();
        },
        from);
  };
  CHECK_FALSE(found());
  environment = {{"BUILDKITE_PARALLEL_JOB", "2"}, {"BUILDKITE_PARALLEL_JOB_COUNT", "8"}};
  CHECK(found() == Shard{2, 8});
  CHECK(from == "BUILDKITE_PARALLEL_JOB");
  environment = {
      {"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_ARRAY_TASK_COUNT", "4"}, {"SLURM_ARRAY_TASK_MIN", "1"}};
  CHECK(found() == Shard{2, 4});
  environment = {{"SLURM_ARRAY_TASK_ID", "20"},
                 {"SLURM_ARRAY_TASK_COUNT", "3"},
                 {"SLURM_ARRAY_TASK_MIN", "10"},
                 {"SLURM_ARRAY_TASK_STEP", "5"}};
  CHECK(found() == Shard{2, 3});
  environment = {{"GTEST_SHARD_INDEX", "0"}, {"GTEST_TOTAL_SHARDS", "2"}};
  CHECK(found() == Shard{0, 2});
  environment = {{"GTEST_SHARD_INDEX", "0"}};
  CHECK_THROWS_AS(found(), UsageError);
  environment = {{"TEST_SHARD_INDEX", "7"}, {"TEST_TOTAL_SHARDS", "4"}};
  CHECK_THROWS_AS(found(), UsageError);
  environment = {{"SLURM_ARRAY_TASK_ID", "x"}, {"SLURM_ARRAY_TASK_COUNT", "3"}};
  CHECK_THROWS_AS(found(), UsageError);
}

TEST_CASE("files run first, in order, and their findings say where they come from") {
  const TemporaryFolder folder;
  CampaignOptions options = options_for({"two_bugs"}, 3);
  cases::Case c = generate("mla_decode", 5, 0);
  auto& problem = std::get<cases::MlaDecode>(c.problem);
  problem.requests = {{.q_len = 3, .kv_len = 20}};
  options.files = {{.source = "corpus", .file = "a.json", .kernel = "pass", .c = c},
                   {.source = "regression", .file = "b.json", .kernel = "two_bugs", .c = c}};
  const Summary summary = campaign(options, 2, folder.path + "/run");
  CHECK(summary.cases == 5);
  REQUIRE_FALSE(summary.findings.empty());
  CHECK(summary.findings[0].source == "regression");
  CHECK(summary.findings[0].first_file == "b.json");
  std::vector<std::string> sources;
  for (const Json& e : events_of(folder.path + "/run"))
    if (e.at("event") == "verdict") sources.push_back(e.at("source").get<std::string>());
  CHECK(sources == std::vector<std::string>{"corpus", "regression", "fresh", "fresh", "fresh"});
}

TEST_CASE("an excused failure is counted and is no finding") {
  const TemporaryFolder folder;
  CampaignOptions options = options_for({"two_bugs"}, 40);
  options.excuse = [](const std::string&, const std::string&, const std::string&, const cases::Case&,
                      const std::string& signature) -> std::optional<std::string> {
    if (signature.ends_with("bug A")) return "known: #1";
    return std::nullopt;
  };
  const Summary summary = campaign(options, 2, folder.path + "/run");
  REQUIRE(summary.findings.size() == 1);
  CHECK(summary.findings[0].diagnosis == "bug B");
  CHECK(summary.excused.at("known: #1") > 5);
}

TEST_CASE("a run folder that cannot be made, is taken or is being written is refused") {
  const TemporaryFolder folder;
  {
    const RunFolder first(folder.path + "/run");
    CHECK_THROWS_AS(RunFolder(folder.path + "/run", RunFolder::Open::resume), RunFolderError);
  }
  CHECK_THROWS_AS(RunFolder(folder.path + "/run"), RunFolderError);
  CHECK_NOTHROW(RunFolder(folder.path + "/run", RunFolder::Open::resume));
  CHECK_THROWS_AS(RunFolder(folder.path + "/none", RunFolder::Open::resume), RunFolderError);
  CHECK_THROWS_AS(RunFolder("/proc/attest/run"), RunFolderError);
  CHECK_THROWS_AS(write_whole_file("/dev/full/x", "text"), RunFolderError);
}

TEST_CASE("fields of a case are named by its JSON, lists by count and range") {
  cases::Case c;
  cases::MlaDecode problem;
  problem.requests = {{.q_len = 3, .kv_len = 20}, {.q_len = 3, .kv_len = 16}, {.q_len = 3, .kv_len = 0}};
  c.problem = problem;
  const auto fields = fields_of(to_json(c));
  CHECK(fields.at("memory.placement") == "shuffled");
  CHECK(fields.at("shape.requests.count") == 3);
  CHECK(fields.at("shape.requests.kv_len.min") == 0);
  CHECK(fields.at("shape.requests.kv_len.max") == 20);
  CHECK(fields.count("seed") == 0);
  const auto strata = strata_of(to_json(c));
  const auto has = [&](const char* name) { return std::count(strata.begin(), strata.end(), name) == 1; };
  CHECK(has("shape.requests.kv_len.max=17..31"));
  CHECK(has("shape.requests.kv_len.all=different"));
  CHECK(has("shape.requests.q_len.all=equal"));
  CHECK(has("shape.heads=16"));
  CHECK(has("scales.kv_scale=1"));
  CHECK(has("shape.causal=yes"));
}

TEST_CASE("a case is a function of kernel, seed and number, whatever was asked before") {
  std::vector<std::string> forward, backward;
  for (std::uint64_t n = 0; n < 40; ++n) forward.push_back(cases::case_id(campaign_case("k1", 3, n)));
  for (std::uint64_t n = 40; n-- > 0;) backward.push_back(cases::case_id(campaign_case("k2", 3, n)));
  std::reverse(backward.begin(), backward.end());
  CHECK(forward == backward);
  std::sort(forward.begin(), forward.end());
  CHECK(std::unique(forward.begin(), forward.end()) == forward.end());
}

TEST_CASE("steering covers more pairs of strata than the generator alone, for every seed tried") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Coverage steered("k"), plain("k");
    for (std::uint64_t n = 0; n < 300; ++n) {
      steered.add(to_json(campaign_case("k", seed, n)));
      plain.add(to_json(generate("mla_decode", seed, n)));
    }
    CHECK(steered.covered() > plain.covered() + plain.covered() / 20);
    CHECK(steered.covered() <= steered.reachable());
    CHECK_FALSE(steered.json().at("pairs").at("missing").empty());
  }
}

TEST_CASE("sides of branches are counted once, over all functions and cases") {
  BranchCoverage coverage;
  CHECK(coverage.total() == 0);
  CHECK(coverage.add({{"f", "010"}, {"g", "2"}}) == 2);
  CHECK(coverage.add({{"f", "010"}}) == 0);
  CHECK(coverage.add({{"f", "031"}}) == 2);
  CHECK(coverage.executed() == 4);
  CHECK(coverage.total() == 8);
  CHECK(coverage.json().at("functions").at("f") == Json{{"executed", 3}, {"total", 6}, {"ways", "031"}});
}

TEST_CASE("a neighbour is a valid case with up to three fields of another, and differs there only") {
  int made = 0;
  for (const char* op : {"mla_decode", "topk", "work_plan", "merge_states"})
    for (std::uint64_t n = 0; n < 60; ++n) {
      const cases::Case c = generate(op, 1, n), donor = generate(op, 2, n);
      const auto neighbour = crossed(c, donor, n);
      if (!neighbour) continue;
      ++made;
      CAPTURE(op, n, neighbour->second);
      REQUIRE_NOTHROW(cases::validate(neighbour->first));
      CHECK(neighbour->first != c);
      CHECK(crossed(c, donor, n) == neighbour);
      Json before = to_json(c), after = to_json(neighbour->first);
      CHECK((!neighbour->second.empty() && neighbour->second.size() <= 3));
      for (const std::string& at : neighbour->second) {
        const Json::json_pointer pointer(at);
        after[pointer] = before[pointer] = nullptr;
      }
      CHECK(before == after);
    }
  CHECK(made > 80);
}

TEST_CASE("neighbours go to the case that executed the rare side") {
  Neighbourhood neighbourhood;
  CHECK_FALSE(neighbourhood.next("k", 1, 0));
  for (std::uint64_t item = 0; item < 200; ++item)
    neighbourhood.absorb(item, "k", generate("mla_decode", 5, item), {{"f", item == 77 ? "31" : "10"}});
  int of_rare = 0, in_all = 0;
  for (std::uint64_t slot = 0; slot < 50; ++slot)
    if (const auto neighbour = neighbourhood.next("k", 1, slot)) {
      ++in_all;
      of_rare += neighbour->of == 77 ? 1 : 0;
    }
  CHECK(in_all > 40);
  CHECK(of_rare > in_all * 9 / 10);
  CHECK_FALSE(neighbourhood.next("another", 1, 0));
}

namespace {

/// How far up the ladder of fake_worker.cpp a run came.
std::size_t height_of(const Summary& summary) {
  const std::string ways =
      summary.kernels.at("ladder").branches.json().at("functions").at("ladder").at("ways");
  const auto top = ways.find_last_not_of("01");
  return top == std::string::npos ? 0 : top + 1;
}

}  // namespace

TEST_CASE("steering by branches reaches what the same number of cases without does not") {
  const TemporaryFolder folder;
  for (const std::uint64_t seed : {1U, 3U}) {
    CampaignOptions options = options_for({"ladder"}, 1000);
    options.seed = seed;
    options.max_shrunk = 0;
    const Summary plain = campaign(options, 2, fmt::format("{}/plain{}", folder.path, seed));
    options.branch_steering = true;
    const Summary steered = campaign(options, 2, fmt::format("{}/steered{}", folder.path, seed));
    CAPTURE(seed, height_of(plain), height_of(steered));
    CHECK(plain.cases == 1000);
    CHECK(steered.cases == 1000);
    CHECK(plain.findings.empty());
    CHECK(steered.branches().first > plain.branches().first);
    REQUIRE(steered.findings.size() == 1);
    CHECK(steered.findings[0].source == "neighbour");
    CHECK(steered.findings[0].first_seen().starts_with("neighbour "));
  }
}

TEST_CASE("a run steered by branches is the same with any number of workers, and after any kill") {
  const TemporaryFolder folder;
  CampaignOptions options = options_for({"ladder", "two_bugs"}, 150);
  options.seed = 3;
  options.branch_steering = true;
  options.max_shrunk = 0;
  const auto verdicts = [&](const std::string& run) {
    std::vector<Json> all;
    for (Json& e : events_of(run)) {
      if (e.at("event") != "verdict") continue;
      e.erase("t");
      all.push_back(std::move(e));
    }
    return all;
  };
  const std::string whole = folder.path + "/whole";
  const Summary undisturbed = campaign(options, 1, whole);
  const std::vector<Json> expected = verdicts(whole);
  const auto neighbours = std::count_if(expected.begin(), expected.end(),
                                        [](const Json& e) { return e.at("source") == "neighbour"; });
  CHECK(neighbours > 15);
  CHECK(undisturbed.cases == 300);
  std::map<std::uint64_t, std::string> kernel_of;
  for (const Json& e : expected) {
    kernel_of[e.at("item").get<std::uint64_t>()] = e.at("kernel").get<std::string>();
    if (e.at("source") != "neighbour") continue;
    CHECK(kernel_of.at(e.at("of").get<std::uint64_t>()) == "ladder");
    CHECK(e.at("of").get<std::uint64_t>() + neighbour_lag <= e.at("item").get<std::uint64_t>());
    CHECK_FALSE(e.at("changed").empty());
  }

  for (const int jobs : {2, 5}) {
    const std::string run = fmt::format("{}/{}", folder.path, jobs);
    CHECK(essence(campaign(options, jobs, run)) == essence(undisturbed));
    CHECK(verdicts(run) == expected);
  }
  const std::vector<std::string> lines = lines_of(whole + "/events.jsonl");
  for (std::size_t kept = 150; kept < lines.size(); kept += 83) {
    CAPTURE(kept, lines[kept - 1].substr(0, 60));
    const std::string cut = folder.path + "/cut";
    std::filesystem::create_directories(cut + "/failures");
    {
      std::ofstream events(cut + "/events.jsonl");
      for (std::size_t i = 0; i < kept; ++i) events << lines[i] << "\n";
    }
    CHECK(essence(resume(options, 2, cut)) == essence(undisturbed));
    CHECK(verdicts(cut) == expected);
    std::filesystem::remove_all(cut);
  }
}
