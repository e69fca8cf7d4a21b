// SPDX-License-Identifier: MIT
//
// A run folder's numbers, and what the page says of runs that are not whole.
#include <catch2/catch.hpp>
#include <cmath>

#include "fuzz/campaign.h"
#include "fuzz/report/case_view.h"
#include "fuzz/report/charts.h"
#include "fuzz/report/page.h"
#include "fuzz/report/run_numbers.h"
#include "fuzz/report/tests/written_run.h"

namespace {

using namespace attest;
using namespace attest::fuzz;
using namespace attest::fuzz::report;
using namespace attest::fuzz::report::testing;
using oracle::VerdictKind;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("a run in numbers") {
  const TemporaryFolder folder;
  write_full_run(folder.path);
  const RunNumbers run = read_run(folder.path);
  CHECK(run.remarks.empty());
  CHECK(run.complete);
  CHECK(run.cases_run == 102);
  CHECK(run.tested == 102);
  CHECK(run.verdicts == std::map<std::string, std::uint64_t>{{"pass", 90}, {"fail", 10}, {"crash", 2}});
  CHECK(run.seconds == Approx(10.2));
  REQUIRE(run.findings.size() == 2);
  CHECK(run.findings[0].signature == "s/crash");  // worse than wrong, though rarer
  CHECK(run.findings[0].count == 2);
  CHECK(run.findings[1].count == 10);
  CHECK(run.findings[1].minimal);
  CHECK(run.findings[1].minimised == case_json(90));
  REQUIRE(run.findings[1].minimised_map);
  CHECK(run.findings[1].minimised_map->used[1][1] == 40);
  CHECK(std::isnan(run.findings[1].minimised_map->used[2][2]));
  CHECK(run.findings[1].minimised_map->used[0][1] == MismatchMap::not_checked);
  const BudgetHistogram& good = run.kernels[0].budgets.at("element");
  CHECK(good.total() == 60);
  CHECK(good.quantile_within(0.5) == Approx(0.30));
  CHECK(good.quantile_within(1) == Approx(0.60));
  CHECK(run.kernels[1].budgets.at("element").beyond() == 10);
  CHECK(run.worst_first() == std::vector<std::size_t>{1, 0});
  REQUIRE(run.fidelity.size() == 2);
  CHECK(run.fidelity[0].op == "v_exp_f32");
  CHECK(run.fidelity[0].count == 600);
  CHECK(run.fidelity_cases == 60);
  std::uint64_t in_buckets = 0;
  for (const RateBucket& b : run.rate) in_buckets += b.cases;
  CHECK(in_buckets == 102);
  CHECK(run.slowest(3).size() == 3);
  CHECK(run.reproduction(run.cases[3]) == "attest replay 7:3 --kernel k/good");
}

TEST_CASE("1, the limit, parts the bins of a histogram, and what is not finite is beyond it") {
  BudgetHistogram h;
  for (const double used : {0.0, 1e-9, 0.5, 1.0}) h.add(used);
  CHECK(h.beyond() == 0);
  h.add(std::nextafter(1.0, 2.0));
  h.add(std::numeric_limits<double>::infinity());
  h.add(std::nan(""));
  h.add(1e30);
  CHECK(h.beyond() == 4);
  CHECK(h.counts()[0] == 2);
  CHECK(h.counts()[BudgetHistogram::limit_bin] == 1);
  CHECK(h.counts()[BudgetHistogram::limit_bin + 1] == 1);
  CHECK(h.counts().back() == 3);
  CHECK(h.quantile_within(1) == 1);
  CHECK(std::isnan(BudgetHistogram().quantile_within(0.5)));
}

TEST_CASE("a report counts what the campaign's summary counts") {
  const TemporaryFolder folder;
  PoolOptions workers;
  workers.jobs = 2;
  workers.recovery_pause = std::chrono::milliseconds(1);
  workers.command = {ATTEST_FAKE_WORKER};
  CampaignOptions options;
  options.kernels = {"two_bugs", "coin", "pass", "gpu_fault", "ladder"};
  options.seed = 11;
  options.cases = 12;
  Pool pool(workers);
  RunFolder run_folder(folder.path + "/run");
  Progress progress(true);
  const Summary summary = run_campaign(options, pool, run_folder, progress);
  const RunNumbers run = read_run(folder.path + "/run");
  CHECK(run.remarks.empty());
  CHECK(run.unreadable == 0);
  CHECK(run.cases_run == summary.cases);
  CHECK(run.tested == summary.tested());
  CHECK(run.verdicts == summary.verdicts);
  CHECK(run.seconds == summary.seconds);
  CHECK(run.workers_lost == summary.workers_lost);
  CHECK(run.complete == summary.complete);
  CHECK(run.pairs() == summary.pairs());
  CHECK(run.branches() == summary.branches());
  CHECK(run.branches().second == 12);
  const std::string executed = std::to_string(run.branches().first);
  CHECK(has(page(run), executed + " of 12 sides of branches"));
  CHECK(has(page(run), "<code>ladder</code>: " + executed + " of 12; "));
  REQUIRE(run.findings.size() == summary.findings.size());
  for (const FindingNumbers& f : run.findings) {
    const auto same = std::find_if(summary.findings.begin(), summary.findings.end(),
                                   [&](const Finding& g) { return g.signature == f.signature; });
    REQUIRE(same != summary.findings.end());
    CHECK(f.count == same->count);
    CHECK(f.kind == oracle::name(same->verdict().kind));
    CHECK(f.detail == same->verdict().detail);
    CHECK(f.minimal == same->best.minimal);
    CHECK(f.minimised == to_json(same->best.c));
    CHECK(f.original == to_json(same->original));
    CHECK(f.reproduce == fuzz::reproduction(*same, folder.path + "/run"));
  }
}

TEST_CASE("nothing tested is said loudly") {
  const TemporaryFolder folder;
  WrittenRun run(folder.path);
  for (int i = 0; i < 3; ++i) {
    Evaluation e = evaluation(VerdictKind::unsupported, 0, "page_size 3 is none");
    run.judge("k/good", e);
  }
  run.end();
  const RunNumbers numbers = read_run(folder.path);
  CHECK(numbers.tested == 0);
  CHECK(numbers.untested.size() == 2);
  const std::string text = page(numbers);
  CHECK(has(text, "data-mood=\"nothing\">Nothing was tested"));
  CHECK(has(text, "page_size 3 is none"));
  CHECK(has(text, "data-env=\"device.runtime\">libamdhip64.so.6, HIP 6.3.42133<"));
}

TEST_CASE("a kernel that was to be tested and was not is no success") {
  const TemporaryFolder folder;
  WrittenRun run(folder.path);
  run.judge("k/good", evaluation(VerdictKind::pass, 0.1));
  run.end();
  CHECK(has(page(read_run(folder.path)), "data-mood=\"unsure\">No finding, but 1 kernel was not tested"));
}

TEST_CASE("a run that has not ended, or was interrupted, is no success") {
  const TemporaryFolder folder;
  WrittenRun run(folder.path, {{"kernels", {"k/good"}}, {"seed", 7}});
  run.judge("k/good", evaluation(VerdictKind::pass, 0.1));
  std::string text = page(read_run(folder.path));
  CHECK(has(text, "data-mood=\"unsure\">No finding so far"));
  CHECK(has(text, "the run has not ended"));
  CHECK(has(text, "attest fuzz --resume " + folder.path));
  run.end(false);
  CHECK(has(page(read_run(folder.path)), "the run was interrupted"));
  run.end(true);
  CHECK(has(page(read_run(folder.path)), "data-mood=\"good\""));
}

TEST_CASE("a last line that was cut off does not matter") {
  const TemporaryFolder folder;
  WrittenRun run(folder.path);
  run.judge("k/good", evaluation(VerdictKind::pass, 0.1));
  std::ofstream(folder.path + "/events.jsonl", std::ios::app) << R"({"event": "verdict", "ite)";
  CHECK(read_run(folder.path).cases_run == 1);
}

