// SPDX-License-Identifier: MIT
//
// The gate as a CI owner meets it: every way it can end, each with its own small folder of cases.
#include "fuzz/gate.h"

#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <pugixml.hpp>

#include "fuzz/gate_reports.h"
#include "fuzz/tests/fixtures.h"
#include "fuzz/usage_error.h"

namespace {

using attest::fuzz::testing::read_file;
using attest::fuzz::testing::TemporaryFolder;
using attest::fuzz::testing::write_file;
using namespace attest;
using namespace attest::fuzz;

cases::Case small_case() {
  cases::Case c;
  cases::MlaDecode problem;
  problem.heads = 1;
  problem.requests = {{.q_len = 3, .kv_len = 3}};
  c.problem = problem;
  return c;
}

const std::string qlen_mask = "attest/mla_decode+qlen_mask";
const std::string rows_identical = "mla_decode/attest/mla_decode+qlen_mask/fail/result/query rows identical";

std::string failure_file(const std::string& kernel, const std::string& signature) {
  return Json{{"schema", 1},
              {"signature", signature},
              {"kernel", kernel},
              {"original", to_json(small_case())},
              {"minimised", to_json(small_case())},
              {"output_digest", ""}}
      .dump();
}

Json cell(const std::string& kernel, const std::string& device = "sim") {
  return {{"kernel", kernel}, {"op", "mla_decode"}, {"arch", "gfx942"}, {"device", device}};
}

Json entry() {
  return {{"id", "rows"},
          {"op", "mla_decode"},
          {"kernel", qlen_mask},
          {"arch", "gfx942"},
          {"signature", "mla_decode/attest/mla_decode+qlen_mask/*"},
          {"issue", "https://github.com/ROCm/aiter/issues/2720"},
          {"expires", "2027-03-31"},
          {"mode", "tolerated"},
          {"probe", "probes/rows.json"}};
}

/// A folder of cases with what a gate needs.
struct Cases {
  TemporaryFolder folder;
  std::string path = folder.path + "/cases";

  explicit Cases(const std::vector<Json>& cells) {
    write_file(path + "/support.json", Json{{"schema", 1}, {"fresh_cases", 6}, {"cells", cells}}.dump());
  }
  void know(const std::vector<Json>& entries) {
    write_file(path + "/known.json", Json{{"schema", 1}, {"entries", entries}}.dump());
    write_file(path + "/probes/rows.json", failure_file(qlen_mask, rows_identical));
  }
};

struct Gate {
  int code = -1;
  std::string out, err, junit, summary;
  Json report;
  [[nodiscard]] std::string outcome() const { return report.value("outcome", ""); }
};

/// 2026-12-01, before every expiry below but one.
const std::string december = "SOURCE_DATE_EPOCH=1796083200 ";

Gate gate(const Cases& cases, const std::string& arguments = "--seed 1",
          const std::string& environment = december) {
  const std::string at = cases.folder.path;
  std::filesystem::remove_all(at + "/run");
  const std::string command =
      environment + " env -u GITHUB_STEP_SUMMARY '" ATTEST_PROGRAM "' gate --quiet --json --cases " +
      cases.path + " --out " + at + "/run --junit " + at + "/junit.xml --summary " + at + "/summary.md " +
      arguments + " >" + at + "/out 2>" + at + "/err </dev/null";
  const int status = std::system(command.c_str());
  Gate result{.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
              .out = read_file(at + "/out"),
              .err = read_file(at + "/err"),
              .junit = read_file(at + "/junit.xml"),
              .summary = read_file(at + "/summary.md"),
              .report = {}};
  result.report = Json::parse(result.out, nullptr, false);
  if (!result.report.is_object()) result.report = Json::object();
  return result;
}

pugi::xml_document parsed(const std::string& xml) {
  pugi::xml_document document;
  const auto result = document.load_string(xml.c_str());
  INFO(result.description());
  REQUIRE(result);
  return document;
}

}  // namespace

