// SPDX-License-Identifier: MIT
//
// The judge and the relations of verify_attention against a software kernel, good and with each wrong window.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "oracle/judge.h"
#include "oracle/relation.h"
#include "oracle/tests/row_kernel.h"

using namespace attest;
using namespace attest::oracle;
using namespace attest::oracle::testing;
using cases::Format;

namespace {

/// The mask that a kernel goes by for a node (and a head, where heads were taken for positions).
using Window = std::function<std::uint64_t(const std::vector<std::uint64_t>& masks, int node, int head)>;

std::uint64_t right(const std::vector<std::uint64_t>& masks, int node, int) {
  return masks[static_cast<std::size_t>(node)];
}

cases::Outputs run(const cases::Case& c, const cases::Inputs& inputs, const Window& window) {
  const auto& p = std::get<cases::VerifyAttention>(c.problem);
  const auto& in = std::get<cases::VerifyAttentionInputs>(inputs);
  cases::Outputs outputs;
  outputs.tensors = {{"out", {}}, {"lse", {}}};
  const std::size_t row_bytes = 576 * (p.kv_format == Format::bf16 ? 2 : 1);
  for (std::size_t r = 0; r < p.requests.size(); ++r) {
    const cases::TreeRequest& request = p.requests[r];
    const auto masks = cases::tree_mask(request);
    std::vector<Row> keys;
    for (int t = 0; t < request.context_len + request.nodes(); ++t) {
      const auto page = static_cast<std::uint64_t>(
          in.decode.kv_page_indices[static_cast<std::size_t>(in.decode.kv_indptr[r] + t / p.page_size)]);
      keys.push_back(row_of(p.kv_format,
                            in.decode.kv_pool.at(page * in.decode.page_stride_bytes +
                                                     static_cast<std::uint64_t>(t % p.page_size) * row_bytes,
                                                 row_bytes)));
    }
    for (int node = 0; node < request.nodes(); ++node)
      for (int head = 0; head < p.heads; ++head) {
        const auto q_row =
            static_cast<std::size_t>((in.q_indptr[r] + p.lead + node) * p.heads + head) * 576 * 2;
        const Row q = row_of(Format::bf16, std::span(in.q).subspan(q_row, std::size_t{576} * 2));
        const std::uint64_t mask = window(masks, node, head);
        RowState state;
        for (int t = 0; t < request.context_len + request.nodes(); ++t)
          if (t < request.context_len || (mask >> (t - request.context_len) & 1) != 0)
            state.take(q, keys[static_cast<std::size_t>(t)],
                       std::span(keys[static_cast<std::size_t>(t)]).first(512), p.sm_scale * p.kv_scale);
        for (const float value : state.out)
          put_bf16(outputs.tensors[0].bytes, value / state.sum * p.kv_scale);
        put_f32(outputs.tensors[1].bytes, state.lse());
      }
  }
  if (!p.return_lse) outputs.tensors.pop_back();
  return outputs;
}

cases::Case a_case(std::vector<cases::TreeRequest> requests, int heads = 2) {
  cases::Case c;
  c.seed = 3;
  cases::VerifyAttention p;
  p.heads = heads;
  p.page_size = 4;
  p.requests = std::move(requests);
  c.problem = p;
  return c;
}

const std::vector<int> tree = {-1, 0, 0, 1, 1, 2, 3};

}  // namespace

TEST_CASE("A tree's mask is ancestors and self") {
  CHECK(cases::tree_mask({5, tree}) ==
        std::vector<std::uint64_t>{0b1, 0b11, 0b101, 0b1011, 0b10011, 0b100101, 0b1001011});
  CHECK(cases::tree_mask({0, {-1, 0, 1}}) == std::vector<std::uint64_t>{1, 3, 7});
}

