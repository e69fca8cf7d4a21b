// SPDX-License-Identifier: MIT
//
// What all detectors cost each op: generated cases of the op, on one thread of the simulator, with nothing
// chosen and with everything. Time is processor time of the launches with their buffers; of each case the
// shortest of the repetitions counts, so that a busy machine does not. `times_off` is the sum with everything
// over the sum with nothing.
//
//   detector_cost_bench [OP...]        ATTEST_COST_CASES (40) cases, ATTEST_COST_REPETITIONS (5)
//                                      ATTEST_COST_DETECTORS (all)
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"
#include "device/kernel.h"
#include "device/tests/thread_seconds.h"
#include "fuzz/generate.h"

namespace {

using namespace attest;
using device::testing::thread_seconds;

std::string setting(const char* name, const char* otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : otherwise;
}

/// Seconds of one run. `instructions`: of the kernels.
double seconds_of(device::Device& device, const device::Kernel& kernel, const cases::Case& c,
                  const cases::Inputs& inputs, const std::string& detectors, std::uint64_t& instructions) {
  device.choose_detectors(detectors);
  const double start = thread_seconds();
  const device::Outcome outcome = kernel.run(device, c, inputs);
  const double seconds = thread_seconds() - start;
  if (outcome.status != device::Status::ok) throw std::runtime_error(outcome.detail);
  static_cast<void>(device.take_observations());
  instructions = outcome.wave_instructions;
  return seconds;
}

void measure(device::Device& device, const device::Kernel& kernel) {
  const std::string detectors = setting("ATTEST_COST_DETECTORS", "all");
  const std::uint64_t wanted = std::stoull(setting("ATTEST_COST_CASES", "40"));
  const std::uint64_t repetitions = std::stoull(setting("ATTEST_COST_REPETITIONS", "5"));
  double off = 0, on = 0;
  std::uint64_t instructions = 0, ran = 0;
  for (std::uint64_t number = 0; ran < wanted; ++number) {
    const cases::Case c = fuzz::generate(kernel.op(), 5, number);
    if (kernel.refuses(c)) continue;
    ++ran;
    const cases::Inputs inputs = cases::materialise(c);
    double least_off = 1e9, least_on = 1e9;
    std::uint64_t executed = 0;
    for (std::uint64_t k = 0; k < repetitions; ++k) {
      least_off = std::min(least_off, seconds_of(device, kernel, c, inputs, "none", executed));
      least_on = std::min(least_on, seconds_of(device, kernel, c, inputs, detectors, executed));
    }
    off += least_off;
    on += least_on;
    instructions += executed;
  }
  fmt::print(
      "{:<20} {:>4} cases {:>10} wave instructions  off {:>8.2f} ms  on {:>8.2f} ms  times_off {:.2f}\n",
      kernel.op(), ran, instructions, 1e3 * off, 1e3 * on, on / off);
}

}  // namespace

int main(int argc, char** argv) try {
  ::setenv("ATTEST_SIM_THREADS", "1", 1);
  const auto device = device::open_device("sim", 0);
  std::vector<std::string> ops(argv + 1, argv + argc);
  if (ops.empty()) ops = cases::op_names();
  for (const std::string& op : ops) {
    const device::Kernel* kernel = device::find_kernel("attest/" + op);
    if (kernel == nullptr) throw std::runtime_error("attest/" + op + " is not built");
    measure(*device, *kernel);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "detector_cost_bench: {}\n", error.what());
  return 2;
}
