// SPDX-License-Identifier: MIT
//
// The program as its users meet it: exit codes, one-line errors, and the planted q_len defect from end to end
// on the simulator.
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "cases/case.h"
#include "fuzz/record.h"

namespace {

using attest::fuzz::Json;

struct Ran {
  int code = -1;
  std::string out, err;
};

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

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

Ran run_attest(const std::string& arguments, const std::string& environment = "") {
  const TemporaryFolder folder;
  const std::string command = environment + " '" ATTEST_PROGRAM "' " + arguments + " >" + folder.path +
                              "/out 2>" + folder.path + "/err </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder.path + "/out"),
          read_file(folder.path + "/err")};
}

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
  refused(run_attest("fuzz --op no_such_op"), "there are kernels for mla_decode");
  refused(run_attest("fuzz --kernel attest/mla_decode --arch gfx1100"), "is for gfx942");
  refused(run_attest("fuzz --kernel attest/mla_decode --device cuda"), "there are sim and hip");
  refused(run_attest("no_such_verb"), "no_such_verb");
}

TEST_CASE("help and version are on stdout and succeed") {
  CHECK(run_attest("--help").code == 0);
  CHECK(run_attest("fuzz --help").out.find("--shrink-budget") != std::string::npos);
  const Ran version = run_attest("--version");
  CHECK(version.code == 0);
  CHECK(Json::parse(version.out).contains("compiler"));
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
