// SPDX-License-Identifier: MIT
//
// The `aiter` contract without AITER: our own kernels behind its argument block
// (device/kernels/aiter_block/), through the same host model, on the simulator, judged by the oracle. What
// keeps the promises passes, what breaks one of them is found and named.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cases/domain.h"
#include "device/contracts/aiter/aiter_kernels.h"
#include "device/hip/device.h"
#include "device/hip/installation.h"
#include "device/kernel.h"
#include "fuzz/evaluate.h"
#include "fuzz/generate.h"
#include "fuzz/record.h"

using namespace attest;
using namespace attest::fuzz;
using oracle::VerdictKind;

namespace {

constexpr std::uint64_t seed = 11;

const device::Kernel& kernel(const std::string& name) {
  static const int set = ::setenv("ATTEST_AITER_HSA",
                                  (device::hip::kernel_directory() / "aiter_block").c_str(), /*overwrite=*/1);
  REQUIRE(set == 0);
  const device::Kernel* found = device::find_kernel(name);
  INFO(name);
  REQUIRE(found != nullptr);
  return *found;
}

Evaluation run(const device::Kernel& k, const cases::Case& c) {
  static const auto device = device::open_device("sim", 0);
  return evaluate(*device, k, c);
}

/// Case `number` of the kernel's domain, without rows that the merge cannot do (see no_context below).
cases::Case judged_case(const device::Kernel& k, std::uint64_t number) {
  cases::MlaDecodeDomain domain = *k.domain();
  domain.keys_for_every_row = true;
  if (k.name().ends_with("_ps@paged")) domain.heads.resize(1);  // folded heads are refused there
  return cases::fit(generate("mla_decode", seed, number), domain);
}

cases::Case one_request(int heads, int q_len, int kv_len, int splits) {
  cases::MlaDecode p;
  p.heads = heads;
  p.num_splits = splits;
  p.requests = {{q_len, kv_len}};
  cases::Case c;
  c.seed = static_cast<std::uint64_t>(1000 * q_len + kv_len);
  c.problem = p;
  return c;
}

void passes(const device::Kernel& k, const cases::Case& c) {
  const Evaluation e = run(k, c);
  INFO(k.name() << " " << cases::canonical_json(c));
  INFO(oracle::name(e.verdict.kind) << " " << e.verdict.diagnosis << " " << e.verdict.detail);
  REQUIRE(e.verdict.kind == VerdictKind::pass);
}

void passes_generated(const std::string& name) {
  const device::Kernel& k = kernel(name);
  int tested = 0;
  for (std::uint64_t number = 0; number < 25; ++number) {
    const cases::Case c = judged_case(k, number);
    if (k.refuses(c)) continue;  // ragged q_len where heads are folded, lse where the row has none
    passes(k, c);
    ++tested;
  }
  CHECK(tested >= 20);
}

struct Expected {
  std::string kernel;
  std::set<std::string> diagnoses;  ///< any of them names the defect
  std::optional<cases::Placement> placement = std::nullopt;
  int within = 60;  ///< cases
};

void is_found(const Expected& expected) {
  const device::Kernel& bad = kernel(expected.kernel);
  const auto plus = expected.kernel.find('+');
  const auto at = expected.kernel.find('@');
  const device::Kernel& good =
      kernel(expected.kernel.substr(0, plus) + (at == std::string::npos ? "" : expected.kernel.substr(at)));
  std::string seen;
  for (int number = 0; number < expected.within; ++number) {
    cases::Case c = judged_case(bad, static_cast<std::uint64_t>(number));
    c.memory.placement = expected.placement.value_or(c.memory.placement);
    if (bad.refuses(c)) continue;
    const Evaluation e = run(bad, c);
    if (!is_finding(e.verdict.kind)) continue;
    passes(good, c);
    if (expected.diagnoses.contains(e.verdict.diagnosis)) return;
    seen += e.verdict.diagnosis + "; ";
  }
  FAIL(expected.kernel << " was not named within " << expected.within << " cases; seen: " << seen);
}

}  // namespace

TEST_CASE("kernels that keep stage 1's promises pass, split") {
  passes_generated("aiter/attest_bf16_qh16_q1");
  passes_generated("aiter/attest_bf16_qh16_q4");
  passes_generated("aiter/attest_bf16_qh16_q8");
  passes_generated("aiter/attest_fp8_qh16_q4");
}

TEST_CASE("kernels that keep stage 1's promises pass, called with pages") {
  passes_generated("aiter/attest_bf16_qh16_q1@paged");
  passes_generated("aiter/attest_bf16_qh16_q4@paged");
  passes_generated("aiter/attest_fp8_qh16_q4@paged");
  passes_generated("aiter/attest_bf16_qh16_q4_ps@paged");
  passes_generated("aiter/attest_fp8_qh64_q1_lse_ps@paged");
}

