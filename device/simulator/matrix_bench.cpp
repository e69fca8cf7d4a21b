// SPDX-License-Identifier: MIT
//
// How fast the matrix unit is, as a share of what the machine could do.
//
// mfma_flop_per_s counts 2 m n k per instruction. fma_flop_per_s is the machine's fp32 fused multiply-add
// rate at the same level, measured right around each run so that both see the same clock; share_of_fma_peak
// is their ratio. Data: N(0, 1) rounded to the type; attention-like P (exp(-12 u)) times N(0, 1); exponents
// far apart; one NaN per tile. A chain of dependent instructions accumulates in place, as attention kernels
// do.
#include <benchmark/benchmark.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <ctime>
#include <string>
#include <vector>

#include "device/simulator/matrix/forms.h"
#include "device/simulator/matrix/matrix.h"

namespace sim = attest::device::sim;
using namespace attest::device::sim::matrix;
using sim::Op;
using sim::SimdLevel;

namespace {

/// Seconds of processor time of this thread: other load on the machine does not count, but both sides see its
/// clock.
double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

__attribute__((target("avx512f"))) void fma_loop_512(int rounds) {
  __m512 r0 = _mm512_set1_ps(1), r1 = r0, r2 = r0, r3 = r0, r4 = r0, r5 = r0, r6 = r0, r7 = r0, r8 = r0,
         r9 = r0;
  __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(1e-3f);
  benchmark::DoNotOptimize(a);
  benchmark::DoNotOptimize(b);
  for (int i = 0; i < rounds; ++i) {
    r0 = _mm512_fmadd_ps(r0, a, b), r1 = _mm512_fmadd_ps(r1, a, b), r2 = _mm512_fmadd_ps(r2, a, b);
    r3 = _mm512_fmadd_ps(r3, a, b), r4 = _mm512_fmadd_ps(r4, a, b), r5 = _mm512_fmadd_ps(r5, a, b);
    r6 = _mm512_fmadd_ps(r6, a, b), r7 = _mm512_fmadd_ps(r7, a, b), r8 = _mm512_fmadd_ps(r8, a, b);
    r9 = _mm512_fmadd_ps(r9, a, b);
  }
  r0 = _mm512_add_ps(
      _mm512_add_ps(_mm512_add_ps(r0, r1), _mm512_add_ps(r2, r3)),
      _mm512_add_ps(_mm512_add_ps(r4, r5), _mm512_add_ps(_mm512_add_ps(r6, r7), _mm512_add_ps(r8, r9))));
  float sink = _mm512_cvtss_f32(r0);
  benchmark::DoNotOptimize(sink);
}

__attribute__((target("avx2,fma"))) void fma_loop_256(int rounds) {
  __m256 r0 = _mm256_set1_ps(1), r1 = r0, r2 = r0, r3 = r0, r4 = r0, r5 = r0, r6 = r0, r7 = r0, r8 = r0,
         r9 = r0;
  __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(1e-3f);
  benchmark::DoNotOptimize(a);
  benchmark::DoNotOptimize(b);
  for (int i = 0; i < rounds; ++i) {
    r0 = _mm256_fmadd_ps(r0, a, b), r1 = _mm256_fmadd_ps(r1, a, b), r2 = _mm256_fmadd_ps(r2, a, b);
    r3 = _mm256_fmadd_ps(r3, a, b), r4 = _mm256_fmadd_ps(r4, a, b), r5 = _mm256_fmadd_ps(r5, a, b);
    r6 = _mm256_fmadd_ps(r6, a, b), r7 = _mm256_fmadd_ps(r7, a, b), r8 = _mm256_fmadd_ps(r8, a, b);
    r9 = _mm256_fmadd_ps(r9, a, b);
  }
  r0 = _mm256_add_ps(
      _mm256_add_ps(_mm256_add_ps(r0, r1), _mm256_add_ps(r2, r3)),
      _mm256_add_ps(_mm256_add_ps(r4, r5), _mm256_add_ps(_mm256_add_ps(r6, r7), _mm256_add_ps(r8, r9))));
  float sink = _mm256_cvtss_f32(r0);
  benchmark::DoNotOptimize(sink);
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0;
}
bool has_avx2() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}

