// SPDX-License-Identifier: MIT
//
// No false alarms: our own kernels, compiled at -O0, -O1 and -O3, on generated cases, with every
// detector of a single run on.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "cases/inputs.h"
#include "device/contracts/attest/kernels.h"
#include "device/kernel.h"
#include "fuzz/generate.h"
#include "oracle/judge.h"
#include "oracle/precision.h"

namespace attest::fuzz {
namespace {

/// ATTEST_SILENT_CASES makes it a long run; -O0 code executes twenty times the instructions.
std::uint64_t cases_of(const std::string& level) {
  const char* text = std::getenv("ATTEST_SILENT_CASES");
  const std::uint64_t wanted = text != nullptr ? std::strtoull(text, nullptr, 10) : 24;
  return level == "O0" ? (wanted + 3) / 4 : wanted;
}

}  // namespace

TEST_CASE("Our kernels are silent under the detectors") {
  const auto device = device::open_device("sim", 0);
  for (const std::string level : {"O3", "O1", "O0"}) {
    std::filesystem::path folder(ATTEST_KERNEL_VARIANTS);
    if (level != "O3") folder /= level;
    for (const auto& kernel : device::contracts::attest_kernels(folder)) {
      if (!kernel->fault().empty()) continue;
      device->choose_detectors("uninitialised,lds-race,global-race,waits,lds-dma,wait-states,barrier");
      std::uint64_t ran = 0;
      for (std::uint64_t number = 0; ran < cases_of(level); ++number) {
        const cases::Case c = generate(kernel->op(), 4, number);
        if (kernel->refuses(c) || (level == "O0" && work(c) > 100)) continue;
        ++ran;
        const cases::Inputs inputs = cases::materialise(c);
        const device::Outcome outcome = kernel->run(*device, c, inputs);
        std::string lines;
        for (const device::Hazard& h : device->take_observations().hazards) lines += h.line + "\n";
        INFO(kernel->name() << " -" << level << " case 4:" << number << "\n"
                            << outcome.detail << "\n"
                            << lines);
        CHECK(lines.empty());
        CHECK(outcome.status == device::Status::ok);
        if (outcome.status != device::Status::ok) continue;
        // A generated case may prove nothing; it must not fail.
        const oracle::VerdictKind kind =
            oracle::judge(c, inputs, outcome.outputs, oracle::profile(kernel->precision())).kind;
        CHECK((kind == oracle::VerdictKind::pass || kind == oracle::VerdictKind::mistrusted));
      }
      CHECK(ran == cases_of(level));
    }
  }
}

}  // namespace attest::fuzz