TEST_CASE("a run of another schema is reported as far as it can be read, and the page says so") {
  const TemporaryFolder folder;
  WrittenRun run(folder.path, {{"kernels", {"k/good"}}}, 0);
  // As the first version wrote them: no item, no time, no case, no source.
  run.add({{"event", "start"}, {"number", 0}, {"kernel", "k/good"}, {"id", "a"}});
  run.add({{"event", "verdict"},
           {"number", 0},
           {"kernel", "k/good"},
           {"id", "a"},
           {"evaluation", {{"verdict", {{"kind", "pass"}, {"used_budget", 0.25}, {"lane", "element"}}}}}});
  run.add({{"event", "verdict"}, {"number", 1}, {"result", "of a form never seen"}});
  const RunNumbers numbers = read_run(folder.path);
  CHECK(numbers.cases_run == 1);
  CHECK(numbers.unreadable == 1);
  CHECK(numbers.kernels[0].budgets.at("element").total() == 1);
  const std::string text = page(numbers);
  CHECK(has(text, "has schema 0, this attest knows 1"));
  CHECK(has(text, "1 events could not be understood"));
  CHECK(has(text, "coverage is not known"));
}

TEST_CASE("a finding that only its failure file tells of is not lost, a broken file is named") {
  const TemporaryFolder folder;
  WrittenRun run(folder.path);
  run.judge("k/good", evaluation(VerdictKind::pass, 0.1));
  run.end();
  run.write("failures/bb.json",
            Json{{"signature", "s/only"}, {"kernel", "k/good"}, {"verdict", {{"kind", "fail"}}}}.dump());
  run.write("failures/cc.json", "{\"signature\": ");
  const RunNumbers numbers = read_run(folder.path);
  REQUIRE(numbers.findings.size() == 1);
  CHECK(numbers.findings[0].signature == "s/only");
  CHECK(numbers.findings[0].kind == "fail");
  CHECK(numbers.remarks.size() == 2);
  CHECK(has(page(numbers), "cc.json was left out"));
}

