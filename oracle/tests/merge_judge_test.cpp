// SPDX-License-Identifier: MIT
//
// The judge of merge_states against a merge in f32, good and with each defect it should name.
#include "oracle/merge_judge.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "oracle/judge.h"
#include "reference/formats.h"

using namespace attest;
using namespace attest::oracle;
using cases::Empties;
using cases::EmptyLse;
using cases::Format;
using cases::LseBase;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// What a kernel may do wrong.
struct Model {
  int skipped = -1;            ///< this state
  bool empty_is_zero = false;  ///< states without keys enter as (0, lse 0)
  bool plus_inf_counts = false;
  bool unguarded = false;
  bool other_base = false;
  bool first_strides = false;
  bool no_weights = false;
  bool writes_padding = false;
  bool writes_nothing = false;
  bool pairwise = false;  ///< a correct way: one state after the other, with running rescale
};

reference::Format format_of(Format format) {
  return format == Format::bf16 ? reference::Format::bf16 : reference::Format::f32;
}

float element(const std::vector<std::byte>& bytes, Format format, std::int64_t at) {
  const std::size_t size = format == Format::bf16 ? 2 : 4;
  std::uint32_t bits = 0;
  std::memcpy(&bits, bytes.data() + static_cast<std::size_t>(at) * size, size);
  return static_cast<float>(reference::decode(format_of(format), bits));
}

cases::Outputs run(const cases::Case& c, const cases::Inputs& inputs, const Model& model) {
  const auto& p = std::get<cases::MergeStates>(c.problem);
  const auto& in = std::get<cases::MergeStatesInputs>(inputs);
  const cases::StateLayout layout = p.out_layout();
  const auto elements = static_cast<std::size_t>(p.elements(layout));
  std::vector<std::byte> out =
      p.in_place ? in.states[0].out : cases::poison_bytes(c, c.memory.output, p.out_format, elements, "out");
  const auto rows = static_cast<std::size_t>(p.tokens * p.heads);
  std::vector<std::byte> lse_out = cases::poison_bytes(c, c.memory.output, Format::f32, rows, "lse");
  const bool two = (p.lse_base == LseBase::two) != model.other_base;
  const auto power = [two](float x) { return two ? std::exp2(x) : std::exp(x); };
  const std::size_t size = p.out_format == Format::bf16 ? 2 : 4;
  for (int token = 0; token < p.tokens && !model.writes_nothing; ++token)
    for (int head = 0; head < p.heads; ++head) {
      std::vector<float> lse, acc(static_cast<std::size_t>(p.head_dim), 0.0F);
      std::vector<bool> readable;
      for (std::size_t s = 0; s < in.states.size(); ++s) {
        float value = in.states[s].lse[static_cast<std::size_t>(p.lse_index(token, head))];
        const bool keys = model.plus_inf_counts ? value != -infinity : std::isfinite(value);
        readable.push_back(keys);
        if (!keys) value = model.empty_is_zero ? 0.0F : -infinity;
        if (model.no_weights && keys) value = 0;
        if (model.skipped == static_cast<int>(s)) value = -infinity;
        lse.push_back(value);
      }
      float max = -infinity, sum = 0;
      const auto add = [&](std::size_t s, float weight) {
        sum += weight;
        if (weight == 0 || !readable[s]) return;
        const cases::StateLayout& l = p.states[model.first_strides ? 0 : s];
        const std::int64_t at = token * p.token_stride(l) + head * p.head_stride(l);
        for (int d = 0; d < p.head_dim; ++d)
          acc[static_cast<std::size_t>(d)] += weight * element(in.states[s].out, p.state_format, at + d);
      };
      if (model.pairwise) {
        for (std::size_t s = 0; s < lse.size(); ++s) {
          if (lse[s] == -infinity) continue;
          const float now = std::max(max, lse[s]);
          const float rescale = max == -infinity ? 0.0F : power(max - now);
          for (float& a : acc) a *= rescale;
          sum *= rescale;
          max = now;
          add(s, power(lse[s] - max));
        }
      } else {
        for (const float l : lse) max = std::max(max, l);
        const float origin = max == -infinity && !model.unguarded ? 0.0F : max;
        for (std::size_t s = 0; s < lse.size(); ++s) add(s, power(lse[s] - origin));
      }
      const std::int64_t at = token * p.token_stride(layout) + head * p.head_stride(layout);
      for (int d = 0; d < p.head_dim + (model.writes_padding ? 1 : 0); ++d) {
        if (static_cast<std::size_t>(at + d) >= elements) break;
        const float y = d == p.head_dim ? 0 : sum == 0 ? 0 : acc[static_cast<std::size_t>(d)] / sum;
        const std::uint32_t bits =
            reference::encode(format_of(p.out_format), double{y}, reference::Overflow::to_special);
        std::memcpy(out.data() + static_cast<std::size_t>(at + d) * size, &bits, size);
      }
      const float log = p.lse_base == LseBase::two ? std::log2(sum) : std::log(sum);
      const float result = sum == 0 ? -infinity : max + log;
      std::memcpy(lse_out.data() + static_cast<std::size_t>(p.lse_index(token, head)) * 4, &result, 4);
    }
  cases::Outputs outputs;
  outputs.tensors.push_back({"out", std::move(out)});
  if (p.return_lse) outputs.tensors.push_back({"lse", std::move(lse_out)});
  return outputs;
}