TEST_CASE("gate: all good is 0, and the reports count what was done") {
  Cases cases(std::vector<Json>{cell("attest/mla_decode")});
  write_file(cases.path + "/corpus/plain.json", cases::pretty_json(small_case()));
  write_file(cases.path + "/corpus/planted/rows.json", failure_file(qlen_mask, rows_identical));
  write_file(cases.path + "/findings/aiter/x.json", failure_file("aiter/no_object_of_that_name", "s"));
  const Gate g = gate(cases);
  INFO(g.err << g.out);
  CHECK(g.code == 0);
  CHECK(g.outcome() == "all as expected");
  CHECK(g.report.at("cells")[0].at("tested") ==
        8);  // 6 fresh, and each corpus case on the kernel without the fault
  const auto document = parsed(g.junit);
  const auto root = document.child("testsuites");
  CHECK(root.attribute("failures").as_int() == 0);
  CHECK(root.attribute("skipped").as_int() == 1);
  CHECK(root.attribute("tests").as_int() == 6);
  CHECK(std::string(document.select_node("//skipped").node().attribute("message").value()) ==
        "the kernel is not in this build");
  CHECK(g.summary.find("## attest gate: all as expected") == 0);
  CHECK(g.summary.find("| the kernel is not in this build | 1 | aiter/no_object_of_that_name: ") !=
        std::string::npos);
  CHECK(Json::parse(read_file(cases.folder.path + "/run/gate.json")).at("exit_code") == 0);
}

TEST_CASE("gate: a new failure is 1, with its reproduction in every report") {
  Cases cases(std::vector<Json>{cell("attest/mla_decode"), cell(qlen_mask)});
  const Gate g = gate(cases, "--seed 1 --fresh 12");
  CHECK(g.code == 1);
  CHECK(g.outcome() == "new failure");
  CHECK(g.summary.find("attest replay " + cases.folder.path + "/run/failures/") != std::string::npos);
  CHECK(g.summary.find("query rows identical") != std::string::npos);
  const auto document = parsed(g.junit);
  CHECK(document.child("testsuites").attribute("failures").as_int() == 1);
  CHECK(std::string(document.select_node("//failure").node().attribute("type").value()) == "new failure");
}

TEST_CASE("gate: a failure file is run under the schedule and the detectors it was found under") {
  Cases cases(std::vector<Json>{cell("attest/mla_decode")});
  Json failure = Json::parse(failure_file(qlen_mask, rows_identical));
  failure["schedule"] = "quantum=64,seed=3";
  failure["detectors"] = "barrier";
  write_file(cases.path + "/corpus/rows.json", failure.dump());
  const Gate g = gate(cases);
  INFO(g.err << g.out);
  CHECK(g.code == 0);
  std::ifstream events(cases.folder.path + "/run/events.jsonl");
  int found = 0;
  for (std::string line; std::getline(events, line);) {
    const Json event = Json::parse(line);
    if (event.at("event") != "verdict") continue;
    const bool of_file = event.value("file", "").find("rows.json") != std::string::npos;
    CHECK(event.contains("schedule") == of_file);
    if (!of_file) continue;
    ++found;
    CHECK(event.at("schedule") == "quantum=64,seed=3");
    CHECK(event.at("detectors") == "barrier");
  }
  CHECK(found == 2);  // with the fault and without it
}

TEST_CASE("gate: a corpus case that fails otherwise than expected is a new failure") {
  Cases cases(std::vector<Json>{cell("attest/mla_decode")});
  write_file(cases.path + "/corpus/rows.json",
             failure_file(qlen_mask, "mla_decode/x/fail/result/something else"));
  const Gate g = gate(cases);
  CHECK(g.code == 1);
  CHECK(g.outcome() == "new failure");
  CHECK(g.summary.find("fails with " + rows_identical) != std::string::npos);
}

TEST_CASE("gate: a known failure is 0 and is counted") {
  Cases cases(std::vector<Json>{cell(qlen_mask)});
  cases.know({entry()});
  const Gate g = gate(cases, "--seed 1 --fresh 12");
  INFO(g.err << g.out);
  CHECK(g.code == 0);
  CHECK(g.report.at("cells")[0].at("known") > 0);
  CHECK(g.report.at("cells")[0].at("failed") == 0);

  Json elsewhere = entry();
  elsewhere["where"] = {{"shape.heads", {{"min", 129}}}};  // what fails is not what is known
  cases.know({elsewhere});
  CHECK(gate(cases, "--seed 1 --fresh 12").code == 1);
}

TEST_CASE("gate: what is known to fail and passes is an unexpected pass, 1") {
  Cases cases(std::vector<Json>{cell("attest/mla_decode")});
  Json repaired = entry();
  repaired["kernel"] = "attest/mla_decode";
  cases.know({repaired});
  write_file(cases.path + "/probes/rows.json",
             failure_file("attest/mla_decode", "mla_decode/attest/mla_decode/fail/x"));
  const Gate g = gate(cases);
  CHECK(g.code == 1);
  CHECK(g.outcome() == "unexpected pass");
  CHECK(g.summary.find("the ledger entry is stale") != std::string::npos);

  Cases corpus(std::vector<Json>{cell("attest/mla_decode")});
  write_file(corpus.path + "/corpus/x.json",
             failure_file("attest/mla_decode", "mla_decode/attest/mla_decode/fail/x"));
  CHECK(gate(corpus).outcome() == "unexpected pass");
}