TEST_CASE("persistent kernels pass with AITER's plan, heads folded or not") {
  passes_generated("aiter/attest_bf16_qh16_q4_ps");
  passes_generated("aiter/attest_bf16_fp8_qh16_q4_ps");
  passes_generated("aiter/attest_fp8_qh64_q1_ps");
  passes_generated("aiter/attest_fp8_qh64_q1_lse_ps");
}

TEST_CASE("a cache of pages in three runs, with scales in it") {
  passes_generated("aiter/attest_bf16_ds_qh16_q4_ps");
  passes_generated("aiter/attest_bf16_ds_qh16_q4_ps@simple_plan");
  is_found({"aiter/attest_bf16_ds_qh16_q4_ps+latents_truncated", {"ds latents truncated to bf16"}});
  is_found({"aiter/attest_bf16_ds_qh16_q4_ps+first_scale_for_all", {"ds scale of another tile"}});
}

TEST_CASE("persistent kernels pass with a simple plan") {
  passes_generated("aiter/attest_bf16_qh16_q4_ps@simple_plan");
  passes_generated("aiter/attest_fp8_qh64_q1_lse_ps@simple_plan");
}

TEST_CASE("the call reaches these kernels and passes on them, or is refused with AITER's reason") {
  const device::Kernel& call = kernel("aiter/mla_decode_fwd@bf16_persistent");
  int passed = 0;
  std::set<std::string> refusals;
  for (std::uint64_t number = 0; number < 80; ++number) {
    const cases::Case c = judged_case(call, number);
    if (const auto why = call.refuses(c)) {
      refusals.insert(why->substr(0, why->find(':')));
      continue;
    }
    passes(call, c);
    ++passed;
  }
  CHECK(passed > 5);
  CHECK(refusals.contains("AITER refuses"));
}

TEST_CASE("planted behind AITER's argument block: the page size overwritten with 1") {
  is_found({"aiter/attest_bf16_qh16_q4+page_size_overwritten@paged",
            {"first token of each page only", "page size treated as 1"}});
}

TEST_CASE("planted behind AITER's argument block: a null result pointer with one split") {
  is_found({"aiter/attest_bf16_qh16_q4+null_result_pointer", {"memory fault: write outside every buffer"}});
}

TEST_CASE("planted behind AITER's argument block: no causal bound") {
  is_found({"aiter/attest_bf16_qh16_q4+causal_bound_missing", {"causal mask missing"}});
}

TEST_CASE("planted behind AITER's argument block: chunks of another size than the merge counts") {
  is_found({"aiter/attest_bf16_qh16_q4+granularity_mismatch", {"nan from scratch"}});
}

TEST_CASE("planted behind AITER's argument block: f32 partials in the bf16 output") {
  is_found({"aiter/attest_bf16_qh16_q4+f32_into_bf16", {"memory fault: write outside every buffer"}});
}

TEST_CASE("planted behind AITER's argument block: a page offset that wraps at 4 GiB") {
  is_found(
      {"aiter/attest_bf16_qh16_q4+page_offset_32bit", {"kv offset wraps"}, cases::Placement::beyond_4gib});
  is_found(
      {"aiter/attest_bf16_qh16_q4_ps+page_offset_32bit", {"kv offset wraps"}, cases::Placement::beyond_4gib});
}

TEST_CASE("every context length from the query's to 300, in one to more splits than chunks") {
  const device::Kernel& one = kernel("aiter/attest_bf16_qh16_q1");
  const device::Kernel& four = kernel("aiter/attest_bf16_qh16_q4");
  const device::Kernel& persistent = kernel("aiter/attest_bf16_qh16_q4_ps");
  for (int kv_len = 1; kv_len <= 300; ++kv_len) {
    const int splits = kv_len % 32 + 1;
    const int q_len = std::min(kv_len, 2 + kv_len % 3);
    passes(one, one_request(16, 1, kv_len, splits));
    cases::Case longer = one_request(16, q_len, kv_len, splits);
    if (kv_len % 2 == 0) {
      passes(four, longer);
    } else {
      std::get<cases::MlaDecode>(longer.problem).return_lse = false;  // there is no such row with one
      passes(persistent, longer);
    }
  }
}

TEST_CASE("fp8 with scales other than 1, with and without lse") {
  for (const bool return_lse : {false, true})
    for (const int splits : {1, 3}) {
      cases::Case c = one_request(16, 3, 70, splits);
      auto& p = std::get<cases::MlaDecode>(c.problem);
      p.q_format = p.kv_format = cases::Format::fp8_e4m3fnuz;
      p.q_scale = 0.37F;
      p.kv_scale = 3.1F;
      p.return_lse = return_lse;
      passes(kernel("aiter/attest_fp8_qh16_q4"), c);
      p.heads = 64;
      p.requests[0].q_len = 1;
      passes(kernel(return_lse ? "aiter/attest_fp8_qh64_q1_lse_ps" : "aiter/attest_fp8_qh64_q1_ps"), c);
    }
}

