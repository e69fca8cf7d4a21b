// SPDX-License-Identifier: MIT
//
// Kernels in other programs, with the committed NumPy worker: the whole way from export to check, a planted
// defect found, shrunk and replayed, and what becomes of workers that misbehave. Needs a python3 with NumPy;
// without one a test ends the program with 77, which CTest reports as skipped.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "cases/case.h"
#include "fuzz/record.h"
#include "fuzz/tests/fixtures.h"

using namespace attest;
using attest::fuzz::Json;
using attest::fuzz::testing::Ran;
using attest::fuzz::testing::read_file;
using attest::fuzz::testing::run;
using attest::fuzz::testing::run_attest;
using attest::fuzz::testing::TemporaryFolder;
using attest::fuzz::testing::write_file;

namespace {

/// Ends the program with 77 where there is none with NumPy.
const std::string& python() {
  static const std::string found = [] {
    for (const char* candidate : {"python3", "/usr/bin/python3"})
      if (run(std::string(candidate) + " -c 'import numpy'").code == 0) return std::string(candidate);
    std::puts("skipped: there is no python3 with NumPy (Debian: python3-numpy)");
    std::exit(77);
  }();
  return found;
}

std::string worker(const std::string& fault = "") {
  return python() + " " ATTEST_WORKERS "/numpy_mla_decode.py" + (fault.empty() ? "" : " --fault " + fault);
}

/// A short campaign on the worker with that fault; its summary.
Ran campaign(const std::string& fault, const std::string& folder, const std::string& more) {
  return run_attest("fuzz --worker '" + worker(fault) + "' --quiet --json --seed 3 --out " + folder + " " +
                    more);
}

std::string only_failure(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/failures"))
    files.push_back(entry.path().string());
  REQUIRE(files.size() == 1);
  return files.front();
}

}  // namespace

TEST_CASE("a worker's results pass, in a campaign and through files") {
  const TemporaryFolder folder;
  const Ran ran = campaign("", folder.file("run"), "--cases 25 --jobs 2");
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  const Json summary = Json::parse(ran.out);
  CHECK(summary["verdicts"]["pass"].get<int>() >= 20);
  CHECK(summary["findings"].empty());
  CHECK(summary["kernels"] == Json{"worker:numpy/mla_decode"});

  // The same without the protocol: export, the worker's own functions, check.
  const std::string x = folder.file("x.safetensors"), y = folder.file("y.safetensors");
  for (const char* word : {"3:0", "3:1", "3:5"}) {
    REQUIRE(run_attest(std::string("export ") + word + " --kernel attest/mla_decode -o " + x).code == 0);
    const Ran computed = run(
        "cd " ATTEST_WORKERS " && " + python() + " -c 'import attest_worker as aw, numpy_mla_decode as n; " +
        "call = aw.Call(\"" + x + "\"); aw.write_outputs(call, n.run(call, \"\"), \"" + y + "\")'");
    INFO(computed.err);
    REQUIRE(computed.code == 0);
    const Ran checked = run_attest("check " + x + " " + y + " --precision fp32p");
    INFO(checked.out << checked.err);
    CHECK(checked.code == 0);
  }
}

TEST_CASE("a worker that drops the last key is found, shrunk and replayed") {
  const TemporaryFolder folder;
  const Ran ran =
      campaign("drop_last_key", folder.file("run"), "--cases 6 --shrink-budget 80 --stop-on-finding");
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 1);
  const Json summary = Json::parse(ran.out);
  const Json& finding = summary["findings"][0];
  CHECK(finding["signature"].get<std::string>().starts_with(
      "mla_decode/worker:numpy+drop_last_key/mla_decode/fail/result/"));
  CHECK(finding["shrunk"] == true);
  const std::string reproduce = finding["reproduce"].get<std::string>();
  CHECK(reproduce.find(" --worker '" + worker("drop_last_key") + "'") != std::string::npos);

  const std::string file = only_failure(folder.file("run"));
  const Json failure = Json::parse(read_file(file));
  CHECK(failure["worker"] == worker("drop_last_key"));
  const cases::Case small = cases::parse_case(failure["minimised"].dump());
  const auto& p = std::get<cases::MlaDecode>(small.problem);
  CHECK(p.requests.size() == 1);
  CHECK(p.heads <= 2);

  // The recorded line, with the program's path in front.
  REQUIRE(reproduce.starts_with("attest "));
  const Ran again = run_attest(reproduce.substr(7));
  INFO(again.out << again.err);
  CHECK(again.code == 1);
  CHECK(again.out.find("reproduced bit for bit") != std::string::npos);
  // Without the defect it passes, and without a worker it is said what is missing.
  CHECK(run_attest("replay " + file + " --worker '" + worker() + "'").code == 0);
  const Ran lone = run_attest("replay " + file);
  CHECK(lone.code == 2);
  CHECK(lone.err.find("--worker 'CMD'") != std::string::npos);
  // Smaller from the original, by the verb; and a run goes on with the worker that it recorded.
  const Ran shrunk =
      run_attest("shrink " + file + " --quiet --budget 40 --worker '" + worker("drop_last_key") + "'");
  INFO(shrunk.err);
  CHECK(shrunk.code == 0);
  CHECK(cases::parse_case(shrunk.out) != cases::parse_case(failure["original"].dump()));
  write_file(folder.file("small.json"), shrunk.out);
  CHECK(run_attest("replay " + folder.file("small.json") + " --worker '" + worker("drop_last_key") + "'")
            .code == 1);
  CHECK(run_attest("fuzz --quiet --resume " + folder.file("run")).code == 1);
}

