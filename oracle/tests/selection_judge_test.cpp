// SPDX-License-Identifier: MIT
//
// The judges of index_remap and topk against hand-made outputs: right ones pass, each kind of wrong one fails
// by its name.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "oracle/judge.h"
#include "oracle/precision.h"
#include "reference/top_k.h"

namespace attest::oracle {
namespace {

cases::Outputs outputs_of(const char* name, const std::vector<std::int32_t>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  cases::Outputs outputs;
  outputs.tensors.push_back({name, {bytes.begin(), bytes.end()}});
  return outputs;
}

cases::Case case_of(cases::Problem problem, cases::Fill fill = cases::Fill::normal) {
  cases::Case c;
  c.seed = 7;
  c.problem = std::move(problem);
  c.data.fill = fill;
  return c;
}

/// What the judge says of `values`: "pass", or the diagnosis.
std::string said(const cases::Case& c, const cases::Inputs& in, const char* name,
                 const std::vector<std::int32_t>& values) {
  const Verdict v = judge(c, in, outputs_of(name, values), profile("bf16"));
  return v.kind == VerdictKind::pass ? "pass" : v.diagnosis;
}

/// Written out, by the definition.
std::vector<std::int32_t> slots_of(const cases::IndexRemap& p, const cases::IndexRemapInputs& in) {
  std::vector<std::int32_t> slots;
  for (int row = 0; row < static_cast<int>(in.request_of_row.size()); ++row) {
    const int count =
        in.slot_indptr[static_cast<std::size_t>(row) + 1] - in.slot_indptr[static_cast<std::size_t>(row)];
    for (int e = 0; e < count; ++e) {
      const int position = in.indices[static_cast<std::size_t>(row * p.k + e)];
      const int limit = in.table_width * p.page_size;
      if (position < 0 || position >= limit) {
        slots.push_back(p.invalid == cases::InvalidEntry::minus_one ? -1 : 0);
        continue;
      }
      const int request = in.request_of_row[static_cast<std::size_t>(row)];
      const int page =
          in.block_table[static_cast<std::size_t>(request * in.table_stride + position / p.page_size)];
      slots.push_back(page * p.page_size + position % p.page_size);
    }
  }
  return slots;
}

/// By the reference, which its own tests hold to the definition.
std::vector<std::int32_t> positions_of(const cases::TopK& p, const cases::TopKInputs& in) {
  std::vector<std::int32_t> all;
  for (std::size_t row = 0; row < in.row_begin.size(); ++row) {
    const int begin = in.row_begin[row];
    const int n = std::max(in.row_end[row] - begin, 0);
    const float* scores = in.logits.data() + row * static_cast<std::size_t>(in.row_stride) + begin;
    std::vector<std::int32_t> chosen = reference::top_k(std::vector<double>(scores, scores + n), p.k);
    if (p.coordinates == cases::Coordinates::absolute)
      for (std::int32_t& position : chosen) position += begin;
    chosen.resize(static_cast<std::size_t>(p.k), -1);
    all.insert(all.end(), chosen.begin(), chosen.end());
  }
  return all;
}

}  // namespace

TEST_CASE("index_remap: right slots pass in every layout, rule and pattern") {
  for (const auto layout : {cases::SlotLayout::dense, cases::SlotLayout::ragged})
    for (const auto invalid : {cases::InvalidEntry::minus_one, cases::InvalidEntry::slot_zero})
      for (int pattern = 0; pattern <= static_cast<int>(cases::IndexPattern::hostile); ++pattern) {
        const cases::IndexRemap p{.k = 24,
                                  .page_size = 8,
                                  .layout = layout,
                                  .invalid = invalid,
                                  .indices = static_cast<cases::IndexPattern>(pattern),
                                  .table_padding = 3,
                                  .requests = {{2, 37}, {3, 2}, {1, 100}}};
        const cases::Case c = case_of(p);
        const cases::Inputs in = cases::materialise(c);
        INFO(cases::canonical_json(c));
        CHECK(said(c, in, "slots", slots_of(p, std::get<cases::IndexRemapInputs>(in))) == "pass");
      }
}

TEST_CASE("index_remap: wrong slots are called by their cause") {
  cases::IndexRemap p{.k = 24, .page_size = 8, .requests = {{2, 37}, {1, 60}}};
  p.indices = cases::IndexPattern::scattered;
  const cases::Case c = case_of(p);
  const cases::Inputs inputs = cases::materialise(c);
  const auto& in = std::get<cases::IndexRemapInputs>(inputs);
  const std::vector<std::int32_t> right = slots_of(p, in);
  const auto with = [&](auto change) {
    std::vector<std::int32_t> slots = right;
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = change(in.indices[i], slots[i]);
    return said(c, inputs, "slots", slots);
  };
  CHECK(with([](int, int slot) { return slot; }) == "pass");
  CHECK(with([](int position, int) { return position; }) == "positions taken for slots");
  CHECK(with([](int, int slot) { return slot < 0 ? 0 : slot; }) == "entry without a key became slot 0");
  CHECK(with([](int, int slot) { return slot < 0 ? 3 : slot; }) == "entry without a key became a slot");
  CHECK(with([](int position, int slot) { return slot < 0 ? slot : slot - position % 8; }) ==
        "offset in the page lost");
  CHECK(with([](int, int slot) { return slot + 1; }) == "wrong slots");
  CHECK(said(c, inputs, "slots", cases::poison_integers(c, c.memory.output, right.size(), "slots")) ==
        "entries not written");
  std::vector<std::int32_t> foreign = right;
  for (std::size_t i = 0; i < 24; ++i)
    if (in.indices[i] >= 0)
      foreign[i] = in.block_table[static_cast<std::size_t>(in.table_stride + in.indices[i] / 8)] * 8 +
                   in.indices[i] % 8;
  CHECK(said(c, inputs, "slots", foreign) == "block table of another request");
  CHECK(said(c, inputs, "slots", {1, 2}) == "outputs missing or of the wrong size");

  // -1 where slot 0 is asked for is as wrong.
  p.invalid = cases::InvalidEntry::slot_zero;
  const cases::Case zero = case_of(p);
  CHECK(said(zero, cases::materialise(zero), "slots", right) == "entry without a key stayed -1");
}

TEST_CASE("index_remap: lists that name no key prove nothing") {
  const cases::Case c = case_of(cases::IndexRemap{.k = 3, .requests = {{1, 0}}});
  CHECK(judge(c, cases::materialise(c), outputs_of("slots", {-1, -1, -1}), profile("bf16")).kind ==
        VerdictKind::mistrusted);
}

TEST_CASE("topk: right selections pass for every fill, form and promise") {
  using cases::Fill;
  for (const auto form : {cases::TopKForm::prefill, cases::TopKForm::decode})
    for (const auto order : {cases::TopKOrder::any, cases::TopKOrder::ascending})
      for (const auto coordinates : {cases::Coordinates::local, cases::Coordinates::absolute})
        for (const auto nan : {cases::NanOrder::unspecified, cases::NanOrder::ordered})
          for (const Fill fill :
               {Fill::normal, Fill::mean_shifted, Fill::constant_scores, Fill::few_values, Fill::zero_ties,
                Fill::infinities, Fill::nans, Fill::ascending, Fill::descending}) {
            const cases::TopK p{.k = 20,
                                .form = form,
                                .order = order,
                                .nan = nan,
                                .coordinates = coordinates,
                                .row_padding = 5,
                                .requests = {{3, 60}, {3, 1}, {3, 21}}};
            const cases::Case c = case_of(p, fill);
            const cases::Inputs in = cases::materialise(c);
            INFO(cases::canonical_json(c));
            std::vector<std::int32_t> right = positions_of(p, std::get<cases::TopKInputs>(in));
            CHECK(said(c, in, "positions", right) == "pass");
            if (order == cases::TopKOrder::any) {
              std::reverse(right.begin(), right.begin() + 20);
              CHECK(said(c, in, "positions", right) == "pass");
            }
          }
}

TEST_CASE("topk: wrong selections are called by their cause") {
  const cases::TopK p{.k = 20, .requests = {{2, 60}, {2, 90}}};
  const cases::Case c = case_of(p);
  const cases::Inputs inputs = cases::materialise(c);
  const auto& in = std::get<cases::TopKInputs>(inputs);
  const std::vector<std::int32_t> right = positions_of(p, in);
  const auto with = [&](auto change) {
    std::vector<std::int32_t> positions = right;
    change(positions);
    return said(c, inputs, "positions", positions);
  };
  using Positions = std::vector<std::int32_t>;
  CHECK(with([](Positions&) {}) == "pass");
  CHECK(with([](Positions& v) { v[19] = -1; }) == "fewer chosen than there are");
  CHECK(with([](Positions& v) { v[1] = v[0]; }) == "position chosen twice");
  CHECK(with([](Positions& v) { v[3] = 59; }) == "position outside of the row");  // row 0 has 59 columns
  CHECK(with([](Positions& v) {
          for (std::size_t i = 40; i < 80; ++i) v[i] += 60;
        }) == "columns instead of positions");
  CHECK(with([](Positions& v) { std::rotate(v.begin(), v.begin() + 1, v.begin() + 20); }) == "pass");
  const Positions poison = cases::poison_integers(c, c.memory.output, right.size(), "positions");
  CHECK(with([&](Positions& v) { std::copy(poison.begin() + 60, poison.end(), v.begin() + 60); }) ==
        "rows not written");
  CHECK(with([&](Positions& v) {  // the worst instead of the best
          std::vector<double> low;
          for (int i = 0; i < 59; ++i) low.push_back(-double{in.logits[static_cast<std::size_t>(i)]});
          const Positions worst = reference::top_k(low, 20);
          std::copy(worst.begin(), worst.end(), v.begin());
        }) == "not the largest scores");
  CHECK(with([&](Positions& v) {  // as if the second request's columns began at 0
          for (int row = 2; row < 4; ++row) {
            std::vector<double> scores;
            const int n =
                in.row_end[static_cast<std::size_t>(row)] - in.row_begin[static_cast<std::size_t>(row)];
            for (int i = 0; i < n; ++i)
              scores.push_back(double{in.logits[static_cast<std::size_t>(row * in.row_stride + i)]});
            const Positions chosen = reference::top_k(scores, 20);
            std::copy(chosen.begin(), chosen.end(), v.begin() + row * 20);
          }
        }) == "row start ignored");

  const cases::Case sorted =
      case_of(cases::TopK{.k = 4, .order = cases::TopKOrder::ascending, .requests = {{1, 9}}},
              cases::Fill::constant_scores);
  const cases::Inputs of_sorted = cases::materialise(sorted);
  CHECK(said(sorted, of_sorted, "positions", {0, 1, 2, 3}) == "pass");
  CHECK(said(sorted, of_sorted, "positions", {0, 2, 1, 3}) == "positions out of order");
  CHECK(said(sorted, of_sorted, "positions", {0, 1, 2, 4}) == "not the first of equal scores");
  const cases::Case few = case_of(cases::TopK{.k = 4, .requests = {{1, 2}}});
  CHECK(said(few, cases::materialise(few), "positions", {1, 0, -1, -1}) == "pass");
  CHECK(said(few, cases::materialise(few), "positions", {-1, 0, 1, -1}) == "entry after the end of the list");
  CHECK(said(few, cases::materialise(few), "positions", {0, 1, -2, -1}) == "position outside of the row");
}

}  // namespace attest::oracle
