// SPDX-License-Identifier: MIT
//
// How fast the reference is, and against what the machine could do.
//
//   native_gemm              Eigen compiled for this very machine (FMA, widest vectors), 512^3: the yardstick
//   product/<simd>           add_product at the shapes of the two products in attend
//   attend/<heads>/<q_len>   the whole reference of one request at kv_len 4096; share_of_native = its GFLOP/s
//                            over the yardstick, measured in the same run. The aim is above one third.
//   decode/<format>          a [4096, 576] cache, in decoded values
//   gather/<page_size>       the same through a page list
//
// FLOPs count the two products, 2 * rows * kv_len * (576 + 512); exp and transposes are overhead.
//
// main() tells malloc to keep freed memory, as a program that judges case after case should: a result of 512
// rows by 4096 keys is 32 MiB, and having the kernel map and clear it anew each time can cost more than both
// products.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <string>
#include <vector>

#include "reference/attention.h"
#include "reference/exponential.h"
#include "reference/matrix_product.h"
#include "reference/native_gemm.h"
#include "reference/paged_cache.h"

namespace {

using namespace attest::reference;

constexpr int kv_len = 4096;

Matrix numbers(Eigen::Index rows, Eigen::Index columns) {
  Matrix m(rows, columns);
  for (Eigen::Index i = 0; i < m.size(); ++i) m.data()[i] = static_cast<double>((i * 7919) % 513 - 256) / 256;
  return m;
}

/// GFLOP/s of the yardstick: the best of many runs, for interference only ever slows.
double native_gflops() {
  static const double best = [] {
    double rate = 0;
    for (int i = 0; i < 50; ++i) rate = std::max(rate, measure_native_gemm_gflops(512));
    return rate;
  }();
  return best;
}

/// Times a benchmark loop by CPU time and states its rate, absolute and as a share of the yardstick.
class Rate {
 public:
  Rate(benchmark::State& state, double flops_per_iteration)
      : state_(state), flops_(flops_per_iteration), start_(std::clock()) {}
  ~Rate() {
    const double seconds = static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC;
    const double gflops = flops_ * static_cast<double>(state_.iterations()) / seconds * 1e-9;
    state_.counters["GFLOP/s"] = gflops;
    state_.counters["share_of_native"] = gflops / native_gflops();
  }
  Rate(const Rate&) = delete;
  Rate& operator=(const Rate&) = delete;