TEST_CASE("misbehaving workers: one verdict each, the right one, and the campaign goes on") {
  struct Misbehaviour {
    const char* fault;
    int code;
    const char *kind, *signature;
  };
  const Misbehaviour all[] = {
      {"crash", 1, "crash", "/crash/worker/worker killed by SIGSEGV"},
      {"killed", 1, "crash", "/crash/worker/worker killed by SIGKILL"},
      {"bloat", 1, "crash", "/crash/worker/memory blow-up"},
      {"missing_lse", 1, "fail", "/fail/output/outputs are not those that the case asks for"},
      {"exit", 1, "crash", "/crash/worker/worker exited with 3"},
      {"hang", 1, "timeout", "/timeout/worker/deadline"},
      {"exception", 1, "crash", "/crash/worker/RuntimeError in run"},
      {"nan", 1, "fail", "/fail/result/"},
      {"wrong_shape", 1, "fail", "/fail/output/outputs are not those that the case asks for"},
      {"nonsense", 4, "harness_error", "/harness_error/worker/the worker does not keep to the protocol"},
  };
  // All at the same time: most of theirs is waiting.
  python();
  std::vector<std::future<Ran>> campaigns;
  for (const Misbehaviour& m : all)
    campaigns.push_back(std::async(std::launch::async, [&m] {
      const TemporaryFolder folder;
      // Short where it is what ends the case, else long enough for any machine.
      const std::string deadline = std::string(m.fault) == "hang" ? "3" : "120";
      return campaign(m.fault, folder.file("run"),
                      "--cases 2 --shrink-budget 1 --worker-memory 400 --deadline " + deadline);
    }));
  for (std::size_t i = 0; i < campaigns.size(); ++i) {
    const Misbehaviour& m = all[i];
    const Ran ran = campaigns[i].get();
    INFO(m.fault << ran.out << ran.err);
    CHECK(ran.code == m.code);
    const Json summary = Json::parse(ran.out);
    CHECK(summary["verdicts"].value(m.kind, 0) == 2);
    REQUIRE(!summary["findings"].empty());
    CHECK(summary["findings"][0]["signature"].get<std::string>().find(m.signature) != std::string::npos);
  }
}

TEST_CASE("what a worker does not do is unsupported, in its own words") {
  const TemporaryFolder folder;
  const std::string script = folder.file("worker.py");
  write_file(script,
             "import sys\n"
             "sys.path.insert(0, '" ATTEST_WORKERS
             "')\n"
             "import attest_worker as aw\n"
             "def no(call):\n"
             "    print('noise on stdout')\n"
             "    raise aw.Unsupported('only on Sundays')\n"
             "aw.serve('sunday', {'mla_decode': aw.op(no), 'topk': aw.op(no)})\n");
  const Ran ran = run_attest("fuzz --quiet --json --cases 2 --worker '" + python() + " " + script +
                             "' --out " + folder.file("run"));
  INFO(ran.out << ran.err);
  CHECK(ran.code == 3);
  const Json summary = Json::parse(ran.out);
  CHECK(summary["verdicts"]["unsupported"] == 4);
  CHECK(summary["kernels"] == Json{"worker:sunday/mla_decode", "worker:sunday/topk"});
  const Ran replayed =
      run_attest("replay 1:1 --kernel worker:sunday/topk --worker '" + python() + " " + script + "'");
  CHECK(replayed.code == 3);
  CHECK(replayed.out.find("only on Sundays") != std::string::npos);
}

