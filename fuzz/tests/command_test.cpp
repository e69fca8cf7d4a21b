// SPDX-License-Identifier: MIT
//
// The program as its users meet it: exit codes, one-line errors, and the planted q_len defect from end to end
// on the simulator.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cases/case.h"
#include "fuzz/record.h"
#include "fuzz/tests/fixtures.h"

namespace {

using attest::fuzz::Json;
using attest::fuzz::testing::Ran;
using attest::fuzz::testing::read_file;
using attest::fuzz::testing::run_attest;
using attest::fuzz::testing::TemporaryFolder;
using attest::fuzz::testing::write_file;

/// Exit 2 and one line that mentions `words`.
void refused(const Ran& ran, const std::string& words, int code = 2) {
  INFO(ran.err);
  CHECK(ran.code == code);
  CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
  CHECK(ran.err.find(words) != std::string::npos);
}

std::string case_with(const std::string& what, const std::string& by) {
  std::string text = attest::cases::pretty_json([] {
    attest::cases::Case c;
    attest::cases::MlaDecode problem;
    problem.requests = {{1, 8}};
    c.problem = problem;
    return c;
  }());
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("impossible options are refused by name") {
  refused(run_attest("fuzz --kernel attest/mla_decode --no-such-option"), "--no-such-option");
  refused(run_attest("fuzz --kernel attest/mla_decode --cases 0"), "--cases");
  refused(run_attest("fuzz --kernel attest/mla_decode --jobs -1"), "--jobs");
  refused(run_attest("fuzz"), "--kernel NAME");
  refused(run_attest("fuzz --kernel attest/mla_decoed"), "the closest are attest/mla_decode");
  refused(run_attest("fuzz --op no_such_op"), "there are kernels for block_table_expand, ");
  refused(run_attest("fuzz --kernel attest/mla_decode --arch gfx1100"), "is for gfx942");
  refused(run_attest("fuzz --kernel attest/mla_decode --device cuda"), "there are sim and hip");
  refused(run_attest("no_such_verb"), "no_such_verb");
}

TEST_CASE("detectors are chosen by name; the ledger says what was executed") {
  refused(run_attest("replay 1:1 --kernel attest/mla_decode --detect racy"),
          "no detector is called 'racy'; there are all, none, uninitialised");
  refused(run_attest("fuzz --kernel attest/mla_decode --detect lds-race,racy --cases 1"), "lds-race");
  refused(run_attest("replay 1:1 --kernel attest/mla_decode --detect all --device hip"), "use --device sim");

  const Ran people = run_attest("replay 1:1 --kernel attest/mla_decode --detect uninitialised --fidelity");
  INFO(people.out << people.err);
  CHECK(people.code == 0);
  CHECK(people.out.find("wave instructions are exact") != std::string::npos);
  CHECK(people.out.find("approximate within 1 ulp") != std::string::npos);
  CHECK(people.out.find("--detect uninitialised,fidelity") != std::string::npos);

  const Ran json = run_attest("replay 1:1 --kernel attest/mla_decode --fidelity --json");
  const Json evaluation = Json::parse(json.out)["results"][0]["evaluation"];
  std::uint64_t executed = 0;
  for (const Json& row : evaluation["observed"]["fidelity"]) executed += row["count"].get<std::uint64_t>();
  CHECK(executed >= evaluation["wave_instructions"].get<std::uint64_t>());
}

TEST_CASE("help and version are on stdout and succeed") {
  CHECK(run_attest("--help").code == 0);
  CHECK(run_attest("fuzz --help").out.find("--shrink-budget") != std::string::npos);
  const Ran version = run_attest("--version");
  CHECK(version.code == 0);
  CHECK(Json::parse(version.out).contains("compiler"));
}

TEST_CASE("every verb's help has examples and exit codes, and completion knows every option") {
  const TemporaryFolder folder;
  const std::string script = run_attest("completion bash").out;
  write_file(folder.path + "/completion", script);
  CHECK(std::system(("bash -n " + folder.path + "/completion").c_str()) == 0);
  for (const char* verb : {"fuzz", "gate", "merge", "replay", "report", "shrink", "explain", "trace"}) {
    const std::string help = run_attest(std::string(verb) + " --help").out;
    CHECK(help.find("Exit codes:") != std::string::npos);
    CHECK(help.find("  attest " + std::string(verb)) != std::string::npos);
    for (auto at = help.find("\n  --"); at != std::string::npos; at = help.find("\n  --", at + 1)) {
      const std::string option = help.substr(at + 3, help.find_first_of(" ,", at + 3) - at - 3);
      INFO(option);
      CHECK(script.find(option) != std::string::npos);
    }
  }
  write_file(folder.path + "/ask",
             "source " + folder.path +
                 "/completion; COMP_WORDS=(attest fuzz --worker-m); COMP_CWORD=2; _attest "
                 "attest; echo \"${COMPREPLY[*]}\" >" +
                 folder.path + "/answer");
  CHECK(std::system(("bash " + folder.path + "/ask").c_str()) == 0);
  CHECK(read_file(folder.path + "/answer") == "--worker-memory\n");
}

TEST_CASE("an output folder that cannot be made is refused before anything runs") {
  refused(run_attest("fuzz --kernel attest/mla_decode --cases 1 --out /proc/attest"), "/proc/attest");
}

TEST_CASE("bad case files are refused in one line that names file and field") {
  const TemporaryFolder folder;
  const std::string file = folder.path + "/case.json";
  write_file(file, "{\"schema\": 1,");
  refused(run_attest("replay " + file), file);
  write_file(file, case_with("\"heads\": 16", "\"heads\": 129"));
  refused(run_attest("replay " + file), "shape.heads");
  write_file(file, case_with("\"heads\"", "\"haeds\""));
  refused(run_attest("replay " + file), "haeds");
  write_file(file, case_with("\"schema\": 1", "\"schema\": 9"));
  refused(run_attest("replay " + file), "schema");
  refused(run_attest("replay " + folder.path + "/absent.json"), "absent.json");
  refused(run_attest("replay 7:x"), "SEED:NUMBER");
  refused(run_attest("shrink " + folder.path + "/absent.json"), "absent.json");
}

TEST_CASE("code objects that are none are refused in one line") {
  const TemporaryFolder folder;
  const auto kernels = std::filesystem::path(ATTEST_PROGRAM).parent_path().parent_path() / "kernels";
  REQUIRE(std::filesystem::exists(kernels));
  std::filesystem::copy(kernels, folder.path, std::filesystem::copy_options::recursive);
  const std::string environment = "ATTEST_KERNELS=" + folder.path;
  const std::string command =
      "fuzz --kernel attest/mla_decode --cases 1 --quiet --out " + folder.path + "/run";

  SECTION("truncated") {
    for (const auto& entry : std::filesystem::directory_iterator(folder.path))
      if (entry.path().extension() == ".co") std::filesystem::resize_file(entry.path(), 200);
  }
  SECTION("foreign: this very program, an x86-64 ELF") {
    for (const auto& entry : std::filesystem::directory_iterator(folder.path))
      if (entry.path().extension() == ".co")
        std::filesystem::copy_file(ATTEST_PROGRAM, entry.path(),
                                   std::filesystem::copy_options::overwrite_existing);
  }
  const Ran ran = run_attest(command, environment);
  INFO(ran.err);
  CHECK(ran.code == 2);
  CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
  CHECK(ran.err.find(".co") != std::string::npos);
}

TEST_CASE("without a GPU --device hip says so in one line and exits with 3") {
  if (std::filesystem::exists("/dev/kfd")) return;
  refused(run_attest("fuzz --device hip --kernel attest/mla_decode --cases 1"), "hip", 3);
  const Ran devices = run_attest("devices --json");
  CHECK(devices.code == 0);
  const Json list = Json::parse(devices.out);
  REQUIRE(list.size() == 2);
  CHECK(list[0].at("available") == true);
  CHECK(list[0].at("arch") == "gfx942");
  CHECK(list[1].at("available") == false);
}

TEST_CASE("kernels are listed with what they are and imitate") {
  const Json list = Json::parse(run_attest("kernels --json").out);
  std::size_t faults = 0;
  for (const Json& k : list) {
    for (const char* key : {"name", "op", "arch", "contract", "supports"}) CHECK(k.at(key).is_string());
    if (!k.at("fault").is_null()) {
      ++faults;
      CHECK(k.at("imitates").get<std::string>().starts_with("https://"));
      CHECK(k.at("name").get<std::string>().ends_with("+" + k.at("fault").get<std::string>()));
    }
  }
  CHECK(faults >= 10);
}

TEST_CASE("a schedule is recorded with what it found, and replayed") {
  const TemporaryFolder folder;
  const std::string run = folder.path + "/run";
  const Ran fuzz = run_attest(
      "fuzz --kernel attest/mla_decode+qlen_mask --cases 50 --seed 3 --stop-on-finding --shrink-budget 5 "
      "--schedule "
      "seed=2,quantum=7 --json --out " +
      run);
  INFO(fuzz.err);
  REQUIRE(fuzz.code == 1);
  const Json summary = Json::parse(fuzz.out);
  const std::string file = run + "/" + summary.at("findings")[0].at("case").get<std::string>();
  CHECK(attest::fuzz::read_reproduction(file).schedule == "quantum=7,seed=2");
  const Ran replay = run_attest("replay " + file + " --json");
  CHECK(replay.code == 1);
  CHECK(Json::parse(replay.out).at("results")[0].at("reproduced") == true);
  const Ran wrong = run_attest("replay " + file + " --schedule quantum");
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("'quantum' is no schedule; one is quantum=N") != std::string::npos);
  CHECK(run_attest("replay " + file + " --schedule quantum=3 --device hip").code == 2);
}

TEST_CASE("the q_len fault is found, shrunk to one request of q_len 3, and replayed bit for bit") {
  const TemporaryFolder folder;
  const std::string run = folder.path + "/run";
  const Ran fuzz = run_attest(
      "fuzz --kernel attest/mla_decode+qlen_mask --cases 500 --seed 3 --stop-on-finding --json --out " + run);
  INFO(fuzz.err);
  REQUIRE(fuzz.code == 1);
  const Json summary = Json::parse(fuzz.out);
  REQUIRE(summary.at("findings").size() == 1);
  const Json& finding = summary.at("findings")[0];
  CHECK(finding.at("kernel") == "attest/mla_decode+qlen_mask");
  CHECK(finding.at("reproduce").get<std::string>().starts_with("attest replay "));

  const std::string file = run + "/" + finding.at("case").get<std::string>();
  const auto reproduction = attest::fuzz::read_reproduction(file);
  const auto& small = std::get<attest::cases::MlaDecode>(reproduction.c.problem);
  REQUIRE(small.requests.size() == 1);
  CHECK(small.requests[0].q_len == 3);
  CHECK(small.heads == 1);
  CHECK(small.page_size == 1);
  CHECK(small.requests[0].kv_len <= 4);

  const Ran replay = run_attest("replay --json " + file);
  CHECK(replay.code == 1);
  CHECK(Json::parse(replay.out).at("results")[0].at("reproduced") == true);
  CHECK(run_attest("replay " + file + " --kernel attest/mla_decode").code == 0);
  CHECK(Json::parse(read_file(run + "/summary.json")).at("findings") == summary.at("findings"));
  const std::string text = read_file(run + "/events.jsonl");
  const Json first = Json::parse(text.substr(0, text.find('\n')));
  CHECK(first.at("device").at("arch") == "gfx942");
  CHECK(first.at("device").at("runtime").get<std::string>().starts_with("simulator, HIP "));
  CHECK(first.at("attest").at("kernels").get<std::string>().find("HIP headers ") != std::string::npos);

  // Any case of the run again, by its item.
  const Json item = Json::parse(run_attest("replay --json " + run + ":1").out);
  CHECK(text.find("\"item\":1,\"source\":\"fresh\",\"number\":1,\"kernel\":\"attest/"
                  "mla_decode+qlen_mask\",\"id\":\"" +
                  item.at("results").at(0).at("id").get<std::string>() + "\"") != std::string::npos);
  const Ran none = run_attest("replay " + run + ":100000");
  CHECK(none.code == 2);
  CHECK(none.err.find("has no item 100000") != std::string::npos);
}

TEST_CASE("the same seed gives the same findings with one worker and with two") {
  const TemporaryFolder folder;
  const std::string command =
      "fuzz --kernel attest/mla_decode+causal_off_by_one --cases 40 --seed 5 --quiet --json ";
  Json one = Json::parse(run_attest(command + "--jobs 1 --out " + folder.path + "/1").out);
  Json two = Json::parse(run_attest(command + "--jobs 2 --out " + folder.path + "/2").out);
  REQUIRE_FALSE(one.at("findings").empty());
  CHECK(one.at("verdicts") == two.at("verdicts"));
  for (Json* summary : {&one, &two})
    for (Json& finding : summary->at("findings")) finding.erase("reproduce");  // holds the folder's name
  CHECK(one.at("findings") == two.at("findings"));
}

namespace {

/// A summary without what may differ between two runs of the same cases.
Json essence(Json summary) {
  summary.erase("seconds");
  summary.erase("workers_lost");
  for (Json& finding : summary.at("findings")) finding.erase("reproduce");
  return summary;
}

/// attest in the background.
class Background {
 public:
  explicit Background(std::vector<std::string> words) {
    words.insert(words.begin(), ATTEST_PROGRAM);
    pid_ = ::fork();
    if (pid_ != 0) return;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    (void)std::freopen("/dev/null", "w", stdout);
    (void)std::freopen("/dev/null", "w", stderr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~Background() { end(SIGKILL); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Its wait status after `signal`.
  int end(int signal) {
    if (pid_ <= 0) return 0;
    ::kill(pid_, signal);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
};

std::size_t verdicts_in(const std::string& run) {
  const std::string text = read_file(run + "/events.jsonl");
  std::size_t count = 0;
  for (auto at = text.find("\"event\":\"verdict\""); at != std::string::npos;
       at = text.find("\"event\":\"verdict\"", at + 1))
    ++count;
  return count;
}

void wait_for_verdicts(const std::string& run, std::size_t count) {
  for (int i = 0; i < 6000 && verdicts_in(run) < count; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  REQUIRE(verdicts_in(run) >= count);
}

bool mentions_a_device_library(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* library : {"hip", "hsa", "llvm", "amd_comgr"})
    if (text.find(std::string("lib") + library) != std::string::npos ||
        text.find(std::string(library) + "-simulator") != std::string::npos)
      return true;
  return false;
}

const std::vector<std::string> campaign_words = {"fuzz",    "--kernel", "attest/mla_decode+causal_off_by_one",
                                                 "--cases", "60",       "--seed",
                                                 "5",       "--quiet",  "--jobs",
                                                 "2",       "--out"};
const std::string campaign_line =
    "fuzz --kernel attest/mla_decode+causal_off_by_one --cases 60 --seed 5 --quiet --jobs 2 --json --out ";

std::vector<std::string> campaign_into(const std::string& run) {
  std::vector<std::string> words = campaign_words;
  words.push_back(run);
  return words;
}

}  // namespace

TEST_CASE("killed with kill -9, twice, and resumed, a run finds what an undisturbed one finds") {
  const TemporaryFolder folder;
  const std::string run = folder.path + "/run";
  const Json undisturbed = Json::parse(run_attest(campaign_line + folder.path + "/whole").out);
  REQUIRE_FALSE(undisturbed.at("findings").empty());
  {
    Background first(campaign_into(run));
    wait_for_verdicts(run, 7);
  }
  {
    Background second({"fuzz", "--resume", run, "--quiet"});
    wait_for_verdicts(run, 20);
  }
  const std::size_t done = verdicts_in(run);
  CHECK(done < 60);
  const Ran resumed = run_attest("fuzz --json --quiet --resume " + run);
  INFO(resumed.err);
  CHECK(resumed.code == 1);
  CHECK(verdicts_in(run) == 60);
  CHECK(essence(Json::parse(resumed.out)) == essence(undisturbed));
  for (const auto& entry : std::filesystem::directory_iterator(run + "/failures"))
    CHECK(std::filesystem::exists(folder.path + "/whole/failures/" + entry.path().filename().string()));
  refused(run_attest("fuzz --resume " + folder.path + "/absent"), "name the folder of a run");
  refused(run_attest("fuzz --cases 3 --resume " + run), "excludes --resume");
}

TEST_CASE("the supervisor links and loads neither HIP nor LLVM, its workers do") {
  const TemporaryFolder folder;
  const std::string run = folder.path + "/run";
  CHECK_FALSE(mentions_a_device_library([&] {
    CHECK(std::system(("ldd '" ATTEST_PROGRAM "' >" + folder.path + "/ldd").c_str()) == 0);
    return read_file(folder.path + "/ldd");
  }()));
  Background attest(campaign_into(run));
  wait_for_verdicts(run, 3);
  CHECK_FALSE(mentions_a_device_library(read_file("/proc/" + std::to_string(attest.pid()) + "/maps")));
  std::istringstream children(read_file("/proc/" + std::to_string(attest.pid()) + "/task/" +
                                        std::to_string(attest.pid()) + "/children"));
  std::size_t workers = 0;
  for (std::string child; children >> child; ++workers)
    CHECK(mentions_a_device_library(read_file("/proc/" + child + "/maps")));
  CHECK(workers == 2);
}

TEST_CASE("workers killed with kill -9 cost nothing but themselves") {
  const TemporaryFolder folder;
  const std::string run = folder.path + "/run";
  const Json undisturbed = Json::parse(run_attest(campaign_line + folder.path + "/whole").out);
  Background attest(campaign_into(run));
  for (std::size_t verdicts = 5; verdicts <= 35; verdicts += 15) {
    wait_for_verdicts(run, verdicts);
    std::istringstream children(read_file("/proc/" + std::to_string(attest.pid()) + "/task/" +
                                          std::to_string(attest.pid()) + "/children"));
    pid_t child = 0;
    children >> child;
    if (child > 0) ::kill(child, SIGKILL);
  }
  for (int i = 0; i < 6000 && !std::filesystem::exists(run + "/summary.json"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const Json disturbed = Json::parse(read_file(run + "/summary.json"));
  CHECK(disturbed.at("workers_lost") >= 2);
  CHECK(essence(disturbed) == essence(undisturbed));
}

TEST_CASE("SIGTERM ends a run cleanly between cases, to be resumed") {
  const TemporaryFolder folder;
  const std::string run = folder.path + "/run";
  Background attest(campaign_into(run));
  wait_for_verdicts(run, 4);
  const int status = attest.end(SIGTERM);
  REQUIRE(WIFEXITED(status));
  CHECK((WEXITSTATUS(status) == 4 || WEXITSTATUS(status) == 1));
  CHECK(Json::parse(read_file(run + "/summary.json")).at("complete") == false);
  const Json resumed = Json::parse(run_attest("fuzz --json --quiet --resume " + run).out);
  CHECK(resumed.at("complete") == true);
  CHECK(resumed.at("cases") == 60);
}

TEST_CASE("a full disk is one clear line; what was written is whole and the run can go on") {
  const TemporaryFolder folder;
  const std::string run = folder.path + "/run";
  // A file size limit fails write(2) in the middle of a line, as a full disk does.
  const Ran full = run_attest(campaign_line + run, "ulimit -f 140;");
  refused(full, "events.jsonl: cannot be written: File too large; what was written before is valid", 4);
  std::ifstream events(run + "/events.jsonl");
  std::size_t lines = 0;
  for (std::string line; std::getline(events, line); ++lines) CHECK(Json::parse(line).contains("event"));
  CHECK(lines > 5);
  const Json resumed = Json::parse(run_attest("fuzz --json --quiet --resume " + run).out);
  CHECK(essence(resumed) == essence(Json::parse(run_attest(campaign_line + folder.path + "/whole").out)));
}

TEST_CASE("shards run by a launcher's variables and joined are the whole run") {
  const TemporaryFolder folder;
  const Json whole = Json::parse(run_attest(campaign_line + folder.path + "/whole").out);
  std::string parts;
  for (const char* i : {"1", "0"}) {
    const std::string part = folder.path + "/part" + i;
    run_attest(campaign_line + part,
               std::string("BUILDKITE_PARALLEL_JOB=") + i + " BUILDKITE_PARALLEL_JOB_COUNT=2");
    refused(run_attest("merge " + part), "these are missing");
    parts += " " + part;
  }
  const Ran merged = run_attest("merge --json -o " + folder.path + "/merged" + parts);
  CHECK(merged.code == 1);
  CHECK(essence(Json::parse(merged.out)) == essence(whole));
  refused(run_attest(campaign_line + folder.path + "/x --shard 2/2"), "--shard 2/2");
  refused(run_attest(campaign_line + folder.path + "/x", "BUILDKITE_PARALLEL_JOB=1"),
          "BUILDKITE_PARALLEL_JOB_COUNT");
}

TEST_CASE("the correct kernel passes, and a run that tests nothing is not a success") {
  const TemporaryFolder folder;
  const Ran good =
      run_attest("fuzz --kernel attest/mla_decode --cases 50 --seed 9 --json --out " + folder.path + "/good");
  INFO(good.out);
  CHECK(good.code == 0);
  CHECK(Json::parse(good.out).at("verdicts").at("pass") == 50);
  const std::string empty = folder.path + "/empty.json";
  write_file(empty, case_with("\"kv_len\": 8", "\"kv_len\": 0"));
  CHECK(run_attest("replay " + empty).code == 3);
}

TEST_CASE("without AITER's objects its cells are not run: one line, exit 3, never a pass") {
  const std::string nothing = "env -u ATTEST_AITER_HSA";
  refused(run_attest("fuzz --kernel aiter --cases 1", nothing), "aiter was not run", 3);
  refused(run_attest("fuzz --kernel aiter@sound --cases 1", nothing), "aiter@sound was not run", 3);
  refused(run_attest("fuzz --kernel aiter/mla_decode_fwd@bf16 --cases 1", nothing), "--aiter-hsa DIR", 3);
  refused(run_attest("fuzz --kernel attest/mla_decode --kernel aiter --cases 1", nothing), "was not run", 3);
  refused(run_attest("fuzz --kernel aiter --cases 1 --aiter-hsa /absent", nothing), "/absent", 2);
}

TEST_CASE("the word aiter stands for all kernels of the folder, and the summary says what became of cells") {
  const TemporaryFolder folder;
  const auto hsa =
      std::filesystem::path(ATTEST_PROGRAM).parent_path().parent_path() / "kernels" / "aiter_block";
  const std::string with = " --aiter-hsa " + hsa.string();
  const Json list = Json::parse(run_attest("kernels --json" + with).out);
  std::size_t ours = 0;
  for (const Json& k : list) ours += k.at("contract") == "aiter" ? 1 : 0;
  CHECK(ours > 40);

  const Ran ran = run_attest("fuzz --kernel aiter --cases 4 --json --quiet --shrink-budget 1 --out " +
                             folder.path + "/run" + with);
  INFO(ran.err);
  const Json summary = Json::parse(ran.out);
  std::uint64_t cases = 0, refused_cells = 0;
  bool named_check = false;
  for (const auto& [name, kernel] : summary.at("by_kernel").items()) {
    const Json& cells = kernel.at("cells");
    cases += kernel.at("cases").get<std::uint64_t>();
    refused_cells += cells.at("refused").get<std::uint64_t>();
    CHECK(cells.at("run").get<int>() + cells.at("refused").get<int>() > 0);
    CHECK(cells.at("failing") <= cells.at("run"));
    CHECK(name.find('+') == std::string::npos);
    for (const auto& [why, count] : cells.at("refusals").items())
      named_check = named_check || why.find("AITER refuses: asm_mla.cu: cannot find suitable kernel") == 0;
  }
  CHECK(summary.at("by_kernel").size() == 9 + 9 + 5 + 6);  // objects; with pages; with a simple plan; calls
  CHECK(cases == summary.at("cases"));
  CHECK(refused_cells > 0);
  CHECK(named_check);
}
