// SPDX-License-Identifier: MIT
//
// A planner, a runner and a merge of the test's own, right and with one thing wrong each.
#include "oracle/plans/work_plan_judge.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "oracle/judge.h"

namespace attest::oracle {
namespace {

using namespace cases;
using Ints = std::vector<std::int32_t>;

struct Plan {
  Ints header, work_indptr, info, reduce_indptr, final_map, partial_map;
};

/// Every tile in pieces of `blocks` blocks, dealt out in order.
Plan planned(const WorkPlan& p, const WorkPlanInputs::Step& step, std::size_t max_batch, int blocks) {
  Plan plan;
  const auto tiles = static_cast<std::size_t>(most_tiles(p));
  std::vector<Ints> works;
  Ints final_map, partial_map, reduce = {0};
  int partial = 0, longest = 0;
  const int batch = static_cast<int>(step.qo_indptr.size()) - 1;
  for (int r = 0; r < batch; ++r) {
    const auto i = static_cast<std::size_t>(r);
    const int q0 = step.qo_indptr[i], q1 = step.qo_indptr[i + 1], k0 = step.kv_indptr[i],
              k1 = step.kv_indptr[i + 1];
    longest = std::max(longest, q1 - q0);
    for (int first = q0; first < q1; first += p.tile_tokens) {
      const int last = std::min(first + p.tile_tokens, q1);
      const int end = std::max(k0, p.causal ? k1 - (q1 - last) : k1);
      const int size = blocks * p.granularity, pieces = (end - k0 + size - 1) / size;
      for (int piece = 0; piece < pieces; ++piece) {
        const int from = k0 + piece * size, to = std::min(from + size, end);
        works.push_back({r, pieces == 1 ? -1 : partial, first, last, from, to, k1 - to, 0});
        if (pieces == 1) continue;
        partial_map.push_back(partial);
        partial += last - first;
      }
      if (pieces == 1) continue;
      final_map.insert(final_map.end(), {first, last});
      reduce.push_back(static_cast<int>(partial_map.size()));
    }
  }
  if (longest > p.persistent_q_len) {
    works.clear();
    final_map.clear();
    partial_map.clear();
    reduce = {0};
  }
  plan.header = {longest <= p.persistent_q_len ? 1 : 0, static_cast<int>(works.size()),
                 static_cast<int>(reduce.size()) - 1, static_cast<int>(partial_map.size())};
  plan.header.resize(5 + 2 * (max_batch + 1), 0);
  const int n = static_cast<int>(works.size());
  for (int s = 0; s <= p.slots; ++s) plan.work_indptr.push_back(n * s / p.slots);
  for (const Ints& w : works) plan.info.insert(plan.info.end(), w.begin(), w.end());
  plan.info.resize(8 * (tiles + static_cast<std::size_t>(p.slots)), -9);
  reduce.resize(tiles + 1, reduce.back());
  plan.reduce_indptr = reduce;
  final_map.resize(2 * tiles, -9);
  plan.final_map = final_map;
  partial_map.resize(tiles + static_cast<std::size_t>(p.slots), -9);
  plan.partial_map = partial_map;
  return plan;
}

struct Faults {
  bool empty_weighs_one = false, last_piece_missing = false, rows_missing = false;
};

/// What the plan gives: every row from the works that hold it.
void run(const WorkPlan& p, const WorkPlanInputs::Step& step, const Plan& plan, const Faults& f,
         std::vector<float>& out, std::vector<float>& lse) {
  const int queries = step.qo_indptr.back();
  for (int row = 0; row < queries; ++row) {
    std::size_t r = 0;
    while (row >= step.qo_indptr[r + 1]) ++r;
    const int bound =
        p.causal ? step.kv_indptr[r + 1] - (step.qo_indptr[r + 1] - row - 1) : step.kv_indptr[r + 1];
    std::vector<std::pair<int, int>> ranges;
    for (int w = 0; w < plan.header[1]; ++w) {
      const std::int32_t* info = &plan.info[8 * static_cast<std::size_t>(w)];
      if (row >= info[2] && row < info[3]) ranges.emplace_back(info[4], info[5]);
    }
    if (plan.header[0] == 0) ranges = {{step.kv_indptr[r], step.kv_indptr[r + 1]}};
    if (f.last_piece_missing && ranges.size() > 1) ranges.pop_back();
    double weight = 0;
    std::vector<double> sum(64);
    for (const auto& [begin, end] : ranges) {
      const double before = weight;
      for (int key = begin; key < std::min(end, bound); ++key) {
        const double w = std::ldexp(1.0, step.scores[static_cast<std::size_t>(key)]);
        weight += w;
        for (std::size_t c = 0; c < 64; ++c)
          sum[c] += w * double{step.values[static_cast<std::size_t>(key) * 64 + c]};
      }
      if (weight == before && f.empty_weighs_one) weight += 1;
    }
    if (f.rows_missing && row == queries - 1) weight = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t c = 0; c < 64; ++c)
      out.push_back(weight == 0 ? 0.0F : static_cast<float>(sum[c] / weight));
    lse.push_back(static_cast<float>(std::log(weight)));
  }
}

using Change = std::function<void(std::vector<Plan>&)>;

Verdict judged(const Case& c, int blocks, const Faults& faults = {}, const Change& change = {}) {
  const Inputs inputs = materialise(c);
  const auto& p = std::get<WorkPlan>(c.problem);
  const auto& in = std::get<WorkPlanInputs>(inputs);
  std::size_t max_batch = 0;
  for (const auto& step : in.steps) max_batch = std::max(max_batch, step.qo_indptr.size() - 1);
  std::vector<Plan> plans;
  for (const auto& step : in.steps) plans.push_back(planned(p, step, max_batch, blocks));
  if (change) change(plans);
  Outputs outputs;
  for (std::size_t s = 0; s < plans.size(); ++s) {
    const auto add = [&](const char* name, const auto& values) {
      const auto bytes = std::as_bytes(std::span(values));
      outputs.tensors.push_back({"step" + std::to_string(s) + "." + name, {bytes.begin(), bytes.end()}});
    };
    add("header", plans[s].header);
    add("work_indptr", plans[s].work_indptr);
    add("work_info_set", plans[s].info);
    add("reduce_indptr", plans[s].reduce_indptr);
    add("reduce_final_map", plans[s].final_map);
    add("reduce_partial_map", plans[s].partial_map);
    std::vector<float> out, lse;
    run(p, in.steps[s], plans[s], faults, out, lse);
    add("out", out);
    add("lse", lse);
  }
  return judge(c, inputs, outputs, profile("bf16"));
}

Case verify_batches() {
  WorkPlan p;
  p.slots = 40;
  p.granularity = 4;
  p.tile_tokens = 2;
  p.persistent_q_len = 4;
  p.steps = {{false, {{4, 33}, {1, 0}, {3, 18}}}, {false, {{4, 20}, {1, 33}, {3, 18}}}, {true, {{5, 12}}}};
  Case c;
  c.seed = 9;
  c.problem = p;
  return c;
}

void fails(const std::string& diagnosis, const Change& change) {
  const Verdict v = judged(verify_batches(), 2, {}, change);
  INFO(v.detail);
  CHECK(v.kind == VerdictKind::fail);
  CHECK(v.stage == "plan");
  CHECK(v.diagnosis == diagnosis);
}

}  // namespace

