// SPDX-License-Identifier: MIT
//
// The model of AITER's host side, without AITER: the registry's text, the dispatch rules on a small table of
// our own, the split heuristic, the merge of stage 2, and the work plans against their invariants.
#include <rapidcheck.h>

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "device/contracts/aiter/asm_table.h"
#include "device/contracts/aiter/dispatch.h"
#include "device/contracts/aiter/stage2.h"
#include "device/contracts/aiter/work_plan.h"
#include "device/kernel.h"

namespace {

using namespace attest::device;
using namespace attest::device::aiter;

constexpr const char* table_text =
    "qType,kvType,Gqa,ps,qSeqLen,prefill,causal,lse,knl_name,co_name\n"
    "bf16,bf16,16,0,1,0,1,0,_ZN5aiter3oneE,one.co\n"
    "bf16,bf16,16,0,4,0,1,0,_ZN5aiter4fourE,four.co\n"
    "bf16,bf16,16,0,8,0,1,0,_ZN5aiter5eightE,eight.co\n"
    "bf16,bf16,16,1,4,0,1,0,_ZN5aiter7four_psE,four_ps.co\r\n"
    "bf16,bf16,128,0,0,0,1,0,_ZN5aiter4wideE,wide.co\n"
    "fp8,fp8,16,0,4,0,1,0,_ZN5aiter8four_fp8E,four_fp8.co\n";

const std::vector<AsmRow>& table() {
  static const auto rows = parse_asm_table(table_text, "table.csv");
  return rows;
}

std::string reached(const DecodeCall& call) {
  const auto choice = dispatch_decode(table(), call);
  if (const auto* refusal = std::get_if<Refusal>(&choice)) return "refused: " + refusal->why;
  return std::get<DecodeLaunch>(choice).row.base_name();
}

DecodeCall bf16_call(int heads, int q_len, bool persistent = false) {
  return {.q_type = "bf16", .kv_type = "bf16", .heads = heads, .max_q_len = q_len, .persistent = persistent};
}

struct Lengths {
  std::vector<std::int32_t> qo_indptr{0}, kv_indptr{0};
};

Lengths generated_lengths(int max_q_len, bool uniform) {
  Lengths lengths;
  const int batch = *rc::gen::inRange(1, 9);
  for (int b = 0; b < batch; ++b) {
    const int q_len = uniform ? max_q_len : *rc::gen::inRange(1, max_q_len + 1);
    lengths.qo_indptr.push_back(lengths.qo_indptr.back() + q_len);
    lengths.kv_indptr.push_back(lengths.kv_indptr.back() + *rc::gen::inRange(max_q_len, 3000));
  }
  return lengths;
}

}  // namespace

TEST_CASE("the registry is read by column names") {
  REQUIRE(table().size() == 6);
  CHECK(table()[3].base_name() == "four_ps");
  CHECK(table()[3].object == "four_ps.co");
  CHECK(table()[3].persistent);
  CHECK(table()[4].gqa == 128);
  CHECK_THROWS_WITH(parse_asm_table("qType,kvType\nbf16,bf16\n", "x.csv"),
                    "x.csv:2: the table has no column Gqa");
  CHECK_THROWS_WITH(parse_asm_table("qType,kvType,Gqa\nbf16,bf16,many\n", "x.csv"),
                    "x.csv:2: column Gqa holds 'many', not a count");
  CHECK_THROWS_AS(parse_asm_table("", "x.csv"), DeviceError);
}

