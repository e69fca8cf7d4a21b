// SPDX-License-Identifier: MIT
//
// Materialising is on the hot path: every case of a campaign, every step of a shrink.
#include <benchmark/benchmark.h>

#include "cases/inputs.h"

namespace attest::cases {
namespace {

Case bench_case(Fill fill, bool fp8, Poison unused) {
  MlaDecode p;
  p.page_size = 16;
  p.requests = {{1, 100}, {1, 91}};
  if (fp8) p.q_format = p.kv_format = Format::fp8_e4m3fnuz;
  Case c;
  c.problem = p;
  c.seed = 1;
  c.data.fill = fill;
  c.memory.unused = unused;
  return c;
}

void materialise_small(benchmark::State& state) {
  const Case c = bench_case(static_cast<Fill>(state.range(0)), state.range(1) != 0, Poison::nan);
  for (auto _ : state) benchmark::DoNotOptimize(materialise(c));
  state.SetLabel(std::string(name(c.data.fill)) + (state.range(1) != 0 ? " fp8" : " bf16"));
  state.SetItemsProcessed(state.iterations() * (191 + 32) * 576);
}
BENCHMARK(materialise_small)
    ->ArgsProduct({benchmark::CreateDenseRange(0, static_cast<int>(Fill::exact), 1), {0, 1}});

void materialise_poison(benchmark::State& state) {
  const Case c = bench_case(Fill::normal, false, static_cast<Poison>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(materialise(c));
  state.SetLabel(name(c.memory.unused));
}
BENCHMARK(materialise_poison)->DenseRange(0, static_cast<int>(Poison::zero));

void text_forms(benchmark::State& state) {
  const Case c = bench_case(Fill::normal, false, Poison::nan);
  for (auto _ : state) benchmark::DoNotOptimize(parse_case(pretty_json(c)));
}
BENCHMARK(text_forms);

void id(benchmark::State& state) {
  const Case c = bench_case(Fill::normal, false, Poison::nan);
  for (auto _ : state) benchmark::DoNotOptimize(case_id(c));
}
BENCHMARK(id);

}  // namespace
}  // namespace attest::cases

BENCHMARK_MAIN();