TEST_CASE("a dumped call is judged and run again and made small") {
  const TemporaryFolder folder;
  const std::string x = folder.file("x.safetensors"), dump = folder.file("dump.safetensors");
  // A call on 40 pages of a pool; what it returned comes from the NumPy worker with and without a defect.
  write_file(folder.file("case.json"),
             R"({"schema": 1, "op": "mla_decode", "seed": "0x7", "shape": {"heads": 4,
    "page_size": 4, "requests": [{"q_len": 1, "kv_len": 9}, {"q_len": 2, "kv_len": 23}, {"q_len": 1, "kv_len": 0},
    {"q_len": 2, "kv_len": 50}]}, "memory": {"placement": "high"}})");
  write_file(folder.file("dump.py"),
             "import sys\n"
             "sys.path.insert(0, '" ATTEST_WORKERS
             "')\n"
             "import attest_dump, attest_worker as aw, numpy as np, numpy_mla_decode as n\n"
             "x, dump, fault, large = sys.argv[1:5]\n"
             "call = aw.Call(x)\n"
             "q = np.array(call.raw('q'))\n"
             "if large == 'large': q[0, :, :4] = aw.encode(np.float32([65, 1, -1, 0.5]), 'BF16')\n"
             "stored = call.raw\n"
             "call.raw = lambda name: q if name == 'q' else stored(name)\n"
             "out, lse = n.attend(call, fault)\n"
             "more = {} if large == 'vllm' else {k: stored(k) for k in ('kv_indptr', "
             "'kv_indices', 'kv_last_page_lens')}\n"
             "if large == 'vllm': more = {k: stored(k) for k in ('block_table', 'seq_lens')}\n"
             "attest_dump.mla_decode(dump, q=('BF16', q), kv_buffer=('BF16', "
             "stored('kv_buffer')), sm_scale=call.scalar('sm_scale'), "
             "qo_indptr=stored('qo_indptr'), out=('BF16', aw.encode(out, 'BF16')), "
             "lse=lse, **more)\n");
  REQUIRE(run_attest("export " + folder.file("case.json") + " -o " + x).code == 0);
  const auto dumped = [&](const std::string& fault, const std::string& what) {
    const Ran ran =
        run(python() + " " + folder.file("dump.py") + " " + x + " " + dump + " '" + fault + "' " + what);
    INFO(ran.err);
    REQUIRE(ran.code == 0);
    REQUIRE(std::filesystem::file_size(dump) < 200'000);  // not the whole pool
  };
  const auto captured = [&](const std::string& more) {
    return run_attest("capture " + dump + " --quiet " + more);
  };

  for (const char* lists : {"aiter", "vllm"}) {
    dumped("", lists);
    const Ran right = captured("--json");
    INFO(right.out << right.err);
    CHECK(right.code == 0);
    const Json said = Json::parse(right.out);
    CHECK(said["returned"]["kind"] == "pass");
    CHECK(said["returned"]["elements_checked"] == 6 * 4 * 513);
    const cases::Case like = cases::parse_case(said["case"].dump());
    const auto& p = std::get<cases::MlaDecode>(like.problem);
    CHECK(p.requests == std::vector<cases::Request>{{1, 9}, {2, 23}, {1, 0}, {2, 50}});
    CHECK(p.page_size == 4);
    CHECK(like.memory.placement == cases::Placement::high);
  }

  // A wrong result is seen on the call's data; the kernel at hand gives the right one.
  dumped("drop_last_key", "aiter");
  const Ran wrong = captured("--json --kernel attest/mla_decode");
  INFO(wrong.out << wrong.err);
  CHECK(wrong.code == 1);
  const Json said = Json::parse(wrong.out);
  CHECK(said["returned"]["kind"] == "fail");
  CHECK(said["again"]["kind"] == "pass");
  CHECK(said["made"]["kind"] == "pass");

  // The kernel fails as the call did: a small case of it, which replays.
  const Ran found = captured("--out " + folder.file("small.json") + " --budget 60 --worker '" +
                             worker("drop_last_key") + "'");
  INFO(found.out << found.err);
  CHECK(found.code == 1);
  const cases::Case small = cases::parse_case(read_file(folder.file("small.json")));
  CHECK(std::get<cases::MlaDecode>(small.problem).requests.size() == 1);
  CHECK(run_attest("replay " + folder.file("small.json") + " --worker '" + worker("drop_last_key") + "'")
            .code == 1);

  // It fails on the call's data alone: the call itself is made small, and still fails.
  dumped("large_q", "large");
  const Ran data =
      captured("--json --worker '" + worker("large_q") + "' --small " + folder.file("small.safetensors"));
  INFO(data.out << data.err);
  CHECK(data.code == 1);
  const Json judged = Json::parse(data.out);
  CHECK(judged["returned"]["kind"] == "fail");
  CHECK(judged["again"]["kind"] == "fail");
  CHECK(judged["made"]["kind"] == "pass");
  CHECK(judged["smallest_call"]["diagnosis"] == judged["again"]["diagnosis"]);
  CHECK(std::filesystem::file_size(folder.file("small.safetensors")) < std::filesystem::file_size(dump) / 2);
  const Ran once_more = run_attest("capture " + folder.file("small.safetensors") +
                                   " --quiet --json --worker '" + worker("large_q") + "'");
  CHECK(once_more.code == 1);
  const Json least = Json::parse(once_more.out);
  CHECK(least["again"]["diagnosis"] == judged["again"]["diagnosis"]);
  CHECK(least["case"]["shape"]["requests"].size() == 1);
  CHECK(least["case"]["shape"]["heads"] == 1);
}