TEST_CASE("a call reaches the kernel that AITER's host would take") {
  CHECK(reached(bf16_call(16, 1)) == "one");
  CHECK(reached(bf16_call(16, 2)) == "four");
  CHECK(reached(bf16_call(16, 4)) == "four");
  CHECK(reached(bf16_call(16, 5)) == "eight");
  CHECK(reached(bf16_call(16, 16)) == "eight");
  CHECK(reached(bf16_call(128, 3)) == "wide");
  CHECK(reached(bf16_call(16, 3, true)) == "four_ps");
  CHECK(reached(bf16_call(64, 1, true)) == "four_ps");
  CHECK(reached(bf16_call(12, 1)).starts_with("refused: asm_mla.cu: cannot find suitable kernel"));
  CHECK(reached(bf16_call(24, 1, true)).starts_with("refused: mla_decode_fwd asserts"));
  CHECK(reached({.q_type = "fp8", .kv_type = "fp8", .heads = 16, .max_q_len = 5}).starts_with("refused"));
  CHECK(reached({.q_type = "fp8", .kv_type = "fp8", .heads = 64, .max_q_len = 1}).starts_with("refused"));
  CHECK(reached({.q_type = "bf16", .kv_type = "bf16", .heads = 16, .max_q_len = 4, .causal = false})
            .starts_with("refused"));
}

TEST_CASE("the launch carries the host's numbers") {
  const auto launch = [](const DecodeCall& call) {
    return std::get<DecodeLaunch>(dispatch_decode(table(), call));
  };
  CHECK(launch(bf16_call(16, 1)).sub_q == 16);
  CHECK(launch(bf16_call(16, 1)).split_granularity == 64);
  CHECK_FALSE(launch(bf16_call(16, 1)).may_copy_final);
  CHECK(launch(bf16_call(16, 3)).sub_q == 128);
  CHECK(launch(bf16_call(16, 3)).split_granularity == 16);
  CHECK_FALSE(launch(bf16_call(16, 3)).output_is_partial);
  CHECK(launch(bf16_call(16, 4)).output_is_partial);
  CHECK(launch(bf16_call(64, 1, true)).fold == 4);
}

TEST_CASE("the split heuristic") {
  CHECK(automatic_split_count(1, 100, 16, 1, false, 304) > 1);
  CHECK(automatic_split_count(1000, 1000 * 64, 16, 1, false, 304) <= 2);
  CHECK(automatic_split_count(4, 4 * 100, 16, 1, true, 304) == 1);
  CHECK(automatic_split_count(4, 4 * 100, 12, 1, true, 304) == 0);
}

TEST_CASE("stage 2 merges partials by their lse, copies bf16 for one split, and divides 0 by 0 for none") {
  const std::vector<std::int32_t> qo_indptr{0, 1}, splits_indptr{0, 2}, last{1};
  std::vector<float> partial(2 * v_head_dim);
  for (std::size_t d = 0; d < v_head_dim; ++d) {
    partial[d] = 1;
    partial[v_head_dim + d] = 3;
  }
  const std::vector<float> lse{0.0F, std::log(3.0F)};
  std::vector<std::uint16_t> out(v_head_dim);
  std::vector<float> final_lse(1);
  std::vector<std::int32_t> kv_indptr{0, 128};
  SplitMerge merge{.heads = 1,
                   .splits = 2,
                   .split_granularity = 64,
                   .may_copy_final = true,
                   .page_size = 1,
                   .qo_indptr = qo_indptr,
                   .kv_indptr = kv_indptr,
                   .kv_last_page_lens = last,
                   .num_kv_splits_indptr = splits_indptr,
                   .partial = std::as_bytes(std::span(partial)),
                   .partial_lse = lse,
                   .out = out,
                   .lse = final_lse};
  merge_splits(merge);
  CHECK(out[0] == to_bf16(2.5F));
  CHECK(final_lse[0] == Approx(std::log(4.0F)));

  kv_indptr[1] = 64;  // one chunk: the second split is not valid
  merge_splits(merge);
  CHECK(out[0] == to_bf16(1.0F));

  kv_indptr[1] = 0;
  merge_splits(merge);
  CHECK(out[0] == 0x7fff);

  const std::vector<std::int32_t> one_split{0, 1};
  merge.num_kv_splits_indptr = one_split;
  merge.splits = 1;
  merge_splits(merge);
  CHECK(out[1] == 0x3f80);  // the upper half of the f32 1.0 that lies there, copied as bf16
}

