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

TEST_CASE("the merge counts tokens where the table has pages") {
  // Two pages of 16, three tokens in the last: 19 tokens are two chunks of 16, so both splits are valid; as
  // two tokens they would be one chunk.
  const std::vector<std::int32_t> qo_indptr{0, 1}, kv_indptr{0, 2}, last{3}, splits_indptr{0, 2};
  std::vector<float> partial(2 * v_head_dim, 1.0F);
  std::fill(partial.begin() + v_head_dim, partial.end(), 3.0F);
  const std::vector<float> lse{0.0F, 0.0F};
  std::vector<std::uint16_t> out(v_head_dim);
  SplitMerge merge{.heads = 1,
                   .splits = 2,
                   .split_granularity = 16,
                   .may_copy_final = true,
                   .page_size = 16,
                   .qo_indptr = qo_indptr,
                   .kv_indptr = kv_indptr,
                   .kv_last_page_lens = last,
                   .num_kv_splits_indptr = splits_indptr,
                   .partial = std::as_bytes(std::span(partial)),
                   .partial_lse = lse,
                   .out = out,
                   .lse = {}};
  merge_splits(merge);
  CHECK(out[0] == to_bf16(2.0F));
  merge.page_size = 1;
  merge_splits(merge);
  CHECK(out[0] == to_bf16(1.0F));
}

TEST_CASE("the reduction weighs pieces by lse, in both of its forms, and leaves unsplit tiles alone") {
  // Two heads. Tile 0 was done in one piece; tile 1, output row 1, in `pieces`, at partial rows 3, 4, ...
  for (const int pieces : {2, 3, 4, 6}) {
    INFO(pieces);
    constexpr std::size_t heads = 2;
    const std::vector<std::int32_t> indptr{0, 0, pieces, pieces}, final_map{0, 1, 1, 2, 0, 0};
    std::vector<std::int32_t> partial_map;
    std::vector<float> partial((3 + static_cast<std::size_t>(pieces)) * heads * v_head_dim, 1e30F);
    std::vector<float> lse((3 + static_cast<std::size_t>(pieces)) * heads, 80.0F);
    double top = 0, sum = 0;
    for (int piece = 0; piece < pieces; ++piece) {
      const auto row = static_cast<std::size_t>(3 + piece);
      partial_map.push_back(3 + piece);
      for (std::size_t head = 0; head < heads; ++head) {
        lse[row * heads + head] = std::log(1.0F + static_cast<float>(piece));  // weights 1, 2, 3, ...
        std::fill_n(partial.begin() + static_cast<std::ptrdiff_t>((row * heads + head) * v_head_dim),
                    v_head_dim, static_cast<float>(piece) + 10.0F * static_cast<float>(head));
      }
      top += (1.0 + piece) * piece;
      sum += 1.0 + piece;
    }
    std::vector<std::uint16_t> out(2 * heads * v_head_dim, 0x4242);
    std::vector<float> final_lse(2 * heads, -5.0F);
    reduce_partials({.heads = heads,
                     .reduce_indptr = indptr,
                     .reduce_final_map = final_map,
                     .reduce_partial_map = partial_map,
                     .partial = partial,
                     .partial_lse = lse,
                     .out = out,
                     .lse = final_lse});
    CHECK(out[0] == 0x4242);
    CHECK(final_lse[0] == -5.0F);
    const auto value = [](std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); };
    CHECK(value(out[heads * v_head_dim]) == Approx(top / sum).epsilon(0x1p-8));
    CHECK(value(out[(heads + 1) * v_head_dim + 511]) == Approx(10 + top / sum).epsilon(0x1p-8));
    CHECK(final_lse[heads] == Approx(std::log(sum)).epsilon(1e-5));
  }
}

TEST_CASE("pieces that saw nothing weigh nothing; if none saw anything the lse says so") {
  const std::vector<std::int32_t> indptr{0, 2}, final_map{0, 1}, partial_map{0, 1};
  std::vector<float> partial(2 * v_head_dim, 7.0F);
  std::vector<float> lse{0.0F, -std::numeric_limits<float>::infinity()};
  std::vector<std::uint16_t> out(v_head_dim);
  std::vector<float> final_lse(1);
  const auto reduce = [&] {
    reduce_partials({.heads = 1,
                     .reduce_indptr = indptr,
                     .reduce_final_map = final_map,
                     .reduce_partial_map = partial_map,
                     .partial = partial,
                     .partial_lse = lse,
                     .out = out,
                     .lse = final_lse});
  };
  reduce();
  CHECK(out[0] == to_bf16(7.0F));
  CHECK(final_lse[0] == 0.0F);
  lse[0] = -std::numeric_limits<float>::infinity();
  reduce();
  CHECK(out[0] == 0x7fff);
  CHECK(final_lse[0] == std::numeric_limits<float>::infinity());
}