TEST_CASE("gate: an expired entry, and one without a link, are 5") {
  Cases cases(std::vector<Json>{cell(qlen_mask)});
  cases.know({entry()});
  const Gate expired = gate(cases, "--seed 1 --fresh 12", "SOURCE_DATE_EPOCH=1806537600");  // 2027-04-01
  CHECK(expired.code == 5);
  CHECK(expired.outcome() == "ledger fault");
  CHECK(expired.summary.find("expired on 2027-03-31") != std::string::npos);
  Json unlinked = entry();
  unlinked.erase("issue");
  cases.know({unlinked});
  const Gate without = gate(cases, "--seed 1 --fresh 12");
  CHECK(without.code == 5);
  CHECK(without.summary.find("has no issue link") != std::string::npos);
}

TEST_CASE("gate: no device is 3, and is in the reports") {
  if (std::filesystem::exists("/dev/kfd")) return;
  Cases cases(std::vector<Json>{cell("attest/mla_decode", "hip")});
  const Gate g = gate(cases, "--seed 1 --device hip");
  CHECK(g.code == 3);
  CHECK(g.outcome() == "no device");
  CHECK(parsed(g.junit).child("testsuites").attribute("failures").as_int() == 1);
}

TEST_CASE("gate: a promised cell that is not there, or not tested enough, is 6") {
  Cases absent(std::vector<Json>{cell("attest/mla_decode"), cell("attest/no_such_kernel")});
  const Gate g = gate(absent);
  CHECK(g.code == 6);
  CHECK(g.outcome() == "missing promised cell");
  CHECK(g.summary.find("promised, and not in this build") != std::string::npos);
  Json more = cell("attest/mla_decode");
  more["least_tested"] = 7;
  const Gate few = gate(Cases(std::vector<Json>{more}));
  CHECK(few.code == 6);
  CHECK(few.summary.find("only 6 of 6 cases were really tested; 7 are asked for") != std::string::npos);
}

TEST_CASE("gate: nothing to test is 7, all skipped is 8") {
  CHECK(gate(Cases(std::vector<Json>{cell("attest/mla_decode", "hip")})).code == 7);
  Cases cases(std::vector<Json>{cell("attest/mla_decode")});
  Json quarantined = entry();
  quarantined["kernel"] = "*";
  quarantined["mode"] = "quarantined";
  quarantined.erase("probe");
  cases.know({quarantined});
  const Gate g = gate(cases);
  CHECK(g.code == 8);
  CHECK(g.outcome() == "all skipped");
  CHECK(g.report.at("cells")[0].at("quarantined") == 6);
  quarantined["where"] = {{"shape.requests.count", 1}};  // some
  cases.know({quarantined});
  const Gate some = gate(cases, "--seed 1 --fresh 20");
  CHECK(some.code == 0);
  const auto held = some.report.at("cells")[0].at("quarantined").get<int>();
  CHECK((held > 0 && held < 20));
  CHECK(some.report.at("cells")[0].at("tested").get<int>() <= 20 - held);
}

TEST_CASE("gate: a broken file is 2, in one line that names it") {
  const auto refused = [](const Cases& cases, const std::string& words) {
    const Gate g = gate(cases);
    INFO(g.err);
    CHECK(g.code == 2);
    CHECK(std::count(g.err.begin(), g.err.end(), '\n') == 1);
    CHECK(g.err.find(words) != std::string::npos);
  };
  Cases cases(std::vector<Json>{cell("attest/mla_decode")});
  write_file(cases.path + "/corpus/broken.json", "{\"schema\": 1, ");
  refused(cases, "corpus/broken.json");
  std::filesystem::remove(cases.path + "/corpus/broken.json");
  write_file(cases.path + "/known.json", "{\"schema\": 1, \"entries\": [");
  refused(cases, "known.json: not valid JSON");
  const auto entry_with = [&](const char* field, const Json& value) {
    Json changed = entry();
    changed[field] = value;
    cases.know({changed});
  };
  entry_with("signatur", "x");
  refused(cases, "entry rows: unknown field 'signatur'");
  entry_with("expires", "soon");
  refused(cases, "expires: 'soon' is no date");
  entry_with("mode", "ignored");
  refused(cases, "mode: must be tolerated or quarantined");
  entry_with("op", "mla_deocde");
  refused(cases, "there is no op 'mla_deocde'");
  entry_with("where", {{"shape.pagesize", 3}});
  refused(cases, "no case of mla_decode has a field 'shape.pagesize'");
  entry_with("probe", "");
  refused(cases, "needs a 'probe'");
  cases.know({entry(), entry()});
  refused(cases, "the id is given twice");
  cases.know({entry()});
  std::filesystem::remove(cases.path + "/probes/rows.json");
  refused(cases, "probes/rows.json");
  std::filesystem::remove(cases.path + "/known.json");
  write_file(cases.path + "/support.json", "{\"schema\": 1, \"cells\": [{\"kernel\": \"k\"}]}");
  refused(cases, "support.json: cell 0: 'op' is missing");
  std::filesystem::remove(cases.path + "/support.json");
  refused(cases, "support.json: cannot be opened");
}

