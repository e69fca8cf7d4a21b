// SPDX-License-Identifier: MIT
//
// Two runs compared: what counts as worse, and what does not.
#include "fuzz/report/comparison.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "fuzz/report/tests/written_run.h"
#include "fuzz/run_folder.h"
#include "fuzz/usage_error.h"
#include "fuzz/verbs.h"

namespace {

using namespace attest;
using namespace attest::fuzz;
using namespace attest::fuzz::report;
using namespace attest::fuzz::report::testing;
using oracle::VerdictKind;

/// Used budgets as re-rounding leaves them: the largest of `elements` half-normal errors. From raw draws of
/// the generator, so that every standard library gives the same.
double largest_error(std::mt19937_64& generator, int elements) {
  double largest = 0;
  for (int i = 0; i < elements; ++i) {
    double sum = 0;  // of twelve uniform draws: nearly normal, variance 1
    for (int j = 0; j < 12; ++j) sum += static_cast<double>(generator() >> 11U) * 0x1p-53;
    largest = std::max(largest, std::fabs(sum - 6));
  }
  return largest / 20;
}

/// One kernel, `budgets` in order, all passes.
void write_passes(const std::string& path, const std::vector<double>& budgets, int seed = 7,
                  const std::string& id_prefix = "id") {
  WrittenRun run(path, {{"kernels", {"k/good"}}, {"device", "sim"}, {"arch", "gfx942"}, {"seed", seed}});
  std::size_t i = 0;
  for (const double used : budgets)
    run.judge("k/good", evaluation(VerdictKind::pass, used), Json::object(), id_prefix + std::to_string(i++));
  run.end();
}

struct Compared {
  TemporaryFolder a, b;
  RunNumbers before, after;
  Comparison c;
  void run() {
    before = read_run(a.path);
    after = read_run(b.path);
    c = compare(before, after);
  }
};

}  // namespace

