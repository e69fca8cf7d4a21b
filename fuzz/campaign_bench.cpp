// SPDX-License-Identifier: MIT
//
// Cases per second end to end, and where a case's time goes: materialise, simulate, reference (with the
// bound), judge (comparisons, diagnoses, relations). The share columns are percentages of the whole case.
// What relations change a case into counts as materialising, what they compare as judging. Only the judge of
// MLA attention tells reference and bound apart; elsewhere reference_pct is 0 and judge_pct holds both.
//
//   small            2 requests of kv_len 100, 16 heads, q_len 1
//
//   kv4096           1 request of kv_len 4096, 16 heads
//
//   generated/<op>   the first 64 cases of campaign seed 1, for each op that has a kernel of ours
//
// The first is the size that most findings pass through as they shrink, the last what a night is made of.
#include <benchmark/benchmark.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "cases/case.h"
#include "device/kernel.h"
#include "fuzz/allocation.h"
#include "fuzz/evaluate.h"
#include "fuzz/generate.h"

namespace {

using namespace attest;

cases::Case uniform_batch(int requests, int kv_len) {
  cases::Case c;
  cases::MlaDecode problem;
  problem.requests.assign(static_cast<std::size_t>(requests), {1, kv_len});
  c.problem = problem;
  return c;
}

void run(benchmark::State& state, const std::string& op, const std::vector<cases::Case>& batch) {
  const auto device = device::open_device("sim", 0);
  const device::Kernel* kernel = device::find_kernel("attest/" + op);
  if (kernel == nullptr) throw std::runtime_error("attest/" + op + " is not built");
  double materialise = 0, simulate = 0, reference = 0, judge = 0;
  std::uint64_t done = 0, wave_instructions = 0;
  for (auto _ : state) {
    for (const cases::Case& c : batch) {
      const fuzz::Evaluation e = fuzz::evaluate(*device, *kernel, c);
      if (fuzz::is_finding(e.verdict.kind)) state.SkipWithError(e.verdict.detail.c_str());
      materialise += e.materialise_seconds;
      simulate += e.run_seconds;
      judge += e.judge_seconds;
      reference += e.reference_seconds;
      wave_instructions += e.wave_instructions;
      ++done;
    }
  }
  using benchmark::Counter;
  const double all = materialise + simulate + judge;
  state.counters["cases_per_s"] = Counter(static_cast<double>(done), Counter::kIsRate);
  state.counters["wave_inst_per_s"] = static_cast<double>(wave_instructions) / simulate;
  state.counters["materialise_pct"] = 100 * materialise / all;
  state.counters["simulate_pct"] = 100 * simulate / all;
  state.counters["reference_pct"] = 100 * reference / all;
  state.counters["judge_pct"] = 100 * (judge - reference) / all;
}

void small(benchmark::State& state) {
  run(state, "mla_decode", {uniform_batch(2, 100)});
}
void kv4096(benchmark::State& state) {
  run(state, "mla_decode", {uniform_batch(1, 4096)});
}
void generated(benchmark::State& state, const std::string& op) {
  std::vector<cases::Case> batch;
  for (std::uint64_t number = 0; number < 64; ++number) batch.push_back(fuzz::generate(op, 1, number));
  run(state, op, batch);
}

BENCHMARK(small)->Unit(benchmark::kMillisecond);
BENCHMARK(kv4096)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  attest::fuzz::keep_freed_memory();
  for (const std::string& op : attest::cases::op_names())
    if (attest::device::find_kernel("attest/" + op) != nullptr)
      benchmark::RegisterBenchmark(("generated/" + op).c_str(), generated, op)->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