TEST_CASE("gate: the seed is the commit's, the same for the same") {
  CHECK(seed_of_commit("a") != seed_of_commit("b"));
  Cases cases(std::vector<Json>{cell("attest/mla_decode")});
  const Gate one = gate(cases, "--commit 0123456789abcdef"),
             two = gate(cases, "", december + "BUILDKITE_COMMIT=0123456789abcdef");
  CHECK(one.code == 0);
  CHECK(one.report.at("seed") == seed_of_commit("0123456789abcdef"));
  CHECK(two.report.at("seed") == one.report.at("seed"));
  CHECK(gate(cases, "--commit fedcba9876543210").report.at("seed") != one.report.at("seed"));
}

TEST_CASE("gate: predicates speak of the fields of a case") {
  TemporaryFolder folder;
  Json e = entry();
  e["where"] = {{"shape.requests.q_len.max", {{"min", 2}, {"max", 4}}},
                {"memory.placement", {"ordered", "shuffled"}}};
  write_file(folder.path + "/known.json", Json{{"schema", 1}, {"entries", {e}}}.dump());
  const Ledger ledger = Ledger::read(folder.path + "/known.json");
  cases::Case c = small_case();
  CHECK(ledger.tolerates(qlen_mask, "gfx942", "sim", c, rows_identical) != nullptr);
  CHECK(ledger.tolerates(qlen_mask, "gfx950", "sim", c, rows_identical) == nullptr);
  CHECK(ledger.tolerates("attest/mla_decode", "gfx942", "sim", c, rows_identical) == nullptr);
  CHECK(ledger.tolerates(qlen_mask, "gfx942", "sim", c, "mla_decode/other/fail/result/x") == nullptr);
  c.memory.placement = cases::Placement::reversed;
  CHECK(ledger.tolerates(qlen_mask, "gfx942", "sim", c, rows_identical) == nullptr);
  c = small_case();
  std::get<cases::MlaDecode>(c.problem).requests.push_back({.q_len = 5, .kv_len = 9});
  CHECK(ledger.tolerates(qlen_mask, "gfx942", "sim", c, rows_identical) == nullptr);
}

TEST_CASE("gate: reports escape what they are given") {
  GateReport report;
  report.outcome = Outcome::new_failure;
  report.checks.push_back({.group = "a<b>&\"c\"",
                           .what = "x|y",
                           .result = Check::Result::failed,
                           .outcome = Outcome::new_failure,
                           .why = std::string("first \x01 line\nsecond | line"),
                           .seconds = 0.5});
  const auto document = parsed(junit_xml(report));
  const auto failure = document.select_node("//failure").node();
  CHECK(std::string(failure.attribute("message").value()) == "first ? line");
  CHECK(std::string(failure.text().get()).find("second | line") != std::string::npos);
  CHECK(std::string(document.select_node("//testcase").node().attribute("classname").value()) ==
        "a<b>&\"c\"");
  CHECK(markdown(report).find("second \\| line") != std::string::npos);
}

// Without the seeds, which seeds_test runs.
TEST_CASE("gate: the repository's own corpus, ledger and manifest are in order") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path + "/cases");
  for (const char* part : {"corpus", "findings", "known.json", "support.json"})
    std::filesystem::create_symlink(std::string(ATTEST_CASES "/") + part, folder.path + "/cases/" + part);
  const std::string command =
      "env -u GITHUB_STEP_SUMMARY '" ATTEST_PROGRAM "' gate --quiet --json --cases '" + folder.path +
      "/cases' --seed 1 --fresh 24 --out " + folder.path + "/run >" + folder.path + "/out 2>&1";
  const int status = std::system(command.c_str());
  INFO(read_file(folder.path + "/out"));
  CHECK(WEXITSTATUS(status) == 0);
}
