// SPDX-License-Identifier: MIT
//
// How fast the simulator executes: wave instructions per second by kind, and what a launch costs.
//
//   simulator_bench --benchmark_filter=valu
//
// Arguments: /waves per workgroup/; a single workgroup, so a single thread, except where threads are named.
#include <benchmark/benchmark.h>

#include <fstream>
#include <iterator>
#include <span>
#include <vector>

#include "device/simulator/core/dispatch.h"
#include "device/simulator/core/module.h"

namespace {

using namespace attest::device::sim;

std::vector<std::byte> kernels() {
  std::ifstream in(ATTEST_BENCH_KERNELS, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  const auto view = std::as_bytes(std::span(bytes));
  return {view.begin(), view.end()};
}

struct Machine {
  Memory memory{0};
  LoadedModule module{memory, kernels()};
  Dispatcher dispatcher;
  std::uint64_t buffer = memory.allocate(64 << 20, "buffer").value();

  std::uint64_t run(const char* name, std::uint32_t blocks, std::uint32_t waves, std::uint64_t trips,
                    std::uint32_t threads = 1) {
    const std::uint64_t block[2] = {buffer, trips};
    Launch launch;
    launch.blocks[0] = blocks;
    launch.threads[0] = waves * 64;
    launch.kernarg = std::as_bytes(std::span(block));
    Settings settings;
    settings.threads = threads;
    return dispatcher.run(*module.kernel(name), launch, memory, settings).instructions;
  }
};

void execute(benchmark::State& state, const char* name) {
  Machine machine;
  const auto waves = static_cast<std::uint32_t>(state.range(0));
  std::uint64_t instructions = 0;
  for (auto _ : state) instructions += machine.run(name, 1, waves, 2000);
  state.counters["wave_inst_per_s"] =
      benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
}

void launch(benchmark::State& state, const char* name) {
  Machine machine;
  const auto blocks = static_cast<std::uint32_t>(state.range(0));
  machine.run(name, blocks, 4, 1);
  for (auto _ : state) machine.run(name, blocks, 4, 1);
}

void scale(benchmark::State& state) {
  Machine machine;
  std::uint64_t instructions = 0;
  for (auto _ : state) {
    instructions += machine.run("valu", 64, 4, 200, static_cast<std::uint32_t>(state.range(0)));
  }
  state.counters["wave_inst_per_s"] =
      benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(execute, valu, "valu")->Arg(1)->Arg(4);
BENCHMARK_CAPTURE(execute, valu_attention, "valu_attention")->Arg(1)->Arg(4);
BENCHMARK_CAPTURE(execute, salu, "salu")->Arg(1)->Arg(4);
BENCHMARK_CAPTURE(execute, lds_b128, "lds_b128")->Arg(4);
BENCHMARK_CAPTURE(execute, global_dword, "global_dword")->Arg(4);
BENCHMARK_CAPTURE(execute, global_dwordx4, "global_dwordx4")->Arg(4);
BENCHMARK_CAPTURE(execute, gather, "gather")->Arg(4);
BENCHMARK_CAPTURE(launch, empty, "empty")->Arg(1)->Arg(64)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(launch, empty_large, "empty_large")->Arg(1)->Arg(64)->Unit(benchmark::kMicrosecond);
BENCHMARK(scale)->Arg(1)->Arg(2)->UseRealTime()->MeasureProcessCPUTime();

}  // namespace

BENCHMARK_MAIN();
