// SPDX-License-Identifier: MIT
//
// How fast one core executes vector instructions, next to what bounds it: the host's fp32 multiply-add rate,
// its L1 bandwidth for 64-lane operands, and the price of a mispredicted branch (an instruction is an
// indirect call).
//
//   vector_bench                     everything
//   vector_bench --benchmark_filter=valu
//
// Counters: wave_inst_per_s (64-lane instructions), flop_per_s, bytes_per_s, ns_per_miss. ATTEST_SIMD has no
// effect: each level the host has is measured. A full set of lanes is active unless the name says otherwise.
#include <benchmark/benchmark.h>
#include <immintrin.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/simulator/exec/handlers.h"

using namespace attest::device::sim;

namespace {

constexpr std::uint32_t registers = 64;
constexpr std::uint32_t clang_mode = 0x3f0, aiter_mode = 0x0c0;

struct Registers {
  Registers() : data(static_cast<std::uint32_t*>(std::aligned_alloc(64, registers * 256)), &std::free) {
    for (std::uint32_t k = 0; k < registers * 64; ++k) data.get()[k] = 0x3f800000 + k * 977 % 0x100000;
  }
  std::unique_ptr<std::uint32_t, decltype(&std::free)> data;
};

struct Step {
  Op op;
  std::vector<unsigned> sources;  // VGPR n: 256 + n, else scalar or constant
  unsigned dst;
};
constexpr unsigned v(unsigned n) {
  return 256 + n;
}

/// The vector part of a loop like those clang makes: address arithmetic, a comparison, selects, a little f32.
const std::vector<Step> integer_mix = {
    {Op::v_mov_b32, {v(1)}, 2},
    {Op::v_add_u32, {v(2), v(3)}, 4},
    {Op::v_lshlrev_b32, {130, v(4)}, 5},
    {Op::v_and_b32, {255, v(5)}, 6},
    {Op::v_lshl_add_u32, {v(6), 130, v(7)}, 8},
    {Op::v_ashrrev_i32, {159, v(8)}, 9},
    {Op::v_or_b32, {v(9), v(10)}, 11},
    {Op::v_add_u32, {8, v(11)}, 12},
    {Op::v_sub_u32, {v(12), v(13)}, 14},
    {Op::v_cmp_gt_i32, {9, v(14)}, 0},
    {Op::v_mul_lo_u32, {v(14), 10}, 15},
    {Op::v_xor_b32, {v(15), v(16)}, 17},
    {Op::v_lshrrev_b32, {136, v(17)}, 18},
    {Op::v_bfe_u32, {v(18), 132, 136}, 19},
    {Op::v_add3_u32, {v(19), v(20), v(21)}, 22},
    {Op::v_mov_b32, {128}, 23},
};
/// An inner loop on f32: multiply-adds, scaling, maximum, reciprocal-free softmax arithmetic.
const std::vector<Step> float_mix = {
    {Op::v_mul_f32, {v(1), v(2)}, 30},
    {Op::v_fma_f32, {v(3), v(4), v(30)}, 31},
    {Op::v_fma_f32, {v(5), v(6), v(31)}, 32},
    {Op::v_add_f32, {v(32), v(7)}, 33},
    {Op::v_mul_f32, {8, v(33)}, 34},
    {Op::v_max_f32, {v(34), v(8)}, 35},
    {Op::v_sub_f32, {v(34), v(35)}, 36},
    {Op::v_fma_f32, {v(9), v(10), v(36)}, 37},
    {Op::v_mul_f32, {v(37), v(11)}, 38},
    {Op::v_add_f32, {v(38), v(12)}, 39},
    {Op::v_pk_mul_f32, {v(20), v(22)}, 40},
    {Op::v_pk_mul_f32, {v(24), v(26)}, 42},
    {Op::v_pk_fma_f32, {v(20), v(22), v(24)}, 44},
    {Op::v_mov_b32, {v(39)}, 46},
};
const std::vector<Step> wide_mix = {
    {Op::v_lshl_add_u64, {v(2), 130, v(4)}, 6}, {Op::v_mad_u64_u32, {v(8), v(9), v(10)}, 12},
    {Op::v_lshlrev_b64, {131, v(14)}, 16},      {Op::v_mul_f64, {v(18), v(20)}, 22},
    {Op::v_fma_f64, {v(18), v(20), v(22)}, 24}, {Op::v_add_f64, {v(24), v(26)}, 28},
};
const std::vector<Step> special_mix = {
    {Op::v_exp_f32, {v(1)}, 2},
    {Op::v_log_f32, {v(3)}, 4},
    {Op::v_rcp_f32, {v(5)}, 6},
    {Op::v_rsq_f32, {v(7)}, 8},
};

Instruction instruction_of(const Step& step) {
  Instruction in;
  in.op = step.op;
  const OpInfo& shape = info(step.op);
  const bool packed = shape.src[0] == Slot::v2f32;
  in.encoding = packed ? Encoding::vop3p : Encoding::vop3;
  if (packed) in.op_sel_hi = 7;
  unsigned k = 0;
  for (const unsigned s : step.sources) in.src[k++] = static_cast<std::uint16_t>(s);
  in.literal = 0x00ffffff;
  in.dst = static_cast<std::uint16_t>(shape.dst == Slot::mask ? operand::vcc : v(step.dst));
  if (shape.sdst == Slot::mask) in.sdst = operand::vcc;
  return in;
}

void run_mix(benchmark::State& state, const std::vector<Step>& mix, SimdLevel level, std::uint32_t mode_bits,
             std::uint64_t exec) {
  struct Bound {
    Handler handler;
    Instruction instruction;
  };
  std::vector<Bound> program;
  while (program.size() < 240)
    for (const Step& step : mix) {
      const Instruction in = instruction_of(step);
      program.push_back({vector_handler(in, level), in});
    }
  const Registers file;
  Wave wave;
  wave.vgpr = file.data.get();
  wave.vgpr_count = registers;
  wave.mode = mode_bits;
  wave.set_s64(126, exec);
  for (auto _ : state) {
    for (const Bound& b : program) b.handler(wave, b.instruction);
    benchmark::ClobberMemory();
  }
  state.counters["wave_inst_per_s"] =
      benchmark::Counter(static_cast<double>(program.size()), benchmark::Counter::kIsIterationInvariantRate);
}

// Ceilings.

__attribute__((target("avx512f"))) void fma_avx512(float* out, std::uint64_t rounds) {
  __m512 sum[12];
  for (int k = 0; k < 12; ++k) sum[k] = _mm512_set1_ps(static_cast<float>(k));
  const __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
  for (std::uint64_t r = 0; r < rounds; ++r)
    for (int k = 0; k < 12; ++k) sum[k] = _mm512_fmadd_ps(sum[k], x, y);
  for (int k = 0; k < 12; ++k) _mm512_storeu_ps(out + 16 * k, sum[k]);
}
__attribute__((target("avx2,fma"))) void fma_avx2(float* out, std::uint64_t rounds) {
  __m256 sum[12];
  for (int k = 0; k < 12; ++k) sum[k] = _mm256_set1_ps(static_cast<float>(k));
  const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
  for (std::uint64_t r = 0; r < rounds; ++r)
    for (int k = 0; k < 12; ++k) sum[k] = _mm256_fmadd_ps(sum[k], x, y);
  for (int k = 0; k < 12; ++k) _mm256_storeu_ps(out + 16 * k, sum[k]);
}
void fma_peak(benchmark::State& state) {
  constexpr std::uint64_t rounds = 10000;
  alignas(64) float out[192];
  const bool wide = host_simd_level() == SimdLevel::avx512;
  if (host_simd_level() == SimdLevel::baseline) return state.SkipWithError("this machine has no FMA");
  for (auto _ : state) {
    wide ? fma_avx512(out, rounds) : fma_avx2(out, rounds);
    benchmark::DoNotOptimize(out);
  }
  state.counters["flop_per_s"] = benchmark::Counter(static_cast<double>(rounds * 12 * 2 * (wide ? 16 : 8)),
                                                    benchmark::Counter::kIsIterationInvariantRate);
}

__attribute__((target("avx512f"))) void add_rows_avx512(std::uint32_t* file) {
  for (std::uint32_t row = 0; row + 2 < registers; ++row)
    for (std::uint32_t at = 0; at < 64; at += 16) {
      const __m512i a = _mm512_load_si512(file + row * 64 + at),
                    b = _mm512_load_si512(file + (row + 1) * 64 + at);
      _mm512_store_si512(file + (row + 2) * 64 + at, _mm512_add_epi32(a, b));
    }
}
__attribute__((target("avx2"))) void add_rows_avx2(std::uint32_t* file) {
  for (std::uint32_t row = 0; row + 2 < registers; ++row)
    for (std::uint32_t at = 0; at < 64; at += 8) {
      const auto load = [&](std::uint32_t r) { return reinterpret_cast<__m256i*>(file + r * 64 + at); };
      _mm256_store_si256(load(row + 2),
                         _mm256_add_epi32(_mm256_load_si256(load(row)), _mm256_load_si256(load(row + 1))));
    }
}
/// Two rows read, one written, in registers that fit the L1 cache: the least an instruction with two sources
/// does.
void l1_operands(benchmark::State& state) {
  const Registers file;
  const bool wide = host_simd_level() == SimdLevel::avx512;
  if (host_simd_level() == SimdLevel::baseline)
    return state.SkipWithError("measured with AVX2 or AVX-512 only");
  for (auto _ : state) {
    wide ? add_rows_avx512(file.data.get()) : add_rows_avx2(file.data.get());
    benchmark::ClobberMemory();
  }
  state.counters["bytes_per_s"] =
      benchmark::Counter((registers - 2) * 3 * 256.0, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["wave_inst_per_s"] =
      benchmark::Counter(registers - 2.0, benchmark::Counter::kIsIterationInvariantRate);
}

__attribute__((noinline)) std::uint32_t add_one(std::uint32_t x) {
  return x + 1;
}
__attribute__((noinline)) std::uint32_t add_two(std::uint32_t x) {
  return x + 2;
}
/// Calls through a pointer chosen by a table of random bits against a table of alternating ones.
void branch_miss(benchmark::State& state) {
  const bool predictable = state.range(0) == 0;
  std::vector<std::uint32_t (*)(std::uint32_t)> calls(1 << 16);
  std::uint64_t random = 88172645463325252ull;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    calls[k] = (predictable ? k & 1 : random & 1) != 0 ? add_one : add_two;
  }
  std::uint32_t sum = 0;
  for (auto _ : state) {
    for (const auto call : calls) sum = call(sum);
    benchmark::DoNotOptimize(sum);
  }
  state.counters["calls_per_s"] =
      benchmark::Counter(static_cast<double>(calls.size()), benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("ceiling/fp32_fma", fma_peak);
  benchmark::RegisterBenchmark("ceiling/l1_two_operands_one_result", l1_operands);
  benchmark::RegisterBenchmark("ceiling/indirect_call_predicted", branch_miss)->Arg(0);
  benchmark::RegisterBenchmark("ceiling/indirect_call_random", branch_miss)->Arg(1);

  struct Named {
    const char* name;
    const std::vector<Step>* mix;
  };
  const Named mixes[] = {{"integer", &integer_mix},
                         {"float", &float_mix},
                         {"wide", &wide_mix},
                         {"transcendental", &special_mix}};
  for (const Named& m : mixes)
    for (const auto& [level, level_name] :
         {std::pair{SimdLevel::avx512, "avx512"}, std::pair{SimdLevel::avx2, "avx2"},
          std::pair{SimdLevel::baseline, "baseline"}}) {
      if (level > host_simd_level()) continue;
      const std::string name = std::string("valu/") + m.name + "/" + level_name;
      benchmark::RegisterBenchmark(name.c_str(), [&m, chosen = level](benchmark::State& s) {
        run_mix(s, *m.mix, chosen, clang_mode, ~0ull);
      });
    }
  benchmark::RegisterBenchmark("valu/float/flushing_denormals", [](benchmark::State& s) {
    run_mix(s, float_mix, host_simd_level(), aiter_mode, ~0ull);
  });
  benchmark::RegisterBenchmark("valu/integer/half_of_the_lanes", [](benchmark::State& s) {
    run_mix(s, integer_mix, host_simd_level(), clang_mode, 0xffff0000ffff0000ull);
  });

  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