TEST_CASE("a plan in AITER's units: budget, overhead, kv_offset and tails") {
  // One request of 1000 tokens on 4 slots: 63 blocks of 16 and 16 of overhead are 79; 20 a slot and 16 more
  // of overhead are 36, of which 20 are blocks. The fourth piece has the three blocks that are left.
  const std::vector<std::int32_t> qo_indptr{0, 1}, kv_indptr{0, 1000};
  PlanRequest request{.qo_indptr = qo_indptr, .kv_indptr = kv_indptr, .slots = 4};
  const WorkPlan plan = plan_v1_2(request);
  REQUIRE(plan.work_info_set.size() == 4);
  CHECK(plan.work_indptr == std::vector<std::int32_t>{0, 1, 2, 3, 4});
  CHECK(plan.work_info_set[0].kv_end == 320);
  CHECK(plan.work_info_set[0].kv_offset == 680);
  CHECK(plan.work_info_set[3].kv_start == 960);
  CHECK(plan.work_info_set[3].kv_end == 1000);
  CHECK(plan.work_info_set[3].kv_offset == 0);
  CHECK(plan.reduce_partial_map == std::vector<std::int32_t>{0, 1, 2, 3});
  CHECK(plan.reduce_indptr == std::vector<std::int32_t>{0, 4});

  // A cut that would leave fewer tokens than q_len behind it is left out: the piece takes the tail.
  const std::vector<std::int32_t> four{0, 4}, context{0, 323};
  request.qo_indptr = four;
  request.kv_indptr = context;
  request.max_q_len = 4;
  request.slots = 2;
  for (const WorkInfo& work : plan_v1_2(request).work_info_set)
    CHECK((work.kv_offset == 0 || work.kv_offset >= 4));

  // No more slots than max_split_per_batch allows: one piece, which writes the output itself.
  request.max_split_per_batch = 1;
  request.slots = 304;
  const WorkPlan whole = plan_v1_2(request);
  REQUIRE(whole.work_info_set.size() == 1);
  CHECK(whole.work_info_set[0].partial_qo_loc == -1);
  CHECK(whole.partial_rows == 0);
}

TEST_CASE("a plan of pages counts pages, and in kv_offset tokens") {
  // 40 pages of 64, 5 tokens in the last, in blocks of 4 pages with 1 of overhead: 10 + 1 over 3 slots are 4,
  // and 1 more are 5, of which 4 blocks, 16 pages, are work.
  const std::vector<std::int32_t> qo_indptr{0, 1}, kv_indptr{0, 40}, last{5};
  const WorkPlan plan = plan_v1_2({.qo_indptr = qo_indptr,
                                   .kv_indptr = kv_indptr,
                                   .granularity = 4,
                                   .slots = 3,
                                   .page_size = 64,
                                   .kv_last_page_lens = last});
  REQUIRE(plan.work_info_set.size() == 3);
  CHECK(plan.work_info_set[0].kv_end == 16);
  CHECK(plan.work_info_set[0].kv_offset == 23 * 64 + 5);
  CHECK(plan.work_info_set[1].kv_end == 32);
  CHECK(plan.work_info_set[2].kv_end == 40);
  CHECK(plan.work_info_set[2].kv_offset == 0);
}

TEST_CASE("a simple plan cuts into the pieces asked for, at multiples of the granularity") {
  const std::vector<std::int32_t> qo_indptr{0, 2, 4}, kv_indptr{0, 100, 130};
  const PlanRequest request{
      .qo_indptr = qo_indptr, .kv_indptr = kv_indptr, .max_q_len = 2, .granularity = 16, .slots = 3};
  const WorkPlan plan = plan_simple(request, 3);
  // 100 tokens in pieces of 48, 48 and 4; 30 tokens in 16 and 14.
  REQUIRE(plan.work_info_set.size() == 5);
  CHECK(plan.work_info_set[1].kv_start == 48);
  CHECK(plan.work_info_set[2].kv_end == 100);
  CHECK(plan.work_info_set[3].kv_start == 100);
  CHECK(plan.work_info_set[3].kv_end == 116);
  CHECK(plan.work_info_set[3].kv_offset == 14);
  CHECK(plan.work_info_set[4].partial_qo_loc == 8);
  CHECK(plan.reduce_indptr == std::vector<std::int32_t>{0, 3, 5});
}

TEST_CASE("rows with a planted fault are passed over by dispatch and taken by hand") {
  const auto rows = parse_asm_table(
      "qType,kvType,Gqa,ps,qSeqLen,prefill,causal,lse,knl_name,co_name,fault,imitates\n"
      "bf16,bf16,16,0,4,0,1,0,four,four+bad.co,bad,https://example.org\n"
      "bf16,bf16,16,0,4,0,1,0,four,four.co,,\n",
      "x.csv");
  const auto choice = dispatch_decode(rows, bf16_call(16, 3));
  CHECK(std::get<DecodeLaunch>(choice).row.object == "four.co");
  CHECK(rows[0].imitates == "https://example.org");
  const auto by_hand = dispatch_by_hand(rows[0], bf16_call(16, 8));
  CHECK(std::get<DecodeLaunch>(by_hand).row.object == "four+bad.co");
  CHECK(std::get<DecodeLaunch>(by_hand).s_mqa == 128);
  CHECK(std::holds_alternative<Refusal>(dispatch_by_hand(rows[0], bf16_call(16, 3, true))));
}
