// SPDX-License-Identifier: MIT
//
// The ops around decode (block tables, verification, plans) from generator to verdict: what is generated is
// valid and reads back, what is shrunk is smaller, the kernels pass, and each planted fault is found.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

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

}  // namespace attest::fuzz
