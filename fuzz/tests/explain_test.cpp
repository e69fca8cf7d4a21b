// SPDX-License-Identifier: MIT
//
// What a failure tells: mismatch maps in failure files, attest explain, attest trace, and hazards as findings
// like any other. All on kernels with planted faults, whose answers are known.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <span>
#include <string>

#include "cases/case.h"
#include "cases/inputs.h"
#include "device/kernel.h"
#include "fuzz/evaluate.h"
#include "fuzz/explain/buffer_place.h"
#include "fuzz/explain/heat_map.h"
#include "fuzz/explain/paged_keys.h"
#include "fuzz/record.h"
#include "fuzz/run_folder.h"
#include "fuzz/tests/fixtures.h"
#include "oracle/judge.h"
#include "oracle/precision.h"
#include "reference/formats.h"

namespace {

using attest::fuzz::testing::Ran;
using attest::fuzz::testing::read_file;
using attest::fuzz::testing::run_attest;
using attest::fuzz::testing::TemporaryFolder;
using namespace attest;
using fuzz::Json;

cases::Case a_case(cases::MlaDecode p) {
  cases::Case c;
  c.seed = 9;
  c.problem = std::move(p);
  return c;
}

std::string saved(const TemporaryFolder& folder, const cases::Case& c) {
  const std::string path = folder.path + "/case.json";
  std::ofstream(path, std::ios::binary) << cases::pretty_json(c);
  return path;
}

Json json_of(const std::string& arguments, int code) {
  const Ran ran = run_attest(arguments + " --json");
  INFO(arguments << "\n" << ran.out << ran.err);
  REQUIRE(ran.code == code);
  return Json::parse(ran.out);
}

bool says(const Ran& ran, const std::string& words) {
  INFO(ran.out << ran.err);
  CHECK(ran.out.find(words) != std::string::npos);
  return ran.out.find(words) != std::string::npos;
}

const std::string planted = ATTEST_CASES "/corpus/planted/";

/// What the outputs hold at the bytes of an element, decoded.
double stored_at(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs,
                 const fuzz::ElementPlace& place, const device::hip::BufferBytes& at) {
  using reference::Format;
  if (const auto* p = std::get_if<cases::CacheWrite>(&c.problem)) {
    // The pool comes back as its extents, one behind the other.
    std::uint64_t before = 0;
    for (const auto& extent : std::get<cases::CacheWriteInputs>(inputs).pool.extents) {
      if (at.offset >= extent.offset && at.offset < extent.offset + extent.bytes.size()) {
        const auto bytes =
            std::span(outputs.find("pool")->bytes)
                .subspan(before + at.offset - extent.offset, static_cast<std::size_t>(at.bytes));
        std::vector<double> value(1);
        const bool values = place.column < (p->layout == cases::CacheLayout::indexer ? 128 : 512);
        REQUIRE(at.bytes == (values                                                          ? 1
                             : p->layout == cases::CacheLayout::ds_mla && place.column < 576 ? 2
                                                                                             : 4));
        if (at.bytes == 2) return std::to_integer<int>(bytes[0]);  // compared byte by byte
        reference::decode(values ? Format::fp8_e4m3fnuz : Format::f32, bytes, value);
        return value[0];
      }
      before += extent.bytes.size();
    }
    FAIL("no such byte of the pool");
  }
  const auto* tables = std::get_if<cases::BlockTableExpand>(&c.problem);
  const std::string name =
      (tables != nullptr && tables->graph ? fmt::format("step{}.", place.head) : "") + at.buffer;
  const auto* tensor = outputs.find(name);
  REQUIRE(tensor != nullptr);
  REQUIRE(at.offset + at.bytes <= tensor->bytes.size());
  const auto bytes = std::span(tensor->bytes).subspan(at.offset, static_cast<std::size_t>(at.bytes));
  if (tables != nullptr) {
    std::int32_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::vector<double> value(1);
  reference::decode(at.bytes == 2 ? Format::bf16 : Format::f32, bytes, value);
  return value[0];
}

}  // namespace

TEST_CASE("a mismatch map survives its JSON, and reads as text") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  oracle::MismatchGrid grid("head");
  grid.note(0, 0, 0, 0.123456);
  grid.note(0, 0, 1, infinity);
  grid.note(1, 3, 0, std::numeric_limits<double>::quiet_NaN());
  grid.note(1, 4, 1, 12345.6);
  const Json json = fuzz::to_json(grid.map());
  CHECK(json.dump() ==
        R"({"rows":[{"request":0,"position":0},{"request":1,"position":3},{"request":1,"position":4}],)"
        R"("columns":["0","1"],"axis":"head","used":[[0.1235,"inf"],["nan",null],[null,12350.0]]})");
  const oracle::Mismatch back = fuzz::mismatch_from_json(json);
  CHECK(fuzz::to_json(back) == json);
  CHECK(fuzz::to_json(oracle::Mismatch()).is_null());
  CHECK(fuzz::mismatch_from_json(nullptr).empty());
  Json broken = json;
  broken["used"].erase(0);
  CHECK_THROWS(fuzz::mismatch_from_json(broken));

