// SPDX-License-Identifier: MIT
//
// The list of known causes claims the findings that it was made for, and nothing else.
#include "fuzz/causes.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "fuzz/case_files.h"
#include "fuzz/tests/fixtures.h"
#include "fuzz/usage_error.h"

namespace {

using namespace attest;
using namespace attest::fuzz;

const std::string cases_folder = ATTEST_CASES;

Causes shipped() {
  return Causes::read(cases_folder + "/causes.json");
}

/// What no known cause needs: pages of one token in order, a context longer than the query, finite unused
/// memory, scales of 1, two splits with work for both, no lse.
cases::MlaDecode harmless(const cases::MlaDecode& like) {
  cases::MlaDecode p;
  p.heads = like.heads;
  p.q_format = like.q_format;
  p.kv_format = like.kv_format;
  p.num_splits = 2;
  p.return_lse = false;
  p.requests = {{.q_len = 1, .kv_len = 400}};
  return p;
}

std::string refusal(const Json& list) {
  const testing::TemporaryFolder folder;
  const std::string file = "page-size-ignored.json";
  std::filesystem::copy_file(cases_folder + "/findings/aiter/" + file, folder.path + "/" + file);
  std::ofstream(folder.path + "/causes.json") << list.dump();
  try {
    Causes::read(folder.path + "/causes.json");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

Json list_of_one() {
  return {{"schema", 1},
          {"causes",
           {{{"id", "page"},
             {"cause", "the page size is ignored"},
             {"files", {"page-size-ignored.json"}},
             {"signs",
              {{{"kernel", {"aiter/*"}},
                {"where", {{"shape.page_size", {{"min", 2}}}}},
                {"diagnosis", {"first token of each page only"}}}}}}}}};
}

}  // namespace

TEST_CASE("Every finding of the book is of the cause that names its file") {
  const Causes causes = shipped();
  std::map<std::string, std::string> cause_of_file;
  for (const Cause& cause : causes.all())
    for (const std::string& file : cause.files) {
      INFO(file << " is of " << cause.id);
      CHECK(cause_of_file.emplace(std::filesystem::canonical(file).string(), cause.id).second);
    }
  std::size_t files = 0;
  for (const std::string& file : json_files({cases_folder + "/findings/aiter"})) {
    ++files;
    INFO(file);
    const Cause* cause = causes.of(Sighting::read(file));
    REQUIRE(cause != nullptr);
    CHECK(cause->id == cause_of_file[std::filesystem::canonical(file).string()]);
  }
  CHECK(files == cause_of_file.size());
}

TEST_CASE("A failure without the condition of any cause is new, whatever its diagnosis") {
  const Causes causes = shipped();
  std::set<std::string> diagnoses = {"unexplained", "a diagnosis that nobody has seen"};
  for (const Cause& cause : causes.all())
    for (const Sign& sign : cause.signs) diagnoses.insert(sign.diagnoses.begin(), sign.diagnoses.end());
  int asked = 0;
  for (const Cause& cause : causes.all())
    for (const std::string& file : cause.files) {
      const Sighting known = Sighting::read(file);
      if (known.kernel.find("@paged") != std::string::npos ||
          known.kernel.find("@by_hand") != std::string::npos)
        continue;  // they do nothing else
      Sighting planted = known;
      planted.c = cases::Case();
      planted.c.problem = harmless(std::get<cases::MlaDecode>(known.c.problem));
      planted.c.memory.unused = cases::Poison::zero;
      planted.c.memory.placement = cases::Placement::ordered;
      planted.schedule = "plain";
      for (const std::string& diagnosis : diagnoses) {
        if (diagnosis.find('*') != std::string::npos) continue;  // hazards need no condition, only the detail
        planted.diagnosis = diagnosis;
        const Cause* found = causes.of(planted);
        INFO(planted.kernel << " " << diagnosis << ": " << (found == nullptr ? "new" : found->id));
        CHECK(found == nullptr);
        ++asked;
      }
    }
  CHECK(asked > 300);
}

TEST_CASE("Requests give the features that signs speak of") {
  cases::Case c;
  cases::MlaDecode p;
  p.requests = {{.q_len = 3, .kv_len = 2}, {.q_len = 0, .kv_len = 5}, {.q_len = 2, .kv_len = 0}};
  c.problem = p;
  const auto features = features_of(c);
  CHECK(features.at("requests.query_longer_than_context") == 1);
  CHECK(features.at("requests.without_query") == 1);
  CHECK(features.at("requests.without_context") == 1);
  CHECK(features.at("requests.behind_an_empty_one") == 0);
  CHECK(features.at("requests.tokens_per_split") == 2);
  CHECK(features.at("requests.ragged") == true);
  CHECK(features.at("shape.requests.q_len.max") == 3);
}

TEST_CASE("A list that says something else than it means is refused by name") {
  CHECK(refusal(list_of_one()).empty());
  Json list = list_of_one();
  list["causes"].push_back(list["causes"][0]);
  CHECK(refusal(list).find("the id is given twice") != std::string::npos);
  list = list_of_one();
  list["causes"][0]["signs"][0]["where"]["shape.page_sise"] = 2;
  CHECK(refusal(list).find("no case of its files has a field 'shape.page_sise'") != std::string::npos);
  list = list_of_one();
  list["causes"][0]["signs"][0]["where"]["shape.page_size"] = {{"least", 2}};
  CHECK(refusal(list).find("least") != std::string::npos);
  list = list_of_one();
  list["causes"][0]["files"] = {"missing.json"};
  CHECK(refusal(list).find("missing.json") != std::string::npos);
  list = list_of_one();
  list["causes"][0]["signs"][0].erase("diagnosis");
  CHECK(refusal(list).find("diagnosis") != std::string::npos);
  list = list_of_one();
  list["causes"][0]["signs"] = Json::array();
  CHECK(refusal(list).find("signs") != std::string::npos);
}