/// fp32 multiply-adds of the whole machine's width, as flop per second: the peak every share is relative to.
double fma_rate() {
  constexpr int rounds = 20000;
  const int width = has_avx512() ? 16 : has_avx2() ? 8 : 0;
  if (width == 0) return 0;
  const double start = now();
  width == 16 ? fma_loop_512(rounds) : fma_loop_256(rounds);
  return 2.0 * width * 10 * rounds / (now() - start);
}

struct Random {
  std::uint64_t state = 1;
  double uniform() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state >> 11) * 0x1p-53;
  }
  double normal() {
    return std::sqrt(-2 * std::log(uniform() + 1e-300)) * std::cos(6.283185307179586 * uniform());
  }
};

/// Nearest number of the type (ties do not matter here).
std::uint32_t encode(Element type, double x) {
  if (type == Element::f32 || type == Element::xf32)
    return std::bit_cast<std::uint32_t>(static_cast<float>(x));
  if (type == Element::bf16) return (std::bit_cast<std::uint32_t>(static_cast<float>(x)) + 0x8000u) >> 16;
  const int mantissa = type == Element::f16 ? 10 : type == Element::fp8 ? 3 : 2;
  const int bits = type == Element::f16 ? 16 : 8, bias = type == Element::f16   ? 15
                                                         : type == Element::fp8 ? 8
                                                                                : 16;
  int e = 0;
  std::frexp(x, &e);
  e = std::max(e - 1, 1 - bias);
  long magnitude =
      std::lround(std::ldexp(std::fabs(x), mantissa - e)) + (static_cast<long>(e + bias - 1) << mantissa);
  magnitude = std::min(magnitude, (1L << (bits - 1)) - 1 - (type == Element::f16 ? (1L << 10) : 0));
  if (magnitude == 0) return 0;
  return static_cast<std::uint32_t>(magnitude) | static_cast<std::uint32_t>(x < 0) << (bits - 1);
}

enum class Data { normal, attention, scaled, spread, one_nan };

void mfma(benchmark::State& state, Op op, SimdLevel level, Data data, bool model) {
  const Form& form = *form_of(op);
  std::vector<std::uint32_t> storage(512 * 64 + 16);
  sim::Wave wave;
  wave.vgpr = storage.data() + (64 - reinterpret_cast<std::uintptr_t>(storage.data()) % 64) % 64 / 4;
  wave.vgpr_count = 512;
  wave.mode = 0xf0;
  Random random;
  constexpr int tiles = 36;  // a chain of 36 tiles is K = 576 of bf16
  const auto put = [&](std::uint32_t first, int registers, Element type, bool is_a) {
    for (int r = 0; r < registers; ++r)
      for (int lane = 0; lane < 64; ++lane) {
        std::uint32_t word = 0;
        for (int bit = 0; bit < 32; bit += bits_of(type)) {
          double x = random.normal();
          if (data == Data::attention && is_a) x = std::exp(-12 * random.uniform());
          if (data == Data::scaled) x *= 60;
          if (data == Data::spread) x = std::ldexp(x, static_cast<int>(120 * random.uniform()) - 60);
          word |= encode(type, x) << bit;
        }
        wave.v(first + static_cast<std::uint32_t>(r))[lane] = word;
      }
  };
  for (std::uint32_t t = 0; t < tiles; ++t) {
    put(4 * t, form.registers_a(), form.a, true);
    put(4 * t + 2, form.registers_b(), form.b, false);
    if (data == Data::one_nan) wave.v(4 * t)[11] |= bits_of(form.a) == 8 ? 0x80u : 0x7fffu;
    if (data == Data::one_nan && bits_of(form.a) == 8) wave.v(4 * t)[11] &= ~0x7fu;
  }
  std::vector<sim::Instruction> chain(tiles);
  for (std::uint16_t t = 0; t < tiles; ++t) {
    sim::Instruction& instruction = chain[t];
    instruction.op = op;
    instruction.dst = 256 + 256;
    instruction.src[0] = static_cast<std::uint16_t>(256 + 4 * t);
    instruction.src[1] = static_cast<std::uint16_t>(256 + 4 * t + 2);
    instruction.src[2] = t == 0 ? sim::operand::zero : instruction.dst;
  }
  const sim::Handler run =
      model ? model_handler(chain[1], default_sum_rule) : handler(chain[1], level, default_sum_rule);
  // Medians over pairs of a peak and a run.
  const double flop = 2.0 * form.m * form.n * form.k * form.blocks * tiles;
  std::vector<double> peaks, rates, shares;
  for (auto _ : state) {
    const double peak = fma_rate();
    const int repeats = model ? 1 : 20;
    const double start = now();
    for (int repeat = 0; repeat < repeats; ++repeat)
      for (const sim::Instruction& instruction : chain) run(wave, instruction);
    const double elapsed = now() - start;
    state.SetIterationTime(elapsed);
    peaks.push_back(peak);
    rates.push_back(flop * repeats / elapsed);
    shares.push_back(peak > 0 ? rates.back() / peak : 0);
  }
  const auto median = [](std::vector<double>& x) {
    std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
    return x[x.size() / 2];
  };
  state.counters["mfma_flop_per_s"] = median(rates);
  state.counters["fma_flop_per_s"] = median(peaks);
  state.counters["share_of_fma_peak"] = median(shares);
  state.counters["ns_per_instruction"] = flop / tiles / median(rates) * 1e9;
}

