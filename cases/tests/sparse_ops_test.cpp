// SPDX-License-Identifier: MIT
//
// The ops of sparse selection: what their case files refuse, and what their data promises.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"
#include "reference/formats.h"

namespace attest::cases {
namespace {

Case case_of(Problem problem, Fill fill = Fill::normal) {
  Case c;
  c.seed = 5;
  c.problem = std::move(problem);
  c.data.fill = fill;
  return c;
}

std::string message_of(const Case& c) {
  try {
    validate(c);
  } catch (const CaseError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("A problem reads back from the least file and from its own text") {
  const Case remap = parse_case(
      R"({"schema": 1, "op": "index_remap", "seed": "0x5", "shape": {"requests": [{"q_len": 1, "kv_len": 5}]}})");
  CHECK(remap == case_of(IndexRemap{.requests = {{1, 5}}}));
  for (const Problem& p :
       {Problem{IndexRemap{.k = 3, .layout = SlotLayout::ragged, .requests = {{2, 9}}}},
        Problem{TopK{.k = 7, .form = TopKForm::decode, .requests = {{2, 9}, {2, 1}}}},
        Problem{CacheWrite{.layout = CacheLayout::fp8, .requests = {{2, 9}}, .kv_scale = 0.37F}},
        Problem{IndexerLogits{.heads = 3, .requests = {{2, 9}}}}}) {
    const Case c = case_of(p);
    INFO(pretty_json(c));
    CHECK(parse_case(pretty_json(c)) == c);
    CHECK(parse_case(canonical_json(c)) == c);
  }
  CHECK_THROWS_WITH(
      parse_case(R"({"schema": 1, "op": "topk", "seed": "0x5", "scales": {"q_scale": "0x3f800000"},
                                   "shape": {"requests": [{"q_len": 1, "kv_len": 5}]}})"),
      Catch::Contains("scales.q_scale"));
}

TEST_CASE("What an op cannot mean is refused by its field") {
  using Catch::Contains;
  CHECK_THAT(message_of(case_of(IndexRemap{.k = 0, .requests = {{1, 5}}})), Contains("shape.k: 0"));
  CHECK_THAT(message_of(case_of(IndexRemap{.requests = {{1, 5}}}, Fill::needle)), Contains("data.fill"));
  CHECK_THAT(message_of(case_of(IndexRemap{.requests = {{0, 5}}})), Contains("every q_len is 0"));
  CHECK_THAT(message_of(case_of(TopK{.form = TopKForm::decode, .requests = {{2, 9}, {1, 9}}})),
             Contains("next_n"));
  CHECK_THAT(message_of(case_of(TopK{.requests = {{1, 9}}}, Fill::exact)), Contains("data.fill"));
  CHECK_THAT(message_of(case_of(TopK{.requests = {{4096, 1 << 20}}})), Contains("logits"));
  CHECK_THAT(message_of(case_of(CacheWrite{.requests = {{3, 2}}})), Contains("3 new tokens, but only 2"));
  CHECK_THAT(message_of(case_of(CacheWrite{.ceiling = 240, .requests = {{1, 2}}})), Contains("group scales"));
  CHECK_THAT(
      message_of(case_of(CacheWrite{.layout = CacheLayout::ds_mla, .ceiling = 448, .requests = {{1, 2}}})),
      Contains("shape.ceiling: 448"));
  CHECK_THAT(message_of(case_of(CacheWrite{.requests = {{1, 2}}, .kv_scale = 2})),
             Contains("scales.kv_scale"));
  CHECK_THAT(message_of(case_of(IndexerLogits{.requests = {{9, 20}}})), Contains("1..8"));
  CHECK_THAT(message_of(case_of(IndexerLogits{.requests = {{1, 20}}}, Fill::tiny)), Contains("data.fill"));
  CHECK_THAT(message_of(case_of(MlaDecode{.requests = {{1, 5}}}, Fill::few_values)),
             Contains("not for attention"));
  Case shared = case_of(CacheWrite{.requests = {{1, 2}, {1, 2}}});
  shared.memory.prefix_sharing = true;
  CHECK_THAT(message_of(shared), Contains("prefix_sharing"));
}

TEST_CASE("Index lists are what their pattern says") {
  std::vector<std::int32_t> list(40);
  for (std::uint32_t row = 0; row < 200; ++row) {
    const int visible = static_cast<int>(row % 90);
    index_list(3, IndexPattern::selected, row, visible, 1000, list);
    const auto end = std::find(list.begin(), list.end(), -1);
    CHECK(end - list.begin() == std::min(visible, 40));
    CHECK(std::all_of(end, list.end(), [](int i) { return i == -1; }));
    CHECK(std::set<int>(list.begin(), end).size() == static_cast<std::size_t>(end - list.begin()));
    CHECK(std::all_of(list.begin(), end, [&](int i) { return i >= 0 && i < visible; }));

    index_list(3, IndexPattern::leading, row, visible, 1000, list);
    CHECK(list.front() == -1);
    std::vector<int> keys;
    std::copy_if(list.begin(), list.end(), std::back_inserter(keys), [](int i) { return i != -1; });
    CHECK(std::set<int>(keys.begin(), keys.end()).size() == keys.size());
    CHECK(keys.empty() == (visible == 0));

    index_list(3, IndexPattern::repeated, row, visible, 1000, list);
    CHECK(std::all_of(list.begin(), list.end(),
                      [&](int i) { return visible == 0 ? i == -1 : i >= 0 && i < visible; }));

    index_list(3, IndexPattern::hostile, row, visible, 1000, list);
    CHECK(std::all_of(list.begin(), list.end(), [&](int i) { return i < visible || i >= 1000; }));
  }
}

TEST_CASE("Poison for numbers never says none") {
  const Case c = case_of(IndexRemap{.requests = {{1, 5}}});
  for (int poison = 0; poison <= static_cast<int>(Poison::zero); ++poison)
    for (const std::int32_t i : poison_integers(c, static_cast<Poison>(poison), 1000, "x")) CHECK(i != -1);
}

TEST_CASE("topk: a row's scores depend on its number and length, not on where it lies") {
  const auto scores = [](TopKForm form, std::size_t row) {
    const Case c = case_of(TopK{.form = form, .requests = {{2, 30}, {2, 40}}});
    const auto in = std::get<TopKInputs>(materialise(c));
    const float* from = in.logits.data() + row * static_cast<std::size_t>(in.row_stride) + in.row_begin[row];
    return std::vector<float>(from, from + (in.row_end[row] - in.row_begin[row]));
  };
  CHECK(scores(TopKForm::prefill, 3) == scores(TopKForm::decode, 3));
  CHECK(scores(TopKForm::prefill, 3).size() == 40);
  CHECK(scores(TopKForm::prefill, 0).size() == 29);

  const auto in =
      std::get<TopKInputs>(materialise(case_of(TopK{.row_padding = 4, .requests = {{2, 30}, {2, 40}}})));
  int low = 0, high = 0;
  for (std::size_t column = 30; column < 74; ++column) {
    CHECK(std::isnan(in.logits[column]));
    (std::signbit(in.logits[column]) ? low : high) += 1;
  }
  CHECK(low > 10);
  CHECK(high > 10);
}

TEST_CASE("cache_write: every token with a slot has one of its own") {
  const Case c = case_of(
      CacheWrite{.page_size = 4, .padding_tokens = 3, .skip_tokens = true, .requests = {{20, 33}, {7, 7}}});
  const auto in = std::get<CacheWriteInputs>(materialise(c));
  CHECK(in.slot_mapping.size() == 30);
  std::set<std::int64_t> slots;
  int skipped = 0;
  for (const std::int64_t slot : in.slot_mapping) {
    if (slot < 0)
      ++skipped;
    else
      CHECK(slots.insert(slot).second);
  }
  CHECK(skipped > 3);
  CHECK(skipped < 20);
}

TEST_CASE("indexer_logits: exact data keeps every partial sum below 2^24 units") {
  const IndexerLogits p{.form = TopKForm::prefill, .heads = 128, .requests = {{2, 20}}};
  const auto in = std::get<IndexerLogitsInputs>(materialise(case_of(p, Fill::exact)));
  for (const std::byte code : in.q) {
    const double x = reference::decode(reference::Format::fp8_e4m3fnuz, std::to_integer<std::uint32_t>(code));
    CHECK((x == std::floor(x) && std::abs(x) <= 2));
  }
  double smallest = 1e9, sum = 0;
  for (std::size_t h = 0; h < 128; ++h) {
    const double w = std::abs(double{in.weights[h]} * double{in.q_scale[h]});
    smallest = std::min(smallest, w);
    sum += w * 512;
    CHECK(std::log2(w) == std::floor(std::log2(w)));
  }
  CHECK(sum / smallest < 0x1p24);
}

TEST_CASE("indexer_logits: pages hold what the gathered form has, and neighbouring scales differ") {
  const Case paged = case_of(IndexerLogits{.page_size = 4, .requests = {{1, 30}}});
  const auto decode = std::get<IndexerLogitsInputs>(materialise(paged));
  const auto prefill = std::get<IndexerLogitsInputs>(
      materialise(case_of(IndexerLogits{.form = TopKForm::prefill, .requests = {{1, 30}}})));
  for (std::size_t t = 0; t < 30; ++t) {
    const std::uint64_t page =
        static_cast<std::uint64_t>(decode.block_table[t / 4]) * decode.page_stride_bytes;
    const auto values = decode.pool.at(page + t % 4 * 128, 128);
    CHECK(std::equal(values.begin(), values.end(),
                     prefill.keys.begin() + static_cast<std::ptrdiff_t>(t * 128)));
    float scale = 0;
    std::memcpy(&scale, decode.pool.at(page + 512 + t % 4 * 4, 4).data(), 4);
    CHECK(scale == prefill.k_scale[t]);
    if (t > 0) CHECK(prefill.k_scale[t] != prefill.k_scale[t - 1]);
  }
}

}  // namespace attest::cases