TEST_CASE("a summary that says something else than the events is noticed") {
  const TemporaryFolder folder;
  WrittenRun run(folder.path);
  run.judge("k/good", evaluation(VerdictKind::pass, 0.1));
  run.end();
  run.write("summary.json", R"({"cases": 4})");
  CHECK(has(page(read_run(folder.path)), "summary.json says 4 cases, events.jsonl holds 1"));
}

TEST_CASE("what files say is escaped wherever it stands") {
  const TemporaryFolder folder;
  write_full_run(folder.path);
  const std::string text = page(read_run(folder.path));
  CHECK_FALSE(has(text, "<script"));
  CHECK_FALSE(has(text, "<b>rows"));
  CHECK_FALSE(has(text, "table <of>"));
  CHECK_FALSE(has(text, "some <compiler>"));
  CHECK(has(text, "k/&lt;script&gt;document.title=&#39;taken&#39;&lt;/script&gt;&amp;amp;&quot;&#39;"));
  CHECK(escaped("a\xFF\xC3\xA9\x01\xE2\x82") == "a\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_CASE("a page loads nothing") {
  const TemporaryFolder folder;
  write_full_run(folder.path);
  const std::string text = page(read_run(folder.path));
  for (const char* loader : {"http:", "https:", "src=", "url(", "@import", "<link", "<iframe", "<object"})
    CHECK_FALSE(has(text, loader));
}

TEST_CASE("a heat map has a cell for each row and head, coloured by its budget") {
  MismatchMap map;
  map.axis = "head";
  map.columns = {"0", "1"};
  map.rows = {{0, 0}, {0, 1}, {1, 0}};
  map.used = {{0.05, 0.3}, {0.9, 5}, {2000, std::nan("")}};
  const std::string svg = heat_map(map).text;
  for (const char* css : {"h-w0", "h-w1", "h-w2", "h-f0", "h-f2", "h-nan"}) CHECK(times(svg, css) == 1);
  CHECK(has(svg, "request 1, position 0, head 0: 2,000"));
  map.used[0][0] = MismatchMap::not_checked;
  CHECK(has(heat_map(map).text, "h-none"));
}

TEST_CASE("a large map is drawn in runs and covers every cell once") {
  MismatchMap map;
  map.axis = "head";
  for (int c = 0; c < 128; ++c) map.columns.push_back(std::to_string(c));
  for (int r = 0; r < 64; ++r) {
    map.rows.push_back({r / 4, r % 4});
    map.used.emplace_back();
    for (int c = 0; c < 128; ++c) map.used.back().push_back(c < 32 ? 0.2 : r % 2 == 0 ? 0.2 : 30.0);
  }
  const std::string svg = heat_map(map).text;
  CHECK(times(svg, "h128v1h-128z") == 32);
  CHECK(times(svg, "h96v1h-96z") == 32);
  CHECK(svg.size() < 12'000);
}

TEST_CASE("a mismatch is read with what it says and its other axes") {
  const Json rows = {{{"request", 0}, {"position", 0}}};
  const auto map = read_mismatch({{"rows", rows},
                                  {"columns", {"0"}},
                                  {"axis", "head"},
                                  {"used", {{2.0}}},
                                  {"others",
                                   {{{"rows", rows},
                                     {"columns", {"0", "1"}},
                                     {"axis", "key"},
                                     {"used", {{0.1, "inf"}}},
                                     {"says", "key 1"}}}}});
  REQUIRE(map);
  REQUIRE(map->others.size() == 1);
  CHECK(map->others[0].axis == "key");
  CHECK(map->others[0].says == "key 1");
  CHECK(map->others[0].columns.size() == 2);
}

TEST_CASE("a mismatch of another form is none") {
  CHECK_FALSE(read_mismatch(Json()));
  CHECK_FALSE(read_mismatch({{"rows", Json::array()}, {"columns", Json::array()}, {"used", Json::array()}}));
  CHECK_FALSE(read_mismatch(
      {{"rows", {{{"request", 0}, {"position", 0}}}}, {"columns", {"0", "1"}}, {"used", {{1.0}}}}));
}

TEST_CASE("a case is shown with its requests and its floats as numbers") {
  const std::string text = case_view(case_json(9)).text;
  CHECK(has(text, "<th>2 requests</th>"));
  CHECK(has(text, "<b>kv_len</b> 10"));
  CHECK(has(text, "<b>kv_scale</b> 1<"));
  CHECK(has(case_view(Json()).text, "does not hold the case"));
}