  const std::vector<std::string> lines = fuzz::heat_map(back);
  REQUIRE(lines.size() >= 4);
  CHECK(lines[1] == "      0         0  .!");
  CHECK(lines[2] == "      1         3  N ");
  CHECK(lines[3] == "      1         4   #");
}

TEST_CASE("failure files hold the maps of the case as found and as minimised, verdicts do not") {
  const TemporaryFolder folder;
  const Ran ran = run_attest(
      "fuzz --kernel attest/mla_decode+qlen_mask --cases 20 --seed 7 --stop-on-finding "
      "--shrink-budget 60 --quiet --out " +
      folder.path + "/run");
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 1);
  std::size_t verdicts = 0, maps = 0;
  fuzz::read_events(folder.path + "/run", [&](const Json& event) {
    if (event.at("event") != "verdict") return;
    ++verdicts;
    CHECK_FALSE(event.at("evaluation").contains("mismatch"));
  });
  CHECK(verdicts > 0);
  for (const auto& file : std::filesystem::directory_iterator(folder.path + "/run/failures")) {
    const Json failure = Json::parse(read_file(file.path()));
    for (const char* which : {"original", "minimised"}) {
      ++maps;
      const Json& map = failure.at("mismatch").at(which);
      const auto c = cases::parse_case(failure.at(which).dump());
      const auto& p = std::get<cases::MlaDecode>(c.problem);
      std::size_t positions = 0;
      for (const cases::Request& r : p.requests) positions += static_cast<std::size_t>(r.q_len);
      CHECK(map.at("axis") == "head");
      if (!map.contains("row_block")) CHECK(map.at("rows").size() == positions);
      CHECK(map.at("columns").size() == static_cast<std::size_t>(p.heads));
      REQUIRE(map.at("used").size() == map.at("rows").size());
      // The fault is in positions past the first, and only there.
      bool wrong = false;
      for (std::size_t r = 0; r < map.at("rows").size(); ++r)
        for (const Json& used : map.at("used")[r]) {
          const bool bad = used.is_string() || (used.is_number() && used.get<double>() > 1);
          wrong = wrong || bad;
          if (!map.contains("row_block") && map.at("rows")[r].at("position") == 0) CHECK_FALSE(bad);
        }
      CHECK(wrong);
    }
  }
  CHECK(maps >= 2);
}