TEST_CASE("Right windows pass in every fill, with leading rows, folded, in fp8, with and without context") {
  double used = 0;
  for (int fill = 0; fill <= static_cast<int>(cases::Fill::exact); ++fill)
    for (const bool fp8 : {false, true}) {
      cases::Case c = a_case({{13, tree}, {0, {-1, 0, 1, 2}}, {30, {}}, {3, {-1, 0, 0, 0}}});
      auto& p = std::get<cases::VerifyAttention>(c.problem);
      c.data.fill = static_cast<cases::Fill>(fill);
      c.seed += static_cast<std::uint64_t>(fill);
      if (fp8) {
        p.kv_format = Format::fp8_e4m3fnuz;
        p.kv_scale = 2;
      }
      p.lead = fill % 3;
      p.fold = 1 + fill % 2;
      INFO(cases::canonical_json(c));
      const cases::Inputs inputs = cases::materialise(c);
      const Verdict v = judge(c, inputs, run(c, inputs, right), profile("fp32p"));
      INFO(v.diagnosis << ": " << v.detail);
      CHECK(v.kind == VerdictKind::pass);
      used = std::max(used, v.used_budget);
    }
  CHECK(used < 0.9);
}

TEST_CASE("Each wrong window fails and is named") {
  struct Planted {
    const char* diagnosis;
    Window window;
  };
  const std::vector<Planted> planted = {
      {"later drafts seen", [](const auto&, int, int) { return ~std::uint64_t{0}; }},
      {"nodes of other branches seen",
       [](const auto&, int node, int) { return (std::uint64_t{2} << node) - 1; }},
      {"every row has the window of the first", [](const auto& masks, int, int) { return masks[0]; }},
      {"leading rows counted as nodes",
       [](const auto& masks, int node, int) {
         return masks[std::min(static_cast<std::size_t>(node + 2), masks.size() - 1)];
       }},
  };
  for (const Planted& p : planted) {
    cases::Case c = a_case({{21, tree}, {2, {-1, 0, 0, 1}}});
    std::get<cases::VerifyAttention>(c.problem).lead = 2;
    const cases::Inputs inputs = cases::materialise(c);
    const Verdict v = judge(c, inputs, run(c, inputs, p.window), profile("fp32p"));
    INFO(p.diagnosis << " was called " << v.diagnosis << ": " << v.detail);
    CHECK(v.kind == VerdictKind::fail);
    CHECK(v.diagnosis == p.diagnosis);
  }
  // Heads taken for positions: every other head has another window.
  cases::Case c = a_case({{21, {-1, 0, 1, 2}}}, 4);
  std::get<cases::VerifyAttention>(c.problem).fold = 2;
  const cases::Inputs inputs = cases::materialise(c);
  const Verdict v = judge(c, inputs,
                          run(c, inputs,
                              [](const auto& masks, int node, int head) {
                                return masks[static_cast<std::size_t>(std::min(2 * node + head / 2, 3))];
                              }),
                          profile("fp32p"));
  CHECK(v.kind == VerdictKind::fail);
}

TEST_CASE("Relations hold for right windows and fail for wrong ones") {
  int future = 0, padded = 0, caught_future = 0, caught_padded = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    cases::Case c = a_case({{9, tree}, {2, {-1, 0, 0, 1}}});
    c.seed = seed;
    auto& p = std::get<cases::VerifyAttention>(c.problem);
    p.lead = static_cast<int>(seed / 8 % 2);
    const cases::Inputs inputs = cases::materialise(c);
    for (const Relation& relation : relations(c, inputs, profile("bf16"))) {
      const auto verdict = [&](const Window& window, const Window& window_of_changed) {
        return relation.compare(run(c, inputs, window), run(relation.c, relation.inputs, window_of_changed))
            .kind;
      };
      CHECK(verdict(right, right) == VerdictKind::pass);
      const Window all = [](const auto&, int, int) { return ~std::uint64_t{0}; };
      if (relation.name == "future kv") {
        ++future;
        caught_future += verdict(all, all) == VerdictKind::fail ? 1 : 0;
      } else {
        ++padded;
        caught_padded += verdict(right, all) == VerdictKind::fail ? 1 : 0;
      }
    }
  }
  CHECK(future >= 2);
  CHECK(padded >= 2);
  CHECK(caught_future == future);
  CHECK(caught_padded == padded);
}
