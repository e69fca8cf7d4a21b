// SPDX-License-Identifier: MIT
//
// mla_sparse from generator to verdict on the simulator: each fault by a case made for it, what is found
// shrinks to something a person can check by hand, and the generator reaches what it is for. That the correct
// kernel passes and every fault is found among generated cases is in planted_faults_test.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "device/kernel.h"
#include "fuzz/evaluate.h"
#include "fuzz/generate.h"

namespace attest::fuzz {
namespace {

using namespace cases;
using oracle::VerdictKind;

device::Device& simulator() {
  static const auto device = device::open_device("sim", 0);
  return *device;
}

oracle::Verdict verdict_of(const std::string& kernel, const Case& c) {
  const device::Kernel* k = device::find_kernel(kernel);
  REQUIRE(k != nullptr);
  return evaluate(simulator(), *k, c).verdict;
}

/// Descends as a campaign does, keeping the signature; most_runs bounds the time.
Case shrunk(const std::string& kernel, Case c, int most_runs) {
  const std::string wanted = signature_of(kernel, c, verdict_of(kernel, c));
  for (bool improved = true; improved && most_runs > 0;) {
    improved = false;
    for (Case& s : shrink_candidates(c)) {
      if (--most_runs <= 0) break;
      if (signature_of(kernel, s, verdict_of(kernel, s)) != wanted) continue;
      c = std::move(s);
      improved = true;
      break;
    }
  }
  return c;
}

Case sparse_case(MlaSparse p) {
  Case c;
  c.seed = 7;
  c.problem = std::move(p);
  return c;
}

}  // namespace

TEST_CASE("mla_sparse: each fault by the case made for it") {
  MlaSparse p{.heads = 2, .topk = 40, .requests = {{1, 40}}};
  MlaSparse partly = p;
  partly.length = ListLength::ragged;
  partly.requests = {{4, 40}};
  Case stale = sparse_case(partly);
  stale.memory.unused = Poison::stale;
  CHECK(verdict_of("attest/mla_sparse+trailing_ids", stale).diagnosis == "ids behind the length attended to");
  CHECK(verdict_of("attest/mla_sparse", stale).kind == VerdictKind::pass);

  MlaSparse front = p;
  front.topk = 120;
  front.holes = ListHoles::tile;
  front.requests = {{3, 40}};
  CHECK(verdict_of("attest/mla_sparse+inf_first_tile", sparse_case(front)).diagnosis ==
        "nan from a fully masked tile");
  CHECK(verdict_of("attest/mla_sparse", sparse_case(front)).kind == VerdictKind::pass);
  Case holes = sparse_case(front);
  holes.memory.unused = Poison::stale;
  holes.memory.placement = Placement::ordered;
  CHECK(verdict_of("attest/mla_sparse+holes_slot_zero", holes).diagnosis == "holes read as slot 0");

  MlaSparse ds = p;
  ds.kv_format = Format::fp8_e4m3fnuz;
  ds.kv_layout = KvLayout::ds;
  CHECK(verdict_of("attest/mla_sparse", sparse_case(ds)).kind == VerdictKind::pass);
  CHECK(verdict_of("attest/mla_sparse+ds_first_scale", sparse_case(ds)).diagnosis ==
        "ds scale of another tile");
  CHECK(verdict_of("attest/mla_sparse+fnuz_as_ocp", sparse_case(ds)).diagnosis ==
        "fp8 decoded with the other exponent bias");
  CHECK(verdict_of("attest/mla_sparse+ds_rope_offset", sparse_case(ds)).kind == VerdictKind::fail);
}

TEST_CASE("mla_sparse: a finding shrinks to a few keys and one head") {
  const std::string kernel = "attest/mla_sparse+holes_slot_zero";
  std::uint64_t n = 0;
  while (verdict_of(kernel, case_for(kernel, 1, n)).kind != VerdictKind::fail) ++n;
  const Case least = shrunk(kernel, case_for(kernel, 1, n), 400);
  const auto& p = std::get<MlaSparse>(least.problem);
  CAPTURE(canonical_json(least));
  CHECK(p.requests.size() == 1);
  CHECK(p.heads == 1);
  CHECK(p.topk <= 8);
  CHECK(p.requests[0].q_len <= 3);
}

TEST_CASE("mla_sparse: 20000 cases reach every value of every axis") {
  std::map<std::string, int> seen;
  std::vector<std::int64_t> sizes;
  for (std::uint64_t n = 0; n < 20000; ++n) {
    const Case c = generate("mla_sparse", 3, n);
    const auto& p = std::get<MlaSparse>(c.problem);
    validate(c);
    sizes.push_back(work(c));
    ++seen[std::string("choice ") + name(p.choice)];
    ++seen[std::string("length ") + name(p.length)];
    ++seen[std::string("holes ") + name(p.holes)];
    ++seen[std::string("hole_value ") + name(p.hole_value)];
    ++seen[std::string("kv ") + name(p.kv_layout) + " " + name(p.kv_format) + " " + name(p.q_format)];
    ++seen[std::string("fill ") + name(c.data.fill)];
    ++seen[std::string("placement ") + name(c.memory.placement)];
    ++seen[std::string("unused ") + name(c.memory.unused)];
    for (const int heads : {8, 16, 32, 64, 128}) seen["heads " + std::to_string(heads)] += p.heads == heads;
    for (const int topk : {1, 32, 33, 64, 128}) seen["topk " + std::to_string(topk)] += p.topk == topk;
    bool at = false, below = false, above = false, prefill = false;
    for (const Request& r : p.requests) {
      at = at || r.kv_len == p.topk;
      below = below || (r.kv_len == p.topk - 1 && p.topk > 1);
      above = above || r.kv_len == p.topk + 1;
      prefill = prefill || r.q_len > 8;
    }
    seen["kv_len is topk"] += at;
    seen["kv_len is topk - 1"] += below;
    seen["kv_len is topk + 1"] += above;
    seen["prefill"] += prefill;
    seen["splits"] += p.num_splits > 1;
    seen["padding"] += c.memory.page_padding_bytes > 0;
  }
  CHECK(seen.size() >= 4 + 2 + 7 + 2 + 4 + 13 + 6 + 5 + 5 + 5 + 6);
  for (const auto& [what, times] : seen) {
    CAPTURE(what, times);
    CHECK(times >= 100);
  }
  std::sort(sizes.begin(), sizes.end());
  CAPTURE(sizes[sizes.size() / 2], sizes[sizes.size() * 99 / 100], sizes.back());
  CHECK(sizes[sizes.size() / 2] >= 40);
  CHECK(sizes[sizes.size() / 2] <= 400);
  CHECK(sizes.back() <= 12000);
}

}  // namespace attest::fuzz