TEST_CASE("bf16 rounding of the model's stores") {
  CHECK(to_bf16(1.0F) == 0x3f80);
  CHECK(to_bf16(std::bit_cast<float>(0x3f808000U)) == 0x3f80);  // tie to even
  CHECK(to_bf16(std::bit_cast<float>(0x3f818000U)) == 0x3f82);
  CHECK(to_bf16(std::numeric_limits<float>::quiet_NaN()) == 0x7fff);
}

TEST_CASE("both planners make valid plans where every request has keys") {
  const bool held = rc::check([] {
    const int max_q_len = *rc::gen::inRange(1, 5);
    const int heads = *rc::gen::element(16, 128);
    const int fold = heads == 16 ? *rc::gen::element(1, 2, 4) : 1;
    const Lengths lengths = generated_lengths(max_q_len, fold > 1 || heads == 128);
    PlanRequest request{.qo_indptr = lengths.qo_indptr,
                        .kv_indptr = lengths.kv_indptr,
                        .fold = fold,
                        .heads = heads,
                        .max_q_len = max_q_len,
                        .granularity = *rc::gen::element(16, 32),
                        .slots = *rc::gen::element(4, 80, 304),
                        .max_split_per_batch = *rc::gen::element(-1, 1, 4, 32),
                        .causal = true};
    RC_ASSERT(plan_defect(plan_simple(request, *rc::gen::inRange(1, 9)), request) == "");
    if (fold == 1) RC_ASSERT(plan_defect(plan_v1_2(request), request) == "");
  });
  CHECK(held);
}

TEST_CASE("a spoilt plan is named") {
  const std::vector<std::int32_t> qo_indptr{0, 1, 2}, kv_indptr{0, 400, 900};
  const PlanRequest request{.qo_indptr = qo_indptr, .kv_indptr = kv_indptr, .slots = 8};
  const WorkPlan good = plan_simple(request, 3);
  REQUIRE(plan_defect(good, request).empty());
  REQUIRE(good.work_info_set.size() == 6);
  const auto defect = [&](const auto& spoil) {
    WorkPlan plan = good;
    spoil(plan);
    return plan_defect(plan, request);
  };
  CHECK(defect([](WorkPlan& p) { p.work_info_set[1].kv_start += 16; }).find("skipped or done twice") !=
        std::string::npos);
  CHECK(defect([](WorkPlan& p) { p.work_info_set[1].kv_offset += 1; }).find("do not meet the end") !=
        std::string::npos);
  CHECK(defect([](WorkPlan& p) {
          p.work_info_set[1].kv_end = p.work_info_set[1].kv_start;
        }).find("empty KV range") != std::string::npos);
  CHECK(defect([](WorkPlan& p) {
          p.work_info_set[1].partial_qo_loc = p.work_info_set[0].partial_qo_loc;
        }).find("used twice") != std::string::npos);
  CHECK(defect([](WorkPlan& p) { p.reduce_partial_map[0] = 77; }).find("does not list the pieces") !=
        std::string::npos);
  CHECK(defect([](WorkPlan& p) { p.work_indptr.back() -= 1; }).find("work_indptr") != std::string::npos);
  CHECK(defect([](WorkPlan& p) { p.work_info_set[0].batch_idx = 9; }).find("is no request") !=
        std::string::npos);
}

TEST_CASE("AITER's planner gives a request without keys work on an empty range") {
  const std::vector<std::int32_t> qo_indptr{0, 1, 2}, kv_indptr{0, 0, 64};
  const PlanRequest request{.qo_indptr = qo_indptr, .kv_indptr = kv_indptr};
  CHECK(plan_defect(plan_v1_2(request), request).find("empty KV range") != std::string::npos);
  CHECK(plan_defect(plan_simple(request, 2), request).empty());
}