TEST_CASE("explain names the alternative that a wrong result equals, with coordinates") {
  const TemporaryFolder folder;
  const std::string file =
      saved(folder, a_case({.heads = 4, .page_size = 16, .num_splits = 2, .requests = {{3, 80}, {1, 5}}}));
  const Json json = json_of("explain " + file + " --kernel attest/mla_decode+qlen_mask", 1);
  const Json& alternative = json.at("alternative");
  CHECK(alternative.at("model") == "query rows identical");
  CHECK(alternative.at("rows").get<int>() >= 4);
  CHECK(alternative.at("elements") == 512 * alternative.at("rows").get<int>());
  CHECK(alternative.at("with_alternative") == alternative.at("elements"));
  CHECK(alternative.at("with_reference").get<int>() < alternative.at("elements").get<int>() / 2);
  const Json& worst = json.at("worst").at(0);
  CHECK(worst.at("request") == 0);
  CHECK(worst.at("position") == 1);
  CHECK_FALSE(worst.at("term").get<std::string>().empty());
  CHECK(worst.at("keys").at("visible") == 79);
  CHECK(worst.at("keys").at("pages").size() == 5);
  CHECK(worst.at("keys").at("last_slot") == 14);
  CHECK(worst.at("keys").at("split_ends") == Json({64, 79}));
  CHECK(json.at("signature") == "mla_decode/attest/mla_decode+qlen_mask/fail/result/query rows identical");

  const Ran people = run_attest("explain " + file + " --kernel attest/mla_decode+qlen_mask");
  CHECK(people.code == 1);
  says(people, "what the case asks for");
  says(people, "request 0: kv_len 80, q_len 3; 5 pages of 16");
  says(people, "the model \"query rows identical\"");
  says(people, "splits of whole tiles of 32: 0 to 63, 64 to 78");
  says(people, "request  position  head 0 to 3");
  says(people, "attest trace " + file);

  // The same of a model with a bound of its own, and of a failure file.
  const Json page = json_of("explain " + planted + "mla_decode-page_size_one.json", 1);
  CHECK(page.at("alternative").at("model") == "first token of each page only");
  CHECK(page.at("alternative").at("agreement") == "within its bound");
  CHECK(page.at("alternative").at("with_alternative") == page.at("alternative").at("elements"));
}

TEST_CASE("explain and the failure file say which keys a wrong row weighs wrongly") {
  const TemporaryFolder folder;
  const std::string file =
      saved(folder, a_case({.heads = 2, .page_size = 4, .requests = {{1, 70}, {1, 40}}}));
  const Json json = json_of("explain " + file + " --kernel attest/mla_decode+last_tile_dropped", 1);
  const Json& keys = json.at("mismatch").at("others").at(0);
  CHECK(keys.at("axis") == "key");
  CHECK(keys.at("columns").size() == 70);
  // Keys of little weight are missed by nobody.
  CHECK(keys.at("says").get<std::string>().starts_with(
      "request 0, position 0, head 0: too little weight on keys 6"));
  int wrong = 0;
  for (std::size_t key = 0; key < 70; ++key) {
    const Json& used = keys.at("used").at(0).at(key);
    if (used != "inf" && used.get<double>() <= 1) continue;
    CHECK(key >= 64);
    ++wrong;
  }
  CHECK(wrong >= 3);
  const oracle::Mismatch back = fuzz::mismatch_from_json(json.at("mismatch"));
  REQUIRE(back.others.size() == 1);
  CHECK(fuzz::to_json(back) == json.at("mismatch"));
  const Ran people = run_attest("explain " + file + " --kernel attest/mla_decode+last_tile_dropped");
  says(people, "by key, as far as the result tells");
  says(people, "too little weight on keys 6");

  REQUIRE(
      run_attest("fuzz --kernel attest/mla_decode+last_tile_dropped --cases 20 --seed 7 --stop-on-finding "
                 "--shrink-budget 60 --quiet --out " +
                 folder.path + "/run")
          .code == 1);
  REQUIRE(run_attest("report " + folder.path + "/run").code == 0);
  const std::string page = read_file(folder.path + "/run/report.html");
  CHECK(page.find("By key, minimised case") != std::string::npos);
  CHECK(page.find("too little weight on key") != std::string::npos);

  const Json foreseen = json_of("explain " + planted + "mla_decode-causal_off_by_one.json", 1);
  CHECK(foreseen.at("mismatch").at("others").at(0).at("says") ==
        "request 0, position 0, head 0: too much weight on key 0");

  // What reads other rows than the request's does not tell of its keys.
  const Json other = json_of("explain " + planted + "mla_decode-kv_scale_missing.json", 1);
  CHECK_FALSE(other.at("mismatch").contains("others"));
}