TEST_CASE("the chance of so many ups is the binomial's") {
  CHECK(chance_of_ups(0, 5) == 1);
  CHECK(chance_of_ups(5, 5) == Approx(1.0 / 32));
  CHECK(chance_of_ups(4, 5) == Approx(6.0 / 32));
  CHECK(chance_of_ups(10, 10) < false_alarms);
  CHECK(chance_of_ups(9, 9) > false_alarms);
  CHECK(chance_of_ups(50'000, 100'000) == Approx(0.5).margin(0.01));
  CHECK(rerounding(10'000) == Approx(0.0985).margin(0.001));
  CHECK(rerounding(0) == rerounding(2));
}

TEST_CASE("re-rounding moves the largest of N errors about as much as derived") {
  std::mt19937_64 generator(5);
  constexpr int elements = 1000, cases = 400;
  double sum = 0;
  for (int i = 0; i < cases; ++i) {
    const double d = std::log(largest_error(generator, elements) / largest_error(generator, elements));
    sum += d * d;
  }
  const double deviation = std::sqrt(sum / cases);
  CHECK(deviation > 0.5 * rerounding(elements));
  CHECK(deviation < 1.5 * rerounding(elements));
}

TEST_CASE("a kernel whose sums are reordered has not drifted, in a hundred comparisons") {
  std::mt19937_64 generator(1);
  int alarms = 0;
  for (int comparison = 0; comparison < 100; ++comparison) {
    std::vector<UsedTwice> cases;
    for (int i = 0; i < 60; ++i)
      cases.push_back({{largest_error(generator, 50), 50}, {largest_error(generator, 50), 50}});
    if (drift_case_by_case(cases, false_alarms).verdict != Drift::Verdict::none) ++alarms;
  }
  CHECK(alarms <= 1);
}

TEST_CASE("a loss of accuracy far below the limit is drift, in a few cases among many too") {
  std::vector<UsedTwice> cases(1000, {{0.05, 1000}, {0.05, 1000}});
  CHECK(drift_case_by_case(cases, false_alarms).verdict == Drift::Verdict::none);
  for (std::size_t i = 0; i < 9; ++i) cases[i].after.budget = 0.1;
  CHECK(drift_case_by_case(cases, false_alarms).verdict == Drift::Verdict::none);
  cases[9].after.budget = 0.1;
  const Drift drift = drift_case_by_case(cases, false_alarms);
  CHECK(drift.verdict == Drift::Verdict::worse);
  CHECK(drift.ups == 10);
  CHECK(drift.downs == 0);
  for (UsedTwice& c : cases) std::swap(c.before, c.after);
  CHECK(drift_case_by_case(cases, false_alarms).verdict == Drift::Verdict::better);
}

TEST_CASE("a shift that is smaller than what reordering sums does is let be, however many cases show it") {
  std::vector<UsedTwice> cases(10'000, {{0.1, 1000}, {0.105, 1000}});
  CHECK(drift_case_by_case(cases, false_alarms).verdict == Drift::Verdict::none);
  for (UsedTwice& c : cases) c.after.budget = 0.13;
  CHECK(drift_case_by_case(cases, false_alarms).verdict == Drift::Verdict::worse);
}

TEST_CASE("other cases are compared by distribution") {
  std::mt19937_64 generator(2);
  std::vector<Used> before, same, worse;
  for (int i = 0; i < 400; ++i) {
    before.push_back({largest_error(generator, 50), 50});
    same.push_back({largest_error(generator, 50), 50});
    worse.push_back({2 * largest_error(generator, 50), 50});
  }
  CHECK(drift_by_distribution(before, same, false_alarms).verdict == Drift::Verdict::none);
  CHECK(drift_by_distribution(before, worse, false_alarms).verdict == Drift::Verdict::worse);
  CHECK(drift_by_distribution(worse, before, false_alarms).verdict == Drift::Verdict::better);
  CHECK(drift_by_distribution(before, {}, false_alarms).verdict == Drift::Verdict::none);
}

TEST_CASE("a run compared with itself shows nothing worse") {
  Compared t;
  write_full_run(t.a.path);
  write_full_run(t.b.path);
  t.run();
  CHECK_FALSE(t.c.worse());
  CHECK(t.c.same_cases == 102);
  CHECK(t.c.still.size() == 2);
  CHECK(t.c.changes.empty());
  CHECK(comparison_json(t.before, t.after, t.c).at("worse") == false);
  CHECK(comparison_page(t.before, t.after, t.c).find("data-mood=\"good\"") != std::string::npos);
}

TEST_CASE("new findings and verdicts that got worse are told, known failures are not held against it") {
  Compared t;
  {
    WrittenRun a(t.a.path), b(t.b.path);
    for (int i = 0; i < 3; ++i) a.judge("k/good", evaluation(VerdictKind::pass, 0.1));
    b.judge("k/good", evaluation(VerdictKind::fail, 9, "new bug"), {{"signature", "s/new"}});
    b.find("k/good", "s/new");
    b.judge("k/good", evaluation(VerdictKind::fail, 9, "old bug"),
            {{"signature", "s/known"}, {"excuse", "known: x"}});
    b.judge("k/good", evaluation(VerdictKind::pass, 0.1));
    a.end();
    b.end();
  }
  t.run();
  CHECK(t.c.worse());
  REQUIRE(t.c.fresh.size() == 1);
  CHECK(t.c.fresh[0]->signature == "s/new");
  CHECK(t.c.changes.size() == 2);
  CHECK(t.c.worse_verdicts() == 1);
  CHECK(t.c.changes[0].worse);
  CHECK(t.c.changes[0].reproduce == "attest replay 7:0 --kernel k/good");
  CHECK(t.c.change_counts.at({"pass", "fail"}) == 2);
  const std::string page = comparison_page(t.before, t.after, t.c);
  CHECK(page.find("1 new finding, 1 verdict got worse") != std::string::npos);

  std::swap(t.before, t.after);
  const Comparison back = compare(t.before, t.after);
  CHECK_FALSE(back.worse());
  CHECK(back.vanished.size() == 1);
}

TEST_CASE("drift of a kernel that still passes everything makes the later run worse") {
  Compared t;
  std::vector<double> before(40, 0.05), after(40, 0.05);
  for (int i = 0; i < 15; ++i) after[static_cast<std::size_t>(i)] = 0.2;
  write_passes(t.a.path, before);
  write_passes(t.b.path, after);
  t.run();
  CHECK(t.c.fresh.empty());
  CHECK(t.c.changes.empty());
  CHECK(t.c.drifted() == 1);
  CHECK(t.c.kernels[0].drift.case_by_case);
  CHECK(t.c.worse());
}

TEST_CASE("runs of other seeds are compared by distribution") {
  Compared t;
  write_passes(t.a.path, std::vector<double>(200, 0.05), 7, "a");
  write_passes(t.b.path, std::vector<double>(200, 0.2), 8, "b");
  t.run();
  CHECK(t.c.same_cases == 0);
  CHECK_FALSE(t.c.kernels[0].drift.case_by_case);
  CHECK(t.c.drifted() == 1);
}

TEST_CASE("a kernel that is no more tested is worse, and no kernel in common is no comparison") {
  Compared t;
  {
    WrittenRun a(t.a.path), b(t.b.path);
    a.judge("k/good", evaluation(VerdictKind::pass, 0.1));
    a.judge("k/gone", evaluation(VerdictKind::pass, 0.1));
    b.judge("k/good", evaluation(VerdictKind::unsupported, 0));
    a.end();
    b.end();
  }
  t.run();
  CHECK(t.c.no_more_tested() == 2);
  CHECK(t.c.only_before == std::vector<std::string>{"k/gone"});
  CHECK(t.c.worse());

  const TemporaryFolder other;
  WrittenRun run(other.path);
  run.judge("k/other", evaluation(VerdictKind::pass, 0.1));
  run.end();
  const RunNumbers elsewhere = read_run(other.path);
  CHECK_THROWS_AS(compare(t.before, elsewhere), UsageError);
}

TEST_CASE("exit codes of attest report") {
  const TemporaryFolder folder;
  const std::string a = folder.path + "/a", b = folder.path + "/b";
  std::vector<double> worse(40, 0.05);
  for (std::size_t i = 0; i < 15; ++i) worse[i] = 0.2;
  write_passes(a, std::vector<double>(40, 0.05));
  write_passes(b, worse);
  const auto report = [&](std::vector<std::string> folders, const std::string& out = "") {
    return verb_report(Common{}, ReportOptions{std::move(folders), out});
  };
  CHECK(report({a}) == exit_ok);
  CHECK(std::filesystem::exists(a + "/report.html"));
  CHECK(report({a, a}) == exit_ok);
  CHECK(report({a, b}) == exit_verdict);
  CHECK(std::filesystem::exists(b + "/comparison.html"));
  CHECK(report({b, a}) == exit_ok);
  CHECK_THROWS_AS(report({a}, folder.path + "/none/page.html"), UsageError);
  try {
    report({folder.path});
    FAIL("no error");
  } catch (const RunFolderError& error) {
    CHECK(error.exit_code == exit_usage);
  }
}
