// SPDX-License-Identifier: MIT
//
// Cases per second end to end, and where a case's time goes: materialise, simulate, reference (with the
// bound), judge (comparisons, diagnoses, relations). The share columns are percentages of the whole case.
// Reference and bound are timed by themselves, on the same cases, and taken off what judging took; only MLA
// attention has them apart, so elsewhere reference_pct is 0 and judge_pct holds both.
//
//   small            2 requests of kv_len 100, 16 heads, q_len 1
//
//   kv4096           1 request of kv_len 4096, 16 heads
//
//   generated/<op>   the first 64 cases of campaign seed 1, for each op that has a kernel of ours
//
// The first is the size that most findings pass through as they shrink, the last what a night is made of.
#include <benchmark/benchmark.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases/case.h"
#include "device/kernel.h"
#include "fuzz/allocation.h"
#include "fuzz/evaluate.h"
#include "fuzz/generate.h"
#include "oracle/mla_bound.h"
#include "oracle/mla_launch.h"
#include "oracle/precision.h"

namespace {

using namespace attest;

cases::Case uniform_batch(int requests, int kv_len) {
  cases::Case c;
  cases::MlaDecode problem;
  problem.requests.assign(static_cast<std::size_t>(requests), {1, kv_len});
  c.problem = problem;
  return c;
}

/// Seconds of reference and bound, as the judge of MLA attention computes them.
double reference_seconds(const device::Kernel& kernel, const cases::Case& c, const cases::Outputs& outputs) {
  const cases::Inputs inputs = cases::materialise(c);
  const oracle::PrecisionProfile& profile = oracle::profile(kernel.precision());
  std::string why;
  const auto start = std::chrono::steady_clock::now();
  const auto launch = oracle::open_launch(c, inputs, outputs, profile, why);
  if (!launch) throw std::runtime_error(why);
  for (int group = 0; group < static_cast<int>(launch->problem.groups.size()); ++group) {
    if (launch->problem.groups[static_cast<std::size_t>(group)].q_len == 0) continue;
    const oracle::MlaRequest request = oracle::load_request(*launch, group);
    benchmark::DoNotOptimize(oracle::bound_mla(request.for_bound(launch->scales), profile));
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Outputs of the right sizes; what they hold does not matter to reference and bound.
cases::Outputs zeros(const cases::MlaDecode& p) {
  std::size_t rows = 0;
  for (const cases::Request& r : p.requests)
    rows += static_cast<std::size_t>(r.q_len) * static_cast<std::size_t>(p.heads);
  cases::Outputs outputs;
  outputs.tensors.push_back({"out", std::vector<std::byte>(rows * 512 * 2)});
  if (p.return_lse) outputs.tensors.push_back({"lse", std::vector<std::byte>(rows * 4)});
  return outputs;
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
      wave_instructions += e.wave_instructions;
      ++done;
    }
    state.PauseTiming();
    for (const cases::Case& c : batch)
      if (const auto* problem = std::get_if<cases::MlaDecode>(&c.problem))
        reference += reference_seconds(*kernel, c, zeros(*problem));
    state.ResumeTiming();
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