TEST_CASE("explain ends as replay does, for every op") {
  const TemporaryFolder folder;
  const std::string file = saved(folder, a_case({.heads = 2, .requests = {{1, 40}}}));
  CHECK(json_of("explain " + file, 0).at("alternative").is_null());
  CHECK(run_attest("explain no_such_file.json").code == 2);
  CHECK(run_attest("explain " + file + " --original").code == 2);

  const auto device = device::open_device("sim", 0);
  for (const std::string& op : cases::op_names()) {
    INFO(op);
    bool explained = false;
    for (const device::Kernel* k : device::kernels()) {
      if (k->op() != op || k->contract() != "attest" || k->fault().empty() || explained) continue;
      for (std::uint64_t n = 0; n < 40 && !explained; ++n) {
        const cases::Case c = fuzz::case_for(k->name(), 11, n);
        const fuzz::Evaluation e = fuzz::evaluate(*device, *k, c);
        if (!fuzz::is_finding(e.verdict.kind)) continue;
        explained = true;
        const Ran ran = run_attest("explain " + saved(folder, c) + " --kernel " + k->name());
        INFO(k->name() << "\n" << ran.out << ran.err);
        CHECK(ran.code == 1);
        says(ran, "a planted fault");
        says(ran, e.verdict.diagnosis);
        if (!e.verdict.mismatch.empty()) says(ran, "\nwhere\n  request  position  ");
      }
    }
    CHECK(explained);
  }
}

TEST_CASE("explain takes a hazard apart") {
  const TemporaryFolder folder;
  const std::string file = saved(folder, a_case({.heads = 16, .requests = {{1, 100}}}));
  const Ran ran =
      run_attest("explain " + file + " --kernel attest/mla_decode+barrier_missing --detect lds-race");
  CHECK(ran.code == 1);
  says(ran, "hazard  attest/mla_decode+barrier_missing");
  says(ran, "what the detectors saw\n  lds-race: ");
  says(ran, "\n    at    0x");
  says(ran, "\n    from  0x");
  says(ran, "the result is right all the same");
}

TEST_CASE("bytes of the cache are named by page, slot and key") {
  const cases::Case c = a_case({.heads = 1, .page_size = 4, .requests = {{1, 10}, {1, 3}}});
  const cases::Inputs inputs = cases::materialise(c);
  const auto cache = fuzz::paged_cache(c, inputs);
  REQUIRE(cache);
  const auto page = static_cast<std::uint64_t>(cache->page(0, 9));
  const std::uint64_t at = page * cache->page_bytes + 1 * cache->row_bytes + 2 * 7;
  CHECK(fuzz::in_contract_terms(c, inputs, "kv_pool", at, 4) ==
        "page " + std::to_string(page) + " slot 1, key 9 of request 0, columns 7 to 8");
  CHECK(fuzz::in_contract_terms(c, inputs, "kv_pool", at + cache->row_bytes, 2) ==
        "page " + std::to_string(page) + " slot 2, 1 past the end of request 0, column 7");
  CHECK(fuzz::in_contract_terms(c, inputs, "kv_page_indices", 4 * 3, 4) == "page 0 of request 1");
  CHECK(fuzz::in_contract_terms(c, inputs, "q", 576 * 2 + 6, 2) == "request 1, position 0, head 0, column 3");
  const auto bytes = fuzz::bytes_of_element(c, inputs, {.request = 1, .position = 0, .head = 0, .column = 5});
  REQUIRE(bytes);
  CHECK(bytes->buffer == "out");
  CHECK(bytes->offset == (512 + 5) * 2);
  CHECK_THROWS(fuzz::bytes_of_element(c, inputs, {.request = 2}));
}

