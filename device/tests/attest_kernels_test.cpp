// SPDX-License-Identifier: MIT
//
// The attest contract end to end: cases materialised, run on the simulator, and compared with a loop that
// does nothing but the definition. Loose on purpose: the oracle judges closely, this only has to tell right
// from wrong.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"
#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/kernels.h"
#include "device/hip/buffer_set.h"
#include "device/hip/installation.h"
#include "device/kernel.h"

using namespace attest;
using namespace attest::device;
using cases::Format;
using Catch::Matchers::Contains;

namespace {

float bf16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

float fp8(std::uint8_t bits) {
  if (bits == 0x80) return std::numeric_limits<float>::quiet_NaN();
  const int exponent = bits >> 3 & 15;
  const int mantissa = bits & 7;
  const double magnitude =
      exponent != 0 ? std::ldexp(1.0 + mantissa / 8.0, exponent - 8) : std::ldexp(mantissa / 8.0, -7);
  return static_cast<float>(bits >> 7 != 0 ? -magnitude : magnitude);
}

std::vector<double> decoded(Format format, std::span<const std::byte> bytes) {
  std::vector<double> values;
  if (format == Format::bf16) {
    for (std::size_t at = 0; at < bytes.size(); at += 2) {
      std::uint16_t bits;
      std::memcpy(&bits, &bytes[at], sizeof bits);
      values.push_back(bf16(bits));
    }
  } else {
    for (const std::byte b : bytes) values.push_back(fp8(std::to_integer<std::uint8_t>(b)));
  }
  return values;
}

struct Expected {
  std::vector<std::vector<double>> out;  ///< [rows][512]
  std::vector<double> lse;               ///< [rows]
};

Expected by_definition(const cases::MlaDecode& p, const cases::MlaDecodeInputs& in) {
  Expected expected;
  const std::size_t q_bytes = p.q_format == Format::bf16 ? 2 : 1;
  const std::size_t kv_bytes = p.kv_format == Format::bf16 ? 2 : 1;
  for (std::size_t b = 0; b < p.requests.size(); ++b) {
    const cases::Request& request = p.requests[b];
    std::vector<std::vector<double>> kv;
    for (int t = 0; t < request.kv_len; ++t) {
      const std::int32_t page =
          in.kv_page_indices[static_cast<std::size_t>(in.kv_indptr[b] + t / p.page_size)];
      const std::uint64_t offset = static_cast<std::uint64_t>(page) * in.page_stride_bytes +
                                   static_cast<std::uint64_t>(t % p.page_size) * 576 * kv_bytes;
      kv.push_back(decoded(p.kv_format, in.kv_pool.at(offset, 576 * kv_bytes)));
    }
    for (int row = 0; row < request.q_len * p.heads; ++row) {
      const std::size_t q_row = static_cast<std::size_t>(in.qo_indptr[b] * p.heads + row);
      const auto q = decoded(p.q_format, std::span(in.q).subspan(q_row * 576 * q_bytes, 576 * q_bytes));
      const int position = row / p.heads;
      const int visible = p.causal ? request.kv_len - request.q_len + position + 1 : request.kv_len;
      std::vector<double> score;
      for (int t = 0; t < visible; ++t) {
        double dot = 0;
        for (std::size_t k = 0; k < 576; ++k) dot += q[k] * kv[static_cast<std::size_t>(t)][k];
        score.push_back(dot * p.sm_scale * p.q_scale * p.kv_scale);
      }
      const double max = score.empty() ? 0 : *std::max_element(score.begin(), score.end());
      double sum = 0;
      std::vector<double> out(512, 0.0);
      for (std::size_t t = 0; t < score.size(); ++t) {
        const double weight = std::exp(score[t] - max);
        sum += weight;
        for (std::size_t c = 0; c < 512; ++c) out[c] += weight * kv[t][c] * p.kv_scale;
      }
      for (double& value : out) value = sum == 0 ? 0 : value / sum;
      expected.out.push_back(std::move(out));
      expected.lse.push_back(max + std::log(sum));  // -inf when empty
    }
  }
  return expected;
}

/// The worst deviation of a row, relative to the row's largest value; NaN counts as infinite.
double deviation(const cases::Outputs& outputs, const Expected& expected) {
  const cases::Outputs::Tensor* out = outputs.find("out");
  REQUIRE(out != nullptr);
  const std::vector<double> got = decoded(Format::bf16, out->bytes);
  REQUIRE(got.size() == expected.out.size() * 512);
  double worst = 0;
  for (std::size_t row = 0; row < expected.out.size(); ++row) {
    double largest = 1e-30;
    for (const double value : expected.out[row]) largest = std::max(largest, std::abs(value));
    for (std::size_t c = 0; c < 512; ++c) {
      const double difference = std::abs(got[row * 512 + c] - expected.out[row][c]) / largest;
      worst = std::max(worst, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
    }
  }
  if (const cases::Outputs::Tensor* lse = outputs.find("lse")) {
    for (std::size_t row = 0; row < expected.lse.size(); ++row) {
      float value;
      std::memcpy(&value, &lse->bytes[4 * row], sizeof value);
      const double difference = double{value} == expected.lse[row] ? 0 : std::abs(value - expected.lse[row]);
      worst = std::max(worst, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
    }
  }
  return worst;
}

struct Run {
  Outcome outcome;
  double deviation = std::numeric_limits<double>::infinity();
};

Run run(const std::string& kernel, const cases::Case& c) {
  static const auto device = open_device("sim", 0);
  const Kernel* found = find_kernel(kernel);
  REQUIRE(found != nullptr);
  REQUIRE_FALSE(found->refuses(c));
  const cases::Inputs inputs = cases::materialise(c);
  Run result{found->run(*device, c, inputs)};
  if (result.outcome.status == Status::ok) {
    const auto expected =
        by_definition(std::get<cases::MlaDecode>(c.problem), std::get<cases::MlaDecodeInputs>(inputs));
    result.deviation = deviation(result.outcome.outputs, expected);
  }
  return result;
}

/// Those of this contract and op; others add to kernels().
std::vector<const Kernel*> attest_kernels() {
  std::vector<const Kernel*> ours;
  for (const Kernel* kernel : kernels()) {
    if (kernel->contract() == "attest" && kernel->op() == "mla_decode") ours.push_back(kernel);
  }
  return ours;
}

cases::Case a_case(cases::MlaDecode problem) {
  cases::Case c;
  c.seed = 1;
  c.problem = std::move(problem);
  return c;
}

void expect_right(const cases::Case& c) {
  INFO(cases::canonical_json(c));
  const Run result = run("attest/mla_decode", c);
  INFO(result.outcome.diagnosis << ": " << result.outcome.detail);
  REQUIRE(result.outcome.status == Status::ok);
  CHECK(result.outcome.outputs.guard_damage.empty());
  CHECK(result.deviation < 0.02);
}

cases::MlaDecode fp8_cache(cases::MlaDecode p) {
  p.kv_format = Format::fp8_e4m3fnuz;
  p.kv_scale = 1.3F;
  return p;
}
cases::MlaDecode fp8_all(cases::MlaDecode p) {
  p = fp8_cache(std::move(p));
  p.q_format = Format::fp8_e4m3fnuz;
  p.q_scale = 0.7F;
  return p;
}

}  // namespace

TEST_CASE("the kernel agrees with the definition") {
  SECTION("plain decode, page size 1") {
    expect_right(a_case({.heads = 16, .requests = {{1, 100}, {1, 33}}}));
  }
  SECTION("odd heads, ragged, empty members, more queries than keys") {
    expect_right(
        a_case({.heads = 5, .page_size = 16, .requests = {{3, 37}, {0, 12}, {1, 0}, {2, 1}, {4, 2}}}));
  }
  SECTION("splits, page size 7, fp8 cache") {
    expect_right(a_case(fp8_cache(
        {.heads = 5, .page_size = 7, .num_splits = 3, .requests = {{3, 137}, {7, 65}, {1, 0}, {4, 2}}})));
  }
  SECTION("more splits than tiles, fp8 everywhere") {
    expect_right(
        a_case(fp8_all({.heads = 1, .page_size = 4, .num_splits = 32, .requests = {{16, 40}, {3, 70}}})));
  }
  SECTION("without causality") {
    expect_right(a_case(
        {.heads = 3, .page_size = 64, .num_splits = 2, .causal = false, .requests = {{4, 70}, {5, 3}}}));
  }
  SECTION("many heads, without lse") {
    cases::Case c = a_case({.heads = 128, .page_size = 1024, .return_lse = false, .requests = {{2, 40}}});
    expect_right(c);
    CHECK(run("attest/mla_decode", c).outcome.outputs.find("lse") == nullptr);
  }
  SECTION("one row and no key") {
    expect_right(a_case({.heads = 1, .num_splits = 2, .requests = {{0, 12}, {1, 0}, {0, 0}}}));
  }
  SECTION("a pool beyond 4 GiB, padded pages") {
    cases::Case c = a_case({.heads = 4, .page_size = 16, .requests = {{1, 100}}});
    c.memory.placement = cases::Placement::beyond_4gib;
    c.memory.page_padding_bytes = 48;
    expect_right(c);
  }
  SECTION("every poison") {
    for (const auto poison :
         {cases::Poison::inf, cases::Poison::large, cases::Poison::stale, cases::Poison::zero}) {
      cases::Case c = a_case({.heads = 3, .page_size = 8, .num_splits = 4, .requests = {{3, 37}, {2, 0}}});
      c.memory.unused = c.memory.output = c.memory.scratch = poison;
      expect_right(c);
    }
  }
}

TEST_CASE("a small decode stays small") {
  const Run result = run("attest/mla_decode", a_case({.heads = 16, .requests = {{1, 100}, {1, 100}}}));
  REQUIRE(result.outcome.status == Status::ok);
  INFO(result.outcome.wave_instructions);
  CHECK(result.outcome.wave_instructions < 15'000);
}

namespace {

/// Launches a loop without end and says that it takes `optimised` instructions.
class Endless final : public contracts::AttestKernel {
 public:
  explicit Endless(std::uint64_t optimised)
      : AttestKernel(hip::kernel_directory(),
                     {.op = "mla_decode", .objects = {"probe"}, .precision = "bf16", .supports = "nothing"},
                     nullptr),
        optimised_(optimised) {}

 protected:
  [[nodiscard]] std::optional<std::string> why_not(const cases::Case&) const override { return {}; }
  void run_on(hip::HipDevice& gpu, const cases::Case&, const cases::Inputs&,
              Outcome& outcome) const override {
    hip::DeviceBuffer flag(gpu, "flag", 4, 256);
    flag.upload(std::vector<std::byte>(4));
    launch(gpu, function(gpu, "probe", "spin"), "spin", {.threads = 64}, flag.data(), optimised_, outcome);
  }

 private:
  std::uint64_t optimised_;
};

}  // namespace

TEST_CASE("a kernel is runaway after a hundred times what it should take, and not before") {
  const auto device = open_device("sim", 0);
  const cases::Case c = a_case({.requests = {{1, 1}}});
  for (const std::uint64_t optimised : {std::uint64_t{0}, std::uint64_t{20'000}}) {
    const Outcome outcome = Endless(optimised).run(*device, c, cases::materialise(c));
    CHECK(outcome.status == Status::timeout);
    CHECK(outcome.diagnosis == "runaway kernel");
    CHECK(outcome.stage == "spin");
    CHECK_THAT(outcome.detail, Contains(std::to_string(1'000'000 + 100 * optimised) + " wave instructions"));
  }
}

TEST_CASE("each planted fault shows on the case made for it, and spares one it cannot hit") {
  const cases::MlaDecode decode{.heads = 4, .page_size = 1, .requests = {{1, 70}}};
  cases::MlaDecode verify = decode;
  verify.requests = {{3, 70}};
  cases::MlaDecode paged = decode;
  paged.page_size = 16;
  cases::MlaDecode split = decode;
  split.num_splits = 2;
  cases::MlaDecode early = verify;
  early.requests = {{3, 1}};
  cases::Case far = a_case(paged);
  far.memory.placement = cases::Placement::beyond_4gib;

  struct Planted {
    const char* fault;
    cases::Case hit;
    cases::Case miss;
  };
  cases::MlaDecode even = verify;
  even.requests = {{4, 70}};
  cases::MlaDecode whole = decode;
  whole.requests = {{1, 64}};
  const std::vector<Planted> planted{
      {"qlen_mask", a_case(verify), a_case(even)},
      {"last_page_len", a_case(paged), a_case(decode)},
      {"causal_off_by_one", a_case(verify), a_case(decode)},
      {"last_tile_dropped", a_case(decode), a_case(whole)},
      {"split_forgotten", a_case(split), a_case(decode)},
      {"lse_base2", a_case(split), a_case(decode)},
      {"kv_scale_missing", a_case(fp8_cache(decode)), a_case(decode)},
      {"page_size_one", a_case(paged), a_case(decode)},
      {"inf_first_tile", a_case(early), a_case(decode)},
      {"offset_32bit", far, a_case(paged)},
  };
  // Right in the plain order of waves: what is wrong with it is for a detector to say.
  CHECK(run("attest/mla_decode+barrier_missing", a_case(decode)).deviation < 0.02);
  std::set<std::string> tested{"", "barrier_missing"};
  for (const Planted& p : planted) {
    INFO(p.fault);
    tested.insert(p.fault);
    const std::string name = std::string("attest/mla_decode+") + p.fault;
    const Run hit = run(name, p.hit);
    CHECK((hit.outcome.status == Status::crash || hit.deviation > 0.02));
    expect_right(p.hit);
    const Run miss = run(name, p.miss);
    CHECK(miss.outcome.status == Status::ok);
    CHECK(miss.deviation < 0.02);
  }
  for (const Kernel* kernel : attest_kernels()) {
    INFO(kernel->name());
    CHECK(tested.count(kernel->fault()) == 1);
  }
}

TEST_CASE("kernels are listed in order, each fault with the report it imitates") {
  REQUIRE(attest_kernels().size() == 12);
  std::vector<std::string> names;
  for (const Kernel* kernel : attest_kernels()) {
    names.push_back(kernel->name());
    INFO(names.back());
    CHECK(kernel->op() == "mla_decode");
    CHECK(kernel->arch() == "gfx942");
    CHECK(kernel->precision() == "bf16");
    CHECK(kernel->fault().empty() == kernel->imitates().empty());
    if (!kernel->fault().empty()) {
      CHECK(names.back() == "attest/mla_decode+" + kernel->fault());
      CHECK(kernel->imitates().rfind("https://github.com/", 0) == 0);
    }
    CHECK(find_kernel(names.back()) == kernel);
  }
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(names.front() == "attest/mla_decode");
  CHECK(find_kernel("attest/mla_decode+no_such_fault") == nullptr);
  CHECK(find_kernel("") == nullptr);
}

TEST_CASE("what the kernel does not do it refuses in words") {
  const Kernel* kernel = find_kernel("attest/mla_decode");
  REQUIRE(kernel != nullptr);
  CHECK_FALSE(kernel->refuses(a_case({.requests = {{1, 1}}})));
  const auto refusal = [&](auto change) {
    cases::MlaDecode p{.requests = {{1, 1}}};
    change(p);
    return kernel->refuses(a_case(p)).value_or("");
  };
  CHECK_THAT(refusal([](auto& p) { p.kv_format = Format::fp8_e4m3fn; }),
             Contains("formats.kv is fp8_e4m3fn"));
  CHECK_THAT(refusal([](auto& p) { p.q_format = Format::fp8_e4m3fnuz; }), Contains("formats.q"));
  CHECK_THAT(refusal([](auto& p) { p.q_format = Format::f16; }), Contains("formats.q is f16"));
  CHECK_THAT(refusal([](auto& p) { p.out_format = Format::f32; }), Contains("formats.out is f32"));
  CHECK_THAT(refusal([](auto& p) { p.num_splits = 33; }), Contains("num_splits is 33"));
}

TEST_CASE("kernels whose code objects are missing are not listed; broken ones fail in one line") {
  const auto folder = std::filesystem::temp_directory_path() / "attest_kernels_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  CHECK(contracts::attest_kernels(folder).empty());

  std::ofstream(folder / "mla_decode.co") << "\x7f"
                                             "ELF and then nothing";
  CHECK(contracts::attest_kernels(folder).empty());  // the second stage is missing
  std::filesystem::copy_file(hip::kernel_directory() / "split_reduce.co", folder / "split_reduce.co");
  const auto found = contracts::attest_kernels(folder);
  REQUIRE(found.size() == 1);
  CHECK(found[0]->name() == "attest/mla_decode");

  const auto device = open_device("sim", 0);
  const cases::Case c = a_case({.requests = {{1, 1}}});
  CHECK_THROWS_AS(found[0]->run(*device, c, cases::materialise(c)), DeviceError);
  CHECK_THROWS_WITH(found[0]->run(*device, c, cases::materialise(c)),
                    Contains("mla_decode.co: truncated") && !Contains("\n"));
  std::filesystem::remove_all(folder);
}
