// SPDX-License-Identifier: MIT
//
// The ops around decode (block tables, verification, plans) from generator to verdict: what is generated is
// valid and reads back, what is shrunk is smaller, the kernels pass, and each planted fault is found.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cases/case.h"
#include "device/kernel.h"
#include "fuzz/evaluate.h"
#include "fuzz/generate.h"

namespace attest::fuzz {
namespace {

using namespace cases;

void check_generator(const std::string& op) {
  for (std::uint64_t n = 0; n < 400; ++n) {
    const Case c = generate(op, 3, n);
    INFO(canonical_json(c));
    REQUIRE_NOTHROW(validate(c));
    REQUIRE(op_name(c.problem) == op);
    REQUIRE(parse_case(canonical_json(c)) == c);
    REQUIRE(parse_case(pretty_json(c)) == c);
    REQUIRE(work(c) >= 0);
    if (n % 8 != 0) continue;
    for (const Case& s : shrink_candidates(c)) {
      INFO("shrunk to " << canonical_json(s));
      REQUIRE_NOTHROW(validate(s));
      REQUIRE(complexity(s) < complexity(c));
    }
  }
}

/// The number of cases until `kernel` fails, up to `most`; 0 when it does not.
int cases_to_failure(device::Device& device, const device::Kernel& kernel, std::uint64_t seed, int most) {
  for (int n = 0; n < most; ++n) {
    const Case c = case_for(kernel.name(), seed, static_cast<std::uint64_t>(n));
    const Evaluation e = evaluate(device, kernel, c);
    INFO(kernel.name() << ": " << e.verdict.diagnosis << ", " << e.verdict.detail << "\n"
                       << canonical_json(c));
    REQUIRE(e.verdict.kind != oracle::VerdictKind::harness_error);
    if (is_finding(e.verdict.kind)) return n + 1;
  }
  return 0;
}

void check_kernels(const std::string& op, int faults) {
  const auto device = device::open_device("sim", 0);
  int planted = 0;
  for (const device::Kernel* kernel : device::kernels()) {
    if (kernel->op() != op || kernel->contract() != "attest") continue;
    INFO(kernel->name());
    if (kernel->fault().empty()) {
      CHECK(cases_to_failure(*device, *kernel, 1, 60) == 0);
    } else {
      ++planted;
      CHECK(cases_to_failure(*device, *kernel, 1, 500) > 0);
      CHECK(kernel->imitates().find("https://github.com/") == 0);
    }
  }
  CHECK(planted == faults);
}

/// The cases of a folder of cases/seeds, by file name.
std::vector<Case> seed_set(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(ATTEST_SEEDS) / folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Case> set;
  for (const auto& file : files) {
    std::ifstream in(file);
    set.push_back(parse_case(std::string(std::istreambuf_iterator<char>(in), {})));
  }
  return set;
}

/// Cases of the set that fail on a kernel.
int failures(device::Device& device, const std::string& kernel, const std::vector<Case>& set) {
  const device::Kernel* found = device::find_kernel(kernel);
  REQUIRE(found != nullptr);
  int failed = 0;
  for (const Case& c : set) {
    const Evaluation e = evaluate(device, *found, c);
    INFO(kernel << ": " << e.verdict.diagnosis << ", " << e.verdict.detail << "\n" << canonical_json(c));
    REQUIRE((e.verdict.kind == oracle::VerdictKind::pass || is_finding(e.verdict.kind)));
    REQUIRE(e.verdict.kind != oracle::VerdictKind::harness_error);
    failed += is_finding(e.verdict.kind) ? 1 : 0;
  }
  return failed;
}

}  // namespace

TEST_CASE("block_table_expand: generated, shrunk, passed, and its faults found") {
  check_generator("block_table_expand");
  check_kernels("block_table_expand", 8);
}

TEST_CASE("spec_verify: generated, shrunk, passed, and its faults found") {
  check_generator("spec_verify");
  check_kernels("spec_verify", 7);
}

TEST_CASE("work_plan: generated, shrunk, passed, and its faults found") {
  check_generator("work_plan");
  check_kernels("work_plan", 6);
}

TEST_CASE("The seeds of block table expansion and of persistent metadata by q_len do what they are for") {
  const auto device = device::open_device("sim", 0);
  const std::vector<Case> tables = seed_set("block_table_expansion");
  CHECK(tables.size() == 30);
  CHECK(failures(*device, "attest/block_table_expand", tables) == 0);
  for (const char* fault : {"last_page_len", "block_size_one", "block_ratio_missing", "dummy_rows_empty",
                            "qo_indptr_arange", "offsets_run_on", "stale_tail", "state_on_builder"})
    CHECK(failures(*device, std::string("attest/block_table_expand+") + fault, tables) > 0);

  const std::vector<Case> plans = seed_set("persistent_metadata_by_q_len");
  CHECK(plans.size() == 22);
  CHECK(failures(*device, "attest/work_plan", plans) == 0);
  for (const char* fault : {"weak_key", "memo_outlives_plan", "empty_work_ends", "empty_split_lse_zero",
                            "sixteenth_split_skipped"})
    CHECK(failures(*device, std::string("attest/work_plan+") + fault, plans) > 0);
  // q_len 5 to 16, the sequence and the ragged batch.
  CHECK(failures(*device, "attest/work_plan+qlen_gate_missing", plans) == 14);
}

}  // namespace attest::fuzz