TEST_CASE("trace shows which slots of which pages a value was made from") {
  const TemporaryFolder folder;
  const std::string file = saved(folder, a_case({.heads = 1, .page_size = 4, .requests = {{1, 12}}}));
  // Slots that the value itself was made of, over all pages.
  const auto slots = [&](const std::string& kernel) {
    const Json json = json_of("trace " + file + " --element 0,0,0,17 --kernel " + kernel, 0);
    const Json& answer = json.at("answers").at(0);
    REQUIRE(answer.at("found") == true);
    CHECK(answer.at("producer").at("kernel") == "mla_decode_bf16_bf16");
    CHECK(answer.at("chain").at(0).at("disassembly").get<std::string>().starts_with("global_store"));
    std::set<std::uint64_t> found;
    for (const Json& read : answer.at("reads"))
      if (read.at("buffer") == "kv_pool" && read.at("role") == "value")
        for (std::uint64_t b = 0; b < read.at("bytes").get<std::uint64_t>(); b += 2)
          found.insert((read.at("offset").get<std::uint64_t>() + b) / (576 * 2) % 4);
    CHECK(answer.at("terms").contains("kv_page_indices"));
    return found;
  };
  CHECK(slots("attest/mla_decode+page_size_one") == std::set<std::uint64_t>{0});
  CHECK(slots("attest/mla_decode") == std::set<std::uint64_t>{0, 1, 2, 3});

  const Ran people = run_attest("trace " + planted + "mla_decode-page_size_one.json --window 8");
  CHECK(people.code == 0);
  says(people, "request 0, position 0, head 0, ");
  says(people, "read from kv_pool (value): ");
  says(people, "slot 0 of 2: ");
  says(people, "instructions of the wave around the store, in order");
  CHECK(std::count(people.out.begin(), people.out.end(), '\n') < 90);
}

TEST_CASE("trace follows a merged value into the launch that made its parts") {
  const TemporaryFolder folder;
  const std::string file =
      saved(folder, a_case({.heads = 1, .page_size = 4, .num_splits = 2, .requests = {{1, 70}}}));
  const Json json = json_of("trace " + file + " --element 0,0,0,17", 0);
  REQUIRE(json.at("answers").size() >= 2);
  CHECK(json.at("answers").at(0).at("producer").at("kernel") == "split_reduce");
  CHECK(json.at("answers").at(0).at("producer").at("launch") == 1);
  CHECK(json.at("answers").at(1).at("producer").at("kernel") == "mla_decode_bf16_bf16");
  CHECK(json.at("answers").at(1).at("producer").at("launch") == 0);
  CHECK(json.at("answers").at(1).at("buffer").get<std::string>().starts_with("partial_"));
}

TEST_CASE("the bytes of a wrong element hold what the verdict says, whatever the op") {
  const auto device = device::open_device("sim", 0);
  struct Op {
    const char* kernel;
    const char* producer;  ///< of the first wrong element: the launch that stores it, or its beginning
  };
  const TemporaryFolder folder;
  for (const Op& op : {Op{"attest/block_table_expand+block_ratio_missing", "block_table_"},
                       Op{"attest/block_table_expand+stale_tail", "block_table_"},
                       Op{"attest/block_table_expand+last_page_len", "block_table_"},
                       Op{"attest/block_table_expand+qo_indptr_arange", "block_table_"},
                       Op{"attest/work_plan+empty_split_lse_zero", "work_plan_"},
                       Op{"attest/dense_switch+ids_not_remapped", "switch_"},
                       Op{"attest/cache_write+interleaved", "cache_write_indexer"},
                       Op{"attest/cache_write+ds_rope_offset", "cache_write_ds_mla"}}) {
    CAPTURE(op.kernel);
    const device::Kernel* kernel = device::find_kernel(op.kernel);
    REQUIRE(kernel != nullptr);
    bool traced = false;
    for (std::uint64_t n = 0; n < 400 && !traced; ++n) {
      const cases::Case c = fuzz::case_for(op.kernel, 1, n);
      if (kernel->refuses(c)) continue;
      const cases::Inputs inputs = cases::materialise(c);
      const device::Outcome outcome = kernel->run(*device, c, inputs);
      if (outcome.status != device::Status::ok) continue;
      const oracle::Verdict v =
          oracle::judge(c, inputs, outcome.outputs, oracle::profile(kernel->precision()));
      if (v.worst.empty()) continue;
      for (const oracle::Element& e : v.worst) {
        CAPTURE(n, e.request, e.position, e.head, e.column);
        const fuzz::ElementPlace place{e.request, e.position, e.head, e.column};
        const auto bytes = fuzz::bytes_of_element(c, inputs, place);
        REQUIRE(bytes);
        const double stored = stored_at(c, inputs, outcome.outputs, place, *bytes);
        if (bytes->buffer == "pool" && bytes->bytes == 2) continue;
        CHECK((stored == e.got || (std::isnan(stored) && std::isnan(e.got))));
      }
      const oracle::Element& e = v.worst.front();
      if (e.got == e.expected) continue;
      const Json json = json_of(fmt::format("trace {} --kernel {}", saved(folder, c), op.kernel), 0);
      const Json& answer = json.at("answers").at(0);
      // What nobody wrote has no producer: a tail behind the first step's, a place that another took.
      const std::string name = op.kernel;
      if ((name.ends_with("stale_tail") || name.ends_with("interleaved")) && answer.at("found") == false)
        continue;
      REQUIRE(answer.at("found") == true);
      CHECK(answer.at("producer").at("kernel").get<std::string>().starts_with(op.producer));
      if (std::holds_alternative<cases::BlockTableExpand>(c.problem))
        CHECK(answer.at("producer").at("launch").get<int>() < 3 * (e.head + 1));
      traced = true;
    }
    CHECK(traced);
  }
}