cases::Case a_case(int states, std::uint64_t seed = 7) {
  cases::Case c;
  c.seed = seed;
  cases::MergeStates p;
  p.tokens = 5;
  p.heads = 3;
  p.head_dim = 64;
  p.states.resize(static_cast<std::size_t>(states));
  c.problem = p;
  return c;
}

cases::MergeStates& problem(cases::Case& c) {
  return std::get<cases::MergeStates>(c.problem);
}

Verdict verdict(const cases::Case& c, const Model& model) {
  const cases::Inputs inputs = cases::materialise(c);
  return judge(c, inputs, run(c, inputs, model), profile("fp32p"));
}

}  // namespace

TEST_CASE("Correct merges pass, together or one after the other, at the corners of every axis") {
  double used = 0;
  std::uint64_t seed = 1;
  for (const auto fill :
       {cases::Fill::normal, cases::Fill::constant_scores, cases::Fill::wide_scores, cases::Fill::cancelling})
    for (const Empties empty : {Empties::none, Empties::some, Empties::leading, Empties::rows})
      for (const EmptyLse lse : {EmptyLse::minus_inf, EmptyLse::plus_inf, EmptyLse::either})
        for (const int states : {1, 2, 5, 16, 32}) {
          cases::Case c = a_case(states, ++seed);
          cases::MergeStates& p = problem(c);
          c.data.fill = fill;
          p.empty = empty;
          p.empty_lse = lse;
          p.lse_base = seed % 2 == 0 ? LseBase::e : LseBase::two;
          p.lse_layout = seed % 3 == 0 ? cases::LseLayout::heads_first : cases::LseLayout::tokens_first;
          p.state_format = seed % 5 < 2 ? Format::bf16 : Format::f32;
          p.out_format = seed % 7 < 3 ? Format::bf16 : Format::f32;
          for (std::size_t s = 0; s < p.states.size(); ++s) p.states[s] = {static_cast<int>(s % 3) * 8, 16};
          if (seed % 4 == 0 && p.state_format == p.out_format) p.in_place = true;
          for (const bool pairwise : {false, true}) {
            INFO(cases::canonical_json(c));
            const Verdict v = verdict(c, {.pairwise = pairwise});
            INFO(v.diagnosis << ": " << v.detail);
            CHECK(v.kind != VerdictKind::fail);
            CHECK(v.kind != VerdictKind::harness_error);
            used = std::max(used, v.used_budget);
          }
        }
  CHECK(used < 0.9);
  CHECK(used > 0.05);  // the bound is near what happens
}

