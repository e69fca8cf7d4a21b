// SPDX-License-Identifier: MIT
//
// A run folder written by hand, whose numbers a test knows because it wrote them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "fuzz/record.h"
#include "fuzz/tests/fixtures.h"

namespace attest::fuzz::report::testing {

using fuzz::testing::TemporaryFolder;

inline constexpr const char* hostile_kernel = "k/<script>document.title='taken'</script>&amp;\"'";

inline Json case_json(int kv_len) {
  cases::Case c;
  cases::MlaDecode problem;
  problem.requests = {{1, kv_len}, {2, kv_len + 1}};
  c.problem = problem;
  return to_json(c);
}

inline Evaluation evaluation(oracle::VerdictKind kind, double used, const std::string& diagnosis = "") {
  Evaluation e;
  e.verdict.kind = kind;
  e.verdict.stage = kind == oracle::VerdictKind::pass ? "" : "element";
  e.verdict.diagnosis = diagnosis;
  e.verdict.detail = diagnosis.empty() ? "" : "of <b>" + diagnosis + "</b>";
  e.verdict.used_budget = used;
  e.verdict.lane = "element";
  e.verdict.elements_checked = 1000;
  e.output_digest = "0123456789abcdef";
  e.wave_instructions = 500;
  e.materialise_seconds = 0.001;
  e.run_seconds = 0.01;
  e.judge_seconds = 0.002;
  return e;
}

/// Writes events one by one; what each test adds is its fixture.
class WrittenRun {
 public:
  explicit WrittenRun(const std::string& path,
                      const Json& options = {{"kernels", {"k/good", hostile_kernel}},
                                             {"device", "sim"},
                                             {"arch", "gfx942"},
                                             {"seed", 7}},
                      int schema = record_schema)
      : path_(path) {
    std::filesystem::create_directories(path + "/failures");
    add({{"event", "run"},
         {"schema", schema},
         {"attest", {{"version", "9.8.7"}, {"compiler", "some <compiler>"}}},
         {"device", {{"kind", "hip"}, {"arch", "gfx942"}, {"runtime", "libamdhip64.so.6, HIP 6.3.42133"}}},
         {"jobs", 2},
         {"options", options}});
  }

  void add(const Json& event) {
    std::ofstream(path_ + "/events.jsonl", std::ios::app) << event.dump() << "\n";
  }

  /// @param extra members of the verdict's event
  void judge(const std::string& kernel, const Evaluation& e, const Json& extra = Json::object(),
             const std::string& id = "") {
    const Json c = case_json(static_cast<int>(item_));
    Json event = {{"event", "start"},  {"item", item_},
                  {"source", "fresh"}, {"number", item_},
                  {"kernel", kernel},  {"id", id.empty() ? "id" + std::to_string(item_) : id}};
    Json start = event;
    start["case"] = c;
    add(start);
    event["event"] = "verdict";
    event["t"] = 0.1 * static_cast<double>(item_ + 1);
    event["evaluation"] = to_json(e);
    event.update(extra);
    add(event);
    ++item_;
  }

  void find(const std::string& kernel, const std::string& signature) {
    add({{"event", "finding"},
         {"item", item_ - 1},
         {"source", "fresh"},
         {"number", item_ - 1},
         {"kernel", kernel},
         {"signature", signature},
         {"id", "x"},
         {"t", 0.1 * static_cast<double>(item_)}});
  }

  void write(const std::string& file, const std::string& text) { std::ofstream(path_ + "/" + file) << text; }

  void end(bool complete = true) {
    add({{"event", "end"}, {"t", 0.1 * static_cast<double>(item_)}, {"complete", complete}, {"summary", {}}});
    write("summary.json", Json{{"cases", item_}}.dump());
  }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::uint64_t item_ = 0;
};

/// 60 passes of k/good, 30 passes and 12 failures (two findings) of the hostile kernel, with all that a page
/// can show.
inline void write_full_run(const std::string& path) {
  WrittenRun run(path);
  using oracle::VerdictKind;
  for (int i = 0; i < 60; ++i) {
    Evaluation e = evaluation(VerdictKind::pass, 0.01 * (i + 1));
    e.observed.ledger = {{"v_add_f32", 90, "exact", 0, ""},
                         {"v_exp_f32", 10, "approximate", 1, "table <of> bits"}};
    run.judge("k/good", e);
  }
  for (int i = 0; i < 30; ++i) run.judge(hostile_kernel, evaluation(VerdictKind::pass, 0.5));
  for (int i = 0; i < 10; ++i) {
    run.judge(hostile_kernel, evaluation(VerdictKind::fail, 40, "rows identical"), {{"signature", "s/rows"}});
    if (i == 0) run.find(hostile_kernel, "s/rows");
  }
  for (int i = 0; i < 2; ++i) {
    Evaluation e = evaluation(VerdictKind::crash, 0, "memory fault");
    e.verdict.lane = "";
    run.judge(hostile_kernel, e, {{"signature", "s/crash"}});
    if (i == 0) run.find(hostile_kernel, "s/crash");
  }
  run.add({{"event", "confirmed"}, {"signature", "s/rows"}, {"same", 3}, {"runs", 3}});
  run.add({{"event", "shrunk"},
           {"signature", "s/rows"},
           {"id", "x"},
           {"evaluations", 5},
           {"steps", 0},
           {"minimal", true}});
  Json used = Json::array();
  for (int r = 0; r < 3; ++r)
    used.push_back({0.2, r == 1 ? Json(40.0) : Json(nullptr), r == 2 ? Json("nan") : Json("inf")});
  Json rows = Json::array();
  for (int r = 0; r < 3; ++r) rows.push_back({{"request", 0}, {"position", r}});
  const Json map = {{"rows", rows}, {"columns", {"0", "1", "lse"}}, {"axis", "head"}, {"used", used}};
  run.write("failures/aa.json", Json{{"schema", 1},
                                     {"signature", "s/rows"},
                                     {"kernel", hostile_kernel},
                                     {"mismatch", {{"minimised", map}}}}
                                    .dump());
  run.end();
}

}  // namespace attest::fuzz::report::testing