TEST_CASE("trace says what it cannot follow") {
  const TemporaryFolder folder;
  const std::string file = saved(folder, a_case({.heads = 1, .requests = {{1, 12}}}));
  const Ran unwritten = run_attest("trace " + file + " --buffer q --offset 8");
  CHECK(unwritten.code == 0);
  says(unwritten, "q bytes 8 to 11: never written by any launch");
  const Ran passing = run_attest("trace " + file);
  CHECK(passing.code == 2);
  CHECK(passing.err.find("with no wrong element to begin from") != std::string::npos);
  CHECK(run_attest("trace " + file + " --element 0,0,1,0").err.find("head 1 of 1") != std::string::npos);
  CHECK(run_attest("trace " + file + " --element 0,0").code == 2);
  CHECK(run_attest("trace " + file + " --device hip").code == 2);
}

TEST_CASE("a hazard is found, told from others by its pair of instructions, shrunk and replayed") {
  const TemporaryFolder folder;
  const std::string kernel = "attest/mla_decode+barrier_missing";
  const std::string campaign =
      "fuzz --kernel " + kernel + " --cases 12 --seed 3 --quiet --json --out " + folder.path;
  // In the plain order of waves the result is right: without a detector nobody knows.
  CHECK(run_attest(campaign + "/plain").code == 0);

  const Json summary = json_of(campaign + "/run --shrink-budget 120 --max-shrunk 2 --detect lds-race", 1);
  const Json& findings = summary.at("findings");
  REQUIRE_FALSE(findings.empty());
  std::set<std::string> signatures;
  std::uint64_t count = 0;
  bool smaller = false;
  for (const Json& finding : findings) {
    const auto signature = finding.at("signature").get<std::string>();
    INFO(signature);
    CHECK(signature.starts_with("mla_decode/" + kernel + "/hazard/lds-race/mla_decode_"));
    CHECK(signature.find(" lds-race 0x") != std::string::npos);
    CHECK(signatures.insert(signature).second);
    count += finding.at("count").get<std::uint64_t>();
    const std::string file = folder.path + "/run/" + finding.at("case").get<std::string>();
    const Json failure = Json::parse(read_file(file));
    CHECK(failure.at("detectors") == "lds-race");
    if (finding.at("shrunk").get<bool>())
      smaller = smaller || failure.at("minimised").dump().size() < failure.at("original").dump().size();
    const Json replayed = json_of("replay " + file, 1).at("results").at(0);
    CHECK(replayed.at("reproduced") == true);
    CHECK(replayed.at("signature") == signature);
  }
  CHECK(count > findings.size());  // several cases, one finding
  CHECK(smaller);
}
