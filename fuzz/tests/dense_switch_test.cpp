// SPDX-License-Identifier: MIT
//
// dense_switch from case file to verdict on the simulator, and the two forms against each other.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cases/inputs.h"
#include "device/kernel.h"
#include "fuzz/evaluate.h"
#include "oracle/judge.h"

namespace attest::fuzz {
namespace {

using namespace cases;
using oracle::VerdictKind;

device::Device& simulator() {
  static const auto device = device::open_device("sim", 0);
  return *device;
}

const device::Kernel& kernel_named(const std::string& name) {
  const device::Kernel* k = device::find_kernel(name);
  REQUIRE(k != nullptr);
  return *k;
}

oracle::Verdict verdict_of(const std::string& kernel, const Case& c) {
  return evaluate(simulator(), kernel_named(kernel), c).verdict;
}

Case read_case(const std::string& file) {
  std::ifstream in(file);
  return parse_case(std::string(std::istreambuf_iterator<char>(in), {}));
}

Case prefills(std::vector<Request> requests, int topk) {
  Case c;
  c.seed = 5;
  DenseSwitch p;
  p.heads = 3;
  p.page_size = 16;
  p.topk = topk;
  p.requests = std::move(requests);
  c.problem = std::move(p);
  return c;
}

}  // namespace

TEST_CASE("The pure prefill of 256: scales that do not apply, applied") {
  const std::string folder = ATTEST_SEEDS "/dense_switch";
  const Case plain = read_case(folder + "/large-q-pure-prefill-auto-scales-1-1.json");
  const Case scaled = read_case(folder + "/large-q-pure-prefill-auto-scales-2-3.json");
  CHECK_FALSE(runs_dense(std::get<DenseSwitch>(plain.problem)));
  CHECK(std::get<DenseSwitch>(plain.problem).heads == 64);
  // Two of the 64 heads, which are independent: four runs of all of them take half a minute.
  const auto two_heads = [](Case c) {
    std::get<DenseSwitch>(c.problem).heads = 2;
    return c;
  };
  const device::Kernel& kernel = kernel_named("attest/dense_switch");
  for (const Case& c : {two_heads(plain), two_heads(scaled)}) {
    const Inputs in = materialise(c);
    const auto& p = std::get<DenseSwitch>(c.problem);
    const auto judged = [&](const Case& ran) {
      const device::Outcome outcome = kernel.run(simulator(), ran, in);
      REQUIRE(outcome.status == device::Status::ok);
      return oracle::judge(c, in, outcome.outputs, oracle::profile("bf16"));
    };
    CHECK(judged(c).kind == VerdictKind::pass);
    // What a kernel does that multiplies by them: the same run with the scales in the softmax scale.
    Case applied = c;
    std::get<DenseSwitch>(applied.problem).sm_scale *= p.q_scale * p.kv_scale;
    CHECK((judged(applied).kind == VerdictKind::pass) == (p.q_scale * p.kv_scale == 1.0F));
  }
}

TEST_CASE("Both forms agree at the boundary") {
  // The same batch with room for exactly its tokens, and with room for one less: dense, then sparse. All but
  // the last row of the longest request see the same keys.
  const Case dense = prefills({{20, 20}, {7, 12}}, 20);
  const Case sparse = prefills({{20, 20}, {7, 12}}, 19);
  REQUIRE(runs_dense(std::get<DenseSwitch>(dense.problem)));
  REQUIRE_FALSE(runs_dense(std::get<DenseSwitch>(sparse.problem)));
  // What the dense form returned, judged as what the sparse form is asked for: right in every row but those.
  const device::Outcome outcome =
      kernel_named("attest/dense_switch").run(simulator(), dense, materialise(dense));
  REQUIRE(outcome.status == device::Status::ok);
  const oracle::Verdict v =
      oracle::judge(sparse, materialise(sparse), outcome.outputs, oracle::profile("bf16"));
  CHECK(v.kind == VerdictKind::fail);
  CHECK(v.rows_failed == std::get<DenseSwitch>(sparse.problem).heads);
  for (const oracle::Element& e : v.worst) {
    CHECK(e.request == 0);
    CHECK(e.position == 19);
  }
}

TEST_CASE("Each fault of the switch by the case made for it") {
  const Case at = prefills({{9, 20}, {7, 12}}, 20);
  CHECK(verdict_of("attest/dense_switch", at).kind == VerdictKind::pass);
  CHECK(verdict_of("attest/dense_switch+switch_strict", at).diagnosis ==
        "sparse form where the dense one is due");
  const Case above = prefills({{9, 21}}, 20);
  CHECK(verdict_of("attest/dense_switch", above).kind == VerdictKind::pass);
  CHECK(verdict_of("attest/dense_switch+switch_strict", above).kind == VerdictKind::pass);
  CHECK(verdict_of("attest/dense_switch+route_on_q_len", above).diagnosis ==
        "dense form where the sparse one is due");
  CHECK(verdict_of("attest/dense_switch+ids_not_remapped", above).kind == VerdictKind::fail);
  Case after = prefills({{1, 9}, {1, 30}}, 20);
  std::get<DenseSwitch>(after.problem).previous_kv_lens = {5, 30};
  CHECK(verdict_of("attest/dense_switch", after).kind == VerdictKind::pass);
  CHECK(verdict_of("attest/dense_switch+stale_metadata", after).diagnosis ==
        "metadata of the previous batch");
}

}  // namespace attest::fuzz
