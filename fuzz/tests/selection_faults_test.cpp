// SPDX-License-Identifier: MIT
//
// End to end on the simulator: the kernels of the exact ops pass what the generator draws, and each of their
// planted faults is found, by a finding that is about results. (mla_decode, which takes longer, is measured
// by .ci/kill-matrix.)
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "cases/case.h"
#include "device/kernel.h"
#include "fuzz/evaluate.h"
#include "fuzz/generate.h"

namespace attest::fuzz {
namespace {

const std::set<std::string> ops = {"index_remap", "topk", "cache_write", "indexer_logits"};

std::vector<const device::Kernel*> kernels(bool faulty) {
  std::vector<const device::Kernel*> chosen;
  for (const device::Kernel* kernel : device::kernels())
    if (kernel->contract() == "attest" && ops.count(kernel->op()) == 1 && kernel->fault().empty() != faulty)
      chosen.push_back(kernel);
  return chosen;
}

device::Device& simulator() {
  static const auto device = device::open_device("sim", 0);
  return *device;
}

}  // namespace

TEST_CASE("The kernels of the exact ops pass what is drawn for them") {
  CHECK(kernels(false).size() == ops.size());
  for (const device::Kernel* kernel : kernels(false)) {
    for (std::uint64_t n = 0; n < 60; ++n) {
      const cases::Case c = case_for(kernel->name(), 2, n);
      const Evaluation e = evaluate(simulator(), *kernel, c);
      INFO(kernel->name() << ' ' << n << ": " << e.verdict.diagnosis << ": " << e.verdict.detail << '\n'
                          << cases::canonical_json(c));
      CHECK_FALSE(is_finding(e.verdict.kind));
    }
  }
}

TEST_CASE("Each planted fault of the exact ops is found within 500 cases") {
  CHECK(kernels(true).size() >= ops.size());
  for (const device::Kernel* kernel : kernels(true)) {
    INFO(kernel->name());
    std::uint64_t n = 0;
    while (n < 500 &&
           !is_finding(evaluate(simulator(), *kernel, case_for(kernel->name(), 1, n)).verdict.kind))
      ++n;
    CHECK(n < 500);
  }
}

}  // namespace attest::fuzz
