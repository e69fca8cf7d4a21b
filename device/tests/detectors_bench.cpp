// SPDX-License-Identifier: MIT
//
// What each detector costs: an MLA decode (4 requests of kv_len 512, 16 heads, 2 splits) on one thread of the
// simulator, with nothing chosen, with each detector alone, and with all of them. Time is the processor time
// of the run (buffers included); `times_off` is that over the time with nothing chosen, measured turn by
// turn, `least_times_off` the shortest run over the shortest: what is left of it on a machine that is busy.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "cases/case.h"
#include "cases/inputs.h"
#include "device/kernel.h"
#include "device/simulator/detect/detectors.h"
#include "device/tests/thread_seconds.h"

namespace {

using namespace attest;
using device::testing::thread_seconds;

struct Subject {
  Subject() {
    cases::MlaDecode problem;
    problem.requests.assign(4, {1, 512});
    problem.num_splits = 2;
    c.problem = problem;
    inputs = cases::materialise(c);
    kernel = device::find_kernel("attest/mla_decode");
    if (kernel == nullptr) throw std::runtime_error("attest/mla_decode is not built");
  }
  device::Outcome run(const std::string& detectors) {
    device->choose_detectors(detectors);
    const double start = thread_seconds();
    device::Outcome outcome = kernel->run(*device, c, inputs);
    outcome.seconds = thread_seconds() - start;
    if (outcome.status != device::Status::ok) throw std::runtime_error(outcome.detail);
    if (!device->take_observations().hazards.empty()) throw std::runtime_error("hazards in a correct kernel");
    return outcome;
  }

  std::unique_ptr<device::Device> device = device::open_device("sim", 0);
  const device::Kernel* kernel = nullptr;
  cases::Case c;
  cases::Inputs inputs;
};

Subject& subject() {
  static Subject one;
  return one;
}

void detectors(benchmark::State& state, const std::string& chosen) {
  double off = 0, on = 0, least_off = 1e9, least_on = 1e9;
  std::uint64_t instructions = 0;
  for (auto _ : state) {
    const double plain = subject().run("none").seconds;
    off += plain;
    least_off = std::min(least_off, plain);
    const device::Outcome outcome = subject().run(chosen);
    on += outcome.seconds;
    least_on = std::min(least_on, outcome.seconds);
    instructions += outcome.wave_instructions;
    state.SetIterationTime(outcome.seconds);
  }
  state.counters["times_off"] = on / off;
  state.counters["least_times_off"] = least_on / least_off;
  state.counters["wave_inst_per_s"] = static_cast<double>(instructions) / on;
}

}  // namespace

int main(int argc, char** argv) {
  using attest::device::sim::detect::Detector;
  ::setenv("ATTEST_SIM_THREADS", "1", 1);
  const auto add = [](const std::string& chosen) {
    benchmark::RegisterBenchmark(chosen.c_str(),
                                 [chosen](benchmark::State& state) { detectors(state, chosen); })
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime();
  };
  add("none");
  for (unsigned k = 0; k < static_cast<unsigned>(Detector::count); ++k)
    add(std::string(name(static_cast<Detector>(k))));
  add("all");
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