TEST_CASE("Right plans pass, however they cut") {
  for (const int blocks : {1, 2, 3, 100}) {
    const Verdict v = judged(verify_batches(), blocks);
    INFO(v.diagnosis << ": " << v.detail);
    CHECK(v.kind == VerdictKind::pass);
    CHECK(v.used_budget < 1);
  }
}

TEST_CASE("Each condition of a plan can fail") {
  // Step 0: works of 8 keys; the tiles of request 0 are rows 0..1 (keys 0..30) and 2..3 (0..32).
  fails("a plan for a q_len that no kernel supports", [](auto& plans) { plans[2].header[0] = 1; });
  fails("no plan for a q_len that has a kernel", [](auto& plans) { plans[0].header[0] = 0; });
  fails("work_indptr does not deal out all works", [](auto& plans) { plans[0].work_indptr.back() -= 1; });
  fails("a work without keys", [](auto& plans) { plans[0].info[5] = plans[0].info[4]; });
  fails("a work outside of its request", [](auto& plans) { plans[0].info[0] = 2; });
  fails("a cut off the granularity", [](auto& plans) { plans[0].info[4] = 1; });
  fails("kv_offset is not the keys behind the work", [](auto& plans) { ++plans[0].info[6]; });
  fails("keys between two pieces not covered", [](auto& plans) {
    plans[0].info[5] -= 4;
    plans[0].info[6] += 4;
  });
  fails("keys covered twice", [](auto& plans) {
    plans[0].info[5] += 4;
    plans[0].info[6] -= 4;
  });
  fails("two works share a partial row", [](auto& plans) { plans[0].info[8 + 1] = plans[0].info[1]; });
  fails("a merge of other partial rows",
        [](auto& plans) { std::swap(plans[0].partial_map[0], plans[0].partial_map[1]); });
  fails("a merge of another number of pieces", [](auto& plans) { --plans[0].reduce_indptr[1]; });
  fails("plan of another batch of the sequence", [](auto& plans) { plans[1] = plans[0]; });
}

TEST_CASE("The tail of reduce_indptr is part of the plan") {
  // Nothing is split: only the request without keys is merged, and four tiles are left over.
  const Verdict v = judged(verify_batches(), 100, {}, [](auto& plans) { ++plans[0].reduce_indptr.back(); });
  CHECK(v.diagnosis == "reduce_indptr does not go on with its last value");
}

TEST_CASE("Results are judged by the definition and the cause is named") {
  const auto diagnosis = [](const Faults& f) {
    const Verdict v = judged(verify_batches(), 1, f);
    CHECK(v.stage == "element");
    return v.diagnosis;
  };
  CHECK(diagnosis({.last_piece_missing = true}) == "last piece of a tile not merged");
  CHECK(diagnosis({.rows_missing = true}) == "works not done");
  Case c = verify_batches();
  std::get<WorkPlan>(c.problem).steps = {{false, {{4, 9}}}};
  std::get<WorkPlan>(c.problem).tile_tokens = 4;
  CHECK(judged(c, 1).kind == VerdictKind::pass);
  CHECK(judged(c, 1, {.empty_weighs_one = true}).diagnosis == "a piece without keys weighs as one key");
  CHECK(judged(c, 1, {.rows_missing = true}).diagnosis == "works not done");
  std::get<WorkPlan>(c.problem).steps = {{false, {{5, 9}}}};
  CHECK(judged(c, 1).kind == VerdictKind::pass);
  CHECK(judged(c, 1, {.rows_missing = true}).diagnosis == "wrong result without a plan");
  CHECK(judge(c, materialise(c), {}, profile("bf16")).kind == VerdictKind::harness_error);
}

}  // namespace attest::oracle
