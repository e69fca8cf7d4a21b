// SPDX-License-Identifier: MIT
//
// What judging costs, by shape and by part: the reference, the bound, the comparison, and all of judge().
// Shapes are heads, q_len, kv_len; bf16 cache, normal fill, one request.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <cstring>

#include "oracle/judge.h"
#include "oracle/mla_bound.h"
#include "oracle/mla_compare.h"
#include "oracle/mla_launch.h"
#include "reference/formats.h"

namespace {

using namespace attest;
using namespace attest::oracle;

cases::Case shape(const benchmark::State& state) {
  cases::Case c;
  c.seed = 1;
  cases::MlaDecode p;
  p.heads = static_cast<int>(state.range(0));
  p.page_size = 16;
  p.requests = {{static_cast<int>(state.range(1)), static_cast<int>(state.range(2))}};
  c.problem = p;
  return c;
}

/// What a perfect kernel returns.
cases::Outputs perfect(const cases::Case& c, const cases::Inputs& in) {
  const auto& p = std::get<cases::MlaDecode>(c.problem);
  const auto rows = static_cast<std::size_t>(p.heads * p.requests[0].q_len);
  cases::Outputs outputs;
  outputs.tensors = {{"out", std::vector<std::byte>(rows * 1024)}, {"lse", std::vector<std::byte>(rows * 4)}};
  std::string why;
  const auto launch = open_launch(c, in, outputs, profile("bf16"), why);
  const MlaRequest request = load_request(*launch, 0);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t d = 0; d < 512; ++d) {
      const auto code = static_cast<std::uint16_t>(
          reference::encode(reference::Format::bf16,
                            request.attention.out(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(d)),
                            reference::Overflow::to_special));
      std::memcpy(outputs.tensors[0].bytes.data() + (r * 512 + d) * 2, &code, 2);
    }
    const auto lse = static_cast<float>(request.attention.lse[static_cast<Eigen::Index>(r)]);
    std::memcpy(outputs.tensors[1].bytes.data() + r * 4, &lse, 4);
  }
  return outputs;
}

void materialise(benchmark::State& state) {
  const cases::Case c = shape(state);
  for (auto _ : state) benchmark::DoNotOptimize(cases::materialise(c));
}

void reference_part(benchmark::State& state) {
  const cases::Case c = shape(state);
  const cases::Inputs in = cases::materialise(c);
  const cases::Outputs outputs = perfect(c, in);
  std::string why;
  const auto launch = open_launch(c, in, outputs, profile("bf16"), why);
  for (auto _ : state) benchmark::DoNotOptimize(load_request(*launch, 0));
}

void bound_part(benchmark::State& state) {
  const cases::Case c = shape(state);
  const cases::Inputs in = cases::materialise(c);
  const cases::Outputs outputs = perfect(c, in);
  std::string why;
  const auto launch = open_launch(c, in, outputs, profile("bf16"), why);
  const MlaRequest request = load_request(*launch, 0);
  for (auto _ : state)
    benchmark::DoNotOptimize(bound_mla(request.for_bound(launch->scales), profile("bf16")));
}

void compare_part(benchmark::State& state) {
  const cases::Case c = shape(state);
  const cases::Inputs in = cases::materialise(c);
  const cases::Outputs outputs = perfect(c, in);
  std::string why;
  const auto launch = open_launch(c, in, outputs, profile("bf16"), why);
  const MlaRequest request = load_request(*launch, 0);
  const MlaBound bound = bound_mla(request.for_bound(launch->scales), profile("bf16"));
  Rules rules;
  rules.grid = launch->grid;
  for (auto _ : state)
    for (Eigen::Index r = 0; r < request.rows(); ++r)
      benchmark::DoNotOptimize(
          compare_row({&launch->out(r, 0), 512}, &launch->lse[r], request.attention, bound, r, rules));
}

void judge_all(benchmark::State& state) {
  const cases::Case c = shape(state);
  const cases::Inputs in = cases::materialise(c);
  const cases::Outputs outputs = perfect(c, in);
  for (auto _ : state) {
    const Verdict verdict = judge(c, in, outputs, profile("bf16"));
    if (verdict.kind != VerdictKind::pass) state.SkipWithError("a perfect result was rejected");
  }
}

void shapes(benchmark::internal::Benchmark* b) {
  b->Args({16, 1, 37})->Args({16, 3, 37})->Args({128, 1, 100})->Args({16, 1, 1024})->Args({16, 4, 1024});
  b->Args({16, 1, 4096})->Args({128, 4, 4096})->Unit(benchmark::kMicrosecond);
}

BENCHMARK(materialise)->Apply(shapes);
BENCHMARK(reference_part)->Apply(shapes);
BENCHMARK(bound_part)->Apply(shapes);
BENCHMARK(compare_part)->Apply(shapes);
BENCHMARK(judge_all)->Apply(shapes);

}  // namespace

int main(int argc, char** argv) {
  // As in a campaign that has run for a while: a heap that keeps what it has. Otherwise the smallest shapes
  // measure how fast the kernel hands out pages.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