TEST_CASE("Each defect of a merge fails and is named") {
  struct Planted {
    const char* diagnosis;
    Model model;
    std::function<void(cases::Case&)> change;
  };
  const auto nothing = [](cases::Case&) {};
  const std::vector<Planted> planted = {
      {"one state missing", {.skipped = 2}, nothing},
      {"states without keys take weight",
       {.empty_is_zero = true},
       [](cases::Case& c) { problem(c).empty = Empties::some; }},
      {"nan where no state has keys",
       {.unguarded = true},
       [](cases::Case& c) { problem(c).empty = Empties::rows; }},
      {"nan from an lse of +inf",
       {.plus_inf_counts = true},
       [](cases::Case& c) {
         problem(c).empty = Empties::some;
         problem(c).empty_lse = EmptyLse::plus_inf;
       }},
      {"natural lse merged as base 2", {.other_base = true}, nothing},
      {"lse base 2 merged as natural",
       {.other_base = true},
       [](cases::Case& c) { problem(c).lse_base = LseBase::two; }},
      {"strides of the first state for all",
       {.first_strides = true},
       [](cases::Case& c) {
         problem(c).states[1].head_padding = 64;
         c.memory.unused = cases::Poison::stale;
       }},
      {"states merged without their lse", {.no_weights = true}, nothing},
      {"wrote between its rows",
       {.writes_padding = true},
       [](cases::Case& c) {
         problem(c).states[0].head_padding = 8;
         problem(c).in_place = true;
       }},
      {"rows unwritten", {.writes_nothing = true}, nothing},
  };
  for (const Planted& p : planted)
    for (const Format out : {Format::bf16, Format::f32}) {
      cases::Case c = a_case(4);
      problem(c).state_format = problem(c).out_format = out;
      p.change(c);
      INFO(p.diagnosis);
      const Verdict bad = verdict(c, p.model);
      INFO(bad.diagnosis << ": " << bad.detail);
      CHECK(bad.kind == VerdictKind::fail);
      CHECK(bad.diagnosis == p.diagnosis);
      CHECK(verdict(c, {}).kind == VerdictKind::pass);
    }
}

TEST_CASE("A weight wrong by one part in a million shows in f32, an lse by a few ulp") {
  cases::Case c = a_case(2);
  problem(c).out_format = problem(c).state_format = Format::f32;
  const cases::Inputs inputs = cases::materialise(c);
  cases::Outputs outputs = run(c, inputs, {});
  const auto nudge = [](std::vector<std::byte>& bytes, std::size_t at, float by) {
    float value;
    std::memcpy(&value, bytes.data() + 4 * at, 4);
    value += by * std::max(1.0F, std::abs(value));
    std::memcpy(bytes.data() + 4 * at, &value, 4);
  };
  nudge(outputs.tensors[1].bytes, 3, 3e-6F);
  Verdict v = judge(c, inputs, outputs, profile("fp32p"));
  CHECK(v.kind == VerdictKind::fail);
  CHECK(v.stage == "lse");
  CHECK(v.rows_failed == 1);
  outputs = run(c, inputs, {});
  nudge(outputs.tensors[0].bytes, 100, 5e-6F);
  v = judge(c, inputs, outputs, profile("fp32p"));
  CHECK(v.kind == VerdictKind::fail);
  CHECK(v.elements_failed == 1);
}

TEST_CASE("Outputs that are not there are the harness's fault") {
  const cases::Case c = a_case(2);
  const cases::Inputs inputs = cases::materialise(c);
  CHECK(judge(c, inputs, {}, profile("fp32p")).kind == VerdictKind::harness_error);
  cases::Outputs outputs = run(c, inputs, {});
  outputs.tensors[1].bytes.pop_back();
  CHECK(judge(c, inputs, outputs, profile("fp32p")).kind == VerdictKind::harness_error);
}