TEST_CASE("padding of a captured graph leaves the real requests right") {
  // Two real requests and two members that only fill up the batch: without context, as a graph's padding is.
  cases::Case c = one_request(16, 4, 60, 3);
  auto& p = std::get<cases::MlaDecode>(c.problem);
  p.requests = {{4, 60}, {4, 0}, {4, 33}, {4, 0}};
  p.return_lse = false;
  passes(kernel("aiter/attest_bf16_qh16_q4_ps@simple_plan"), [&] {
    cases::Case no_padding = c;  // the simple plan leaves rows without keys alone
    std::get<cases::MlaDecode>(no_padding.problem).requests = {{4, 60}, {4, 33}};
    return no_padding;
  }());
  passes(kernel("aiter/attest_bf16_qh16_q4_ps"), c);
  // Split: the merge divides 0 by 0 for the padding, and only for the padding.
  const Evaluation e = run(kernel("aiter/attest_bf16_qh16_q4"), c);
  CHECK(e.verdict.kind == VerdictKind::fail);
  CHECK(e.verdict.diagnosis == "nan from a fully masked tile");
  CHECK(e.verdict.rows_failed == 2 * 4 * 16);
}

TEST_CASE("the plan says where a persistent launch stores each part of a row, folded heads included") {
  for (const auto& [heads, q_len] : {std::pair{16, 3}, {32, 1}, {48, 2}}) {
    cases::Case c = one_request(heads, q_len, 130, 3);
    auto& p = std::get<cases::MlaDecode>(c.problem);
    p.requests = {{q_len, 130}, {q_len, 20}};
    p.return_lse = false;
    const device::Kernel& k = kernel("aiter/attest_bf16_qh16_q4_ps@simple_plan");
    const cases::Inputs inputs = cases::materialise(c);
    const auto& in = std::get<cases::MlaDecodeInputs>(inputs);
    std::set<std::pair<bool, std::int64_t>> rows;
    std::size_t parts = 0;
    for (std::int64_t token = 0; token < 2 * q_len; ++token)
      for (int head = 0; head < heads; ++head) {
        const auto planned = device::aiter::planned_parts(k, c, inputs, token, head);
        REQUIRE(planned);
        std::set<std::int32_t> keys;
        for (const auto& part : *planned) {
          CHECK(rows.insert({part.final, part.row}).second);
          CHECK(part.final == (planned->size() == 1));
          for (std::int32_t key = part.kv_start; key < part.kv_end; ++key) CHECK(keys.insert(key).second);
        }
        parts += planned->size();
        const auto request = static_cast<std::size_t>(token / q_len);
        const int position = static_cast<int>(token % q_len);
        CHECK(*keys.begin() == in.kv_indptr[0] + (request == 0 ? 0 : 130));
        CHECK(std::ssize(keys) >= p.requests[request].kv_len - q_len + position + 1);
      }
    CHECK(parts > static_cast<std::size_t>(2 * q_len * heads));

    // What it names is what the launch stores: the simulator finds who wrote it.
    const auto device = device::open_device("sim", 0);
    const auto planned = device::aiter::planned_parts(k, c, inputs, q_len - 1, heads - 1);
    REQUIRE(planned->size() > 1);
    for (const auto& part : *planned) {
      const auto row = static_cast<std::uint64_t>(part.row);
      const Json answer = Json::parse(device::hip::hip_device(*device).follow(
          {part.final ? "out" : "splitData", (row * 512 + 17) * (part.final ? 2 : 4), part.final ? 2U : 4U},
          64, [&] { static_cast<void>(k.run(*device, c, inputs)); }));
      REQUIRE(answer.at("found") == true);
      CHECK(answer.at("producer").at("workgroup").at(0) == part.workgroup);
    }
  }
  CHECK_FALSE(device::aiter::planned_parts(kernel("aiter/attest_bf16_qh16_q4"), one_request(16, 3, 40, 2),
                                           cases::materialise(one_request(16, 3, 40, 2)), 0, 0));
}

TEST_CASE("a row chosen by hand runs where dispatch would not take it") {
  cases::Case c = one_request(16, 3, 40, 2);
  const device::Kernel& eight = kernel("aiter/attest_bf16_qh16_q8");
  REQUIRE(eight.refuses(c));
  CHECK(*eight.refuses(c) == "AITER dispatches this to attest_bf16_qh16_q4");
  passes(kernel("aiter/attest_bf16_qh16_q8@by_hand"), c);
  std::get<cases::MlaDecode>(c.problem).kv_format = cases::Format::fp8_e4m3fnuz;
  CHECK(kernel("aiter/attest_bf16_qh16_q8@by_hand").refuses(c)->find("the row is for bf16/bf16") !=
        std::string::npos);
}

TEST_CASE("every kernel of the table says which AITER it follows, and faults stay out of dispatch") {
  kernel("aiter/attest_bf16_qh16_q1");
  int faults = 0;
  for (const device::Kernel* k : device::kernels()) {
    if (k->contract() != "aiter") continue;
    CHECK(k->supports().find("e4048607a5") != std::string::npos);
    if (k->fault().empty()) continue;
    ++faults;
    CHECK(k->by_hand());
    CHECK_FALSE(k->imitates().empty());
  }
  CHECK(faults >= 6);
}