 private:
  benchmark::State& state_;
  double flops_;
  std::clock_t start_;
};

void native_gemm(benchmark::State& state) {
  double rate = 0;
  for ([[maybe_unused]] auto _ : state) rate = std::max(rate, measure_native_gemm_gflops(512));
  state.counters["GFLOP/s"] = rate;
}
BENCHMARK(native_gemm)->Unit(benchmark::kMillisecond);

void product(benchmark::State& state, Simd simd) {
  const Eigen::Index rows = state.range(0), depth = state.range(1), columns = state.range(2);
  const Matrix a = numbers(rows, depth), b = numbers(depth, columns);
  Matrix c = Matrix::Zero(rows, columns);
  const Rate rate(state, 2.0 * static_cast<double>(rows * depth * columns));
  for ([[maybe_unused]] auto _ : state) {
    add_product(a, b, c, simd);
    benchmark::ClobberMemory();
  }
}

void product_f32(benchmark::State& state) {
  const MatrixF a = numbers(state.range(0), state.range(1)).cast<float>(),
                b = numbers(state.range(1), state.range(2)).cast<float>();
  MatrixF c = MatrixF::Zero(state.range(0), state.range(2));
  const Rate rate(state, 2.0 * static_cast<double>(state.range(0) * state.range(1) * state.range(2)));
  for ([[maybe_unused]] auto _ : state) {
    add_product(a, b, c);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(product_f32)
    ->ArgNames({"rows", "depth", "columns"})
    ->Args({128, 256, 512})
    ->Unit(benchmark::kMicrosecond);

void attend_request(benchmark::State& state) {
  const int heads = static_cast<int>(state.range(0)), q_len = static_cast<int>(state.range(1));
  const Matrix q = numbers(Eigen::Index{heads} * q_len, row_width), k = numbers(kv_len, row_width);
  const Rate rate(state, 2.0 * heads * q_len * kv_len * (row_width + kv_lora_rank));
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(attend(q, k, {0.07, 1, 1}, q_len, heads, true));
}
BENCHMARK(attend_request)
    ->Name("attend")
    ->ArgNames({"heads", "q_len"})
    ->ArgsProduct({{1, 16, 128}, {1, 4}})
    ->Unit(benchmark::kMillisecond);

void exponentials(benchmark::State& state, Simd simd) {
  std::vector<double> values(kv_len), scores(kv_len);
  for (int i = 0; i < kv_len; ++i) scores[i] = -0.01 * i;
  for ([[maybe_unused]] auto _ : state) {
    values = scores;
    exp_shifted(values, 0, simd);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kv_len);
}

void std_exp(benchmark::State& state) {
  std::vector<double> values(kv_len), scores(kv_len);
  for (int i = 0; i < kv_len; ++i) scores[i] = -0.01 * i;
  for ([[maybe_unused]] auto _ : state) {
    for (int i = 0; i < kv_len; ++i) values[i] = std::exp(scores[i]);
    benchmark::DoNotOptimize(scores.data());
    benchmark::DoNotOptimize(values.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kv_len);
}
BENCHMARK(std_exp)->Name("exp/std");

void decode_cache(benchmark::State& state, Format format) {
  const std::vector<std::byte> bytes(static_cast<std::size_t>(kv_len * row_width * bytes_per_element(format)),
                                     std::byte{0x3c});
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(decode_matrix(format, bytes, kv_len, row_width));
  state.SetItemsProcessed(state.iterations() * kv_len * row_width);
}

void encode_values(benchmark::State& state, Format format) {
  const Matrix values = numbers(256, row_width);
  for ([[maybe_unused]] auto _ : state)
    for (Eigen::Index i = 0; i < values.size(); ++i)
      benchmark::DoNotOptimize(encode(format, values.data()[i], Overflow::saturate));
  state.SetItemsProcessed(state.iterations() * values.size());
}

void gather_cache(benchmark::State& state) {
  const int page_size = static_cast<int>(state.range(0));
  const std::vector<std::byte> bytes(std::size_t{kv_len} * row_width * 2, std::byte{0x3c});
  PagedCache cache;
  cache.page_size = page_size;
  cache.page_stride_bytes = static_cast<std::uint64_t>(page_size) * row_width * 2;
  cache.bytes = [&bytes](std::uint64_t offset, std::size_t size) {
    return std::span(bytes).subspan(offset, size);
  };
  std::vector<std::int32_t> pages(static_cast<std::size_t>(kv_len / page_size));
  for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<std::int32_t>(i * 37 % pages.size());
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(gather_rows(cache, pages, kv_len));
  state.SetItemsProcessed(state.iterations() * kv_len * row_width);
}
BENCHMARK(gather_cache)->Name("gather")->ArgName("page_size")->Arg(1)->Arg(16)->Arg(64);

const char* simd_name(Simd simd) {
  return simd == Simd::avx512 ? "avx512" : simd == Simd::avx2 ? "avx2" : "sse2";
}

void register_by_simd_and_format() {
  for (const Simd simd : supported_simd()) {
    benchmark::RegisterBenchmark((std::string("product/") + simd_name(simd)).c_str(), product, simd)
        ->ArgNames({"rows", "depth", "columns"})
        ->Args({64, 576, 16})
        ->Args({64, 576, 128})
        ->Args({16, kv_len, 512})
        ->Args({128, kv_len, 512})
        ->Args({512, 512, 512})
        ->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark((std::string("exp/") + simd_name(simd)).c_str(), exponentials, simd);
  }
  for (const Format format : {Format::bf16, Format::f16, Format::f32, Format::fp8_e4m3fnuz, Format::fp8_e5m2})
    benchmark::RegisterBenchmark((std::string("decode/") + name(format)).c_str(), decode_cache, format);
  for (const Format format : {Format::bf16, Format::fp8_e4m3fnuz})
    benchmark::RegisterBenchmark((std::string("encode/") + name(format)).c_str(), encode_values, format);
}

}  // namespace

int main(int argc, char** argv) {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  register_by_simd_and_format();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("native GEMM fp64 GFLOP/s", std::to_string(native_gflops()));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
