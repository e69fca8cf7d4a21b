// SPDX-License-Identifier: MIT
//
// Ops end to end on the simulator: generated cases pass on the correct kernel, and each planted fault is
// found among few of them. The kill matrix counts more seeds; this one keeps every fault findable.
#include <catch2/catch.hpp>
#include <string>

#include "cases/case.h"
#include "device/kernel.h"
#include "fuzz/evaluate.h"
#include "fuzz/generate.h"

using namespace attest;

namespace {

constexpr std::uint64_t campaign_seed = 11;
constexpr int cases_of_correct_kernel = 40, most_cases_to_a_fault = 200;

void expect_found(const std::string& op, int least_faults) {
  const auto device = device::open_device("sim", 0);
  int faults = 0;
  for (const device::Kernel* kernel : device::kernels()) {
    if (kernel->op() != op || kernel->contract() != "attest") continue;
    INFO(kernel->name());
    if (kernel->fault().empty()) {
      for (int n = 0; n < cases_of_correct_kernel; ++n) {
        const cases::Case c = fuzz::case_for(kernel->name(), campaign_seed, static_cast<std::uint64_t>(n));
        const fuzz::Evaluation e = fuzz::evaluate(*device, *kernel, c);
        INFO(n << " " << e.verdict.diagnosis << ": " << e.verdict.detail << " " << cases::canonical_json(c));
        CHECK_FALSE(fuzz::is_finding(e.verdict.kind));
      }
      continue;
    }
    ++faults;
    CHECK(kernel->imitates().rfind("https://github.com/", 0) == 0);
    bool found = false;
    for (int n = 0; n < most_cases_to_a_fault && !found; ++n) {
      const cases::Case c = fuzz::case_for(kernel->name(), campaign_seed, static_cast<std::uint64_t>(n));
      const fuzz::Evaluation e = fuzz::evaluate(*device, *kernel, c);
      found = fuzz::is_finding(e.verdict.kind);
      CHECK(e.verdict.kind != oracle::VerdictKind::harness_error);
    }
    CHECK(found);
  }
  CHECK(faults >= least_faults);
}

}  // namespace

TEST_CASE("merge_states: cases pass, faults are found") {
  expect_found("merge_states", 6);
}
TEST_CASE("mla_prefill: cases pass, faults are found") {
  expect_found("mla_prefill", 5);
}
TEST_CASE("verify_attention: cases pass, faults are found") {
  expect_found("verify_attention", 5);
}
TEST_CASE("mla_sparse: cases pass, faults are found") {
  expect_found("mla_sparse", 10);
}
TEST_CASE("dense_switch: cases pass, faults are found") {
  expect_found("dense_switch", 4);
}