void add(const char* level_name, SimdLevel level) {
  struct Entry {
    const char* name;
    Op op;
    Data data;
  };
  const Entry entries[] = {
      {"bf16_16x16x16/normal", Op::v_mfma_f32_16x16x16_bf16, Data::normal},
      {"bf16_16x16x16/attention", Op::v_mfma_f32_16x16x16_bf16, Data::attention},
      {"bf16_16x16x16/spread", Op::v_mfma_f32_16x16x16_bf16, Data::spread},
      {"bf16_16x16x16/one_nan", Op::v_mfma_f32_16x16x16_bf16, Data::one_nan},
      {"bf16_32x32x8/normal", Op::v_mfma_f32_32x32x8_bf16, Data::normal},
      {"f16_16x16x16/normal", Op::v_mfma_f32_16x16x16_f16, Data::normal},
      {"fp8_16x16x32/normal", Op::v_mfma_f32_16x16x32_fp8_fp8, Data::normal},
      {"fp8_16x16x32/scaled", Op::v_mfma_f32_16x16x32_fp8_fp8, Data::scaled},
      {"fp8_16x16x32/attention", Op::v_mfma_f32_16x16x32_fp8_fp8, Data::attention},
      {"bf8_16x16x32/normal", Op::v_mfma_f32_16x16x32_bf8_bf8, Data::normal},
      {"fp8_32x32x16/normal", Op::v_mfma_f32_32x32x16_fp8_fp8, Data::normal},
      {"f32_16x16x4/normal", Op::v_mfma_f32_16x16x4_f32, Data::normal},
      {"xf32_16x16x8/normal", Op::v_mfma_f32_16x16x8_xf32, Data::normal},
  };
  for (const Entry& e : entries)
    benchmark::RegisterBenchmark((std::string(e.name) + "/" + level_name).c_str(), mfma, e.op, level, e.data,
                                 false)
        ->UseManualTime();
}

}  // namespace

int main(int argc, char** argv) {
  add("baseline", SimdLevel::baseline);
  if (has_avx2()) add("avx2", SimdLevel::avx2);
  if (has_avx512()) add("avx512", SimdLevel::avx512);
  benchmark::RegisterBenchmark("bf16_16x16x16/normal/model", mfma, Op::v_mfma_f32_16x16x16_bf16,
                               SimdLevel::baseline, Data::normal, true)
      ->UseManualTime();
  benchmark::RegisterBenchmark("fp8_16x16x32/normal/model", mfma, Op::v_mfma_f32_16x16x32_fp8_fp8,
                               SimdLevel::baseline, Data::normal, true)
      ->UseManualTime();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
