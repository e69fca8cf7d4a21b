// SPDX-License-Identifier: MIT
//
// A plain sampler of its own, right and with one rule changed each, judged; and the bands by hand.
#include "oracle/plans/spec_verify_judge.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "oracle/judge.h"

namespace attest::oracle {
namespace {

using namespace cases;
using Ints = std::vector<std::int32_t>;

struct Faults {
  bool strict = false, from_target = false, bonus_always = false, reuse = false, sibling = false,
       zeros = false;
};

struct Result {
  Ints tokens, nodes;
};

/// In fp32, as a kernel does it.
Result sampler(const SpecVerify& p, const SpecVerifyInputs& in, const Faults& f) {
  Result result;
  const std::size_t vocab = static_cast<std::size_t>(p.vocab);
  for (std::size_t r = 0; r < in.greedy.size() + static_cast<std::size_t>(p.padded_requests); ++r) {
    Ints out, path;
    if (r < in.greedy.size()) {
      const std::size_t first = r == 0 ? 0 : static_cast<std::size_t>(in.cu_num_drafts[r - 1]);
      const std::size_t n = static_cast<std::size_t>(in.cu_num_drafts[r]) - first;
      const auto argmax = [&](const std::function<float(std::size_t)>& weight) {
        std::size_t best = 0;
        float most = -1;
        for (std::size_t v = 0; v < vocab; ++v)
          if (weight(v) > most) most = weight(best = v);
        return static_cast<std::int32_t>(best);
      };
      const auto noise = [&](std::size_t v) { return in.exponentials[r * vocab + v]; };
      bool stands = true;
      int node = -1;
      for (std::size_t i = 0; p.tree ? stands : i < n && stands; ++i) {
        const std::size_t row = p.tree ? first + r + static_cast<std::size_t>(node + 1) : first + i;
        const float* target = &in.target_probs[row * vocab];
        const auto of_target = [&](std::size_t v) { return target[v]; };
        if (p.tree) {
          const std::int32_t wanted = argmax(of_target);
          int taken = -1;
          float mass = 0;
          std::vector<std::int32_t> tried;
          for (std::size_t k = 0; k < n && taken < 0; ++k) {
            const int depth = node < 0 ? 0 : in.depth[first + static_cast<std::size_t>(node)];
            if (in.depth[first + k] != depth + 1) continue;
            if (!f.sibling && node >= 0 && (in.ancestors[first + k] >> node & 1U) == 0) continue;
            tried.push_back(in.draft_tokens[first + k]);
            mass += target[tried.back()];
            if (in.greedy[r] != 0 ? tried.back() == wanted : double{mass} >= in.uniforms[row])
              taken = static_cast<int>(k);
          }
          stands = taken >= 0;
          if (stands) path.push_back(taken);
          node = taken;
          out.push_back(stands ? tried.back()
                        : in.greedy[r] != 0
                            ? wanted
                            : argmax([&](std::size_t v) {
                                const bool was = std::find(tried.begin(), tried.end(),
                                                           static_cast<std::int32_t>(v)) != tried.end();
                                return was && !f.from_target ? 0.0F : std::fmax(target[v], 0.0F) / noise(v);
                              }));
          continue;
        }
        const std::int32_t x = in.draft_tokens[first + i];
        const float* draft = p.draft_probs ? &in.draft_probs[row * vocab] : nullptr;
        if (in.greedy[r] != 0) {
          out.push_back(argmax(of_target));
          stands = out.back() == x;
          continue;
        }
        const float q = draft != nullptr ? draft[x] : 1.0F;
        const double u = in.uniforms[f.reuse && i == 1 ? first : row];
        const double ratio = double{target[x] / q};
        stands = q > 0 && (f.strict ? ratio > u : ratio >= u);
        out.push_back(stands ? x : argmax([&](std::size_t v) {
          const float residual = f.from_target                       ? target[v]
                                 : draft != nullptr                  ? target[v] - draft[v]
                                 : static_cast<std::int32_t>(v) == x ? 0.0F
                                                                     : target[v];
          return std::fmax(residual, 0.0F) / noise(v);
        }));
      }
      if (!p.tree && (stands || f.bonus_always)) {
        out.resize(n, -1);
        out.push_back(in.bonus[r]);
      }
    }
    out.resize(static_cast<std::size_t>(p.max_spec_len) + 1, f.zeros ? 0 : -1);
    path.resize(static_cast<std::size_t>(p.max_spec_len), -1);
    result.tokens.insert(result.tokens.end(), out.begin(), out.end());
    result.nodes.insert(result.nodes.end(), path.begin(), path.end());
  }
  return result;
}

Verdict judged(const Case& c, const Inputs& inputs, const Result& result) {
  Outputs outputs;
  const auto add = [&](const char* name, const Ints& values) {
    const auto bytes = std::as_bytes(std::span(values));
    outputs.tensors.push_back({name, {bytes.begin(), bytes.end()}});
  };
  add("tokens", result.tokens);
  add("nodes", result.nodes);
  return judge(c, inputs, outputs, profile("bf16"));
}

Verdict judged(const Case& c, const Faults& faults = {}) {
  const Inputs inputs = materialise(c);
  return judged(c, inputs,
                sampler(std::get<SpecVerify>(c.problem), std::get<SpecVerifyInputs>(inputs), faults));
}

Case batch(std::uint64_t seed, bool tree, bool draft_probs, VerifyRows rows) {
  SpecVerify p;
  p.vocab = 7;
  p.max_spec_len = 4;
  p.tree = tree;
  p.draft_probs = draft_probs;
  p.rows = rows;
  p.padded_requests = 1;
  p.requests = {{4, false}, {3, true}, {0, false}, {4, false}, {2, false}};
  if (tree) p.requests = {{7, false}, {6, true}, {0, false}, {7, false}, {3, true}};
  Case c;
  c.seed = seed;
  c.problem = p;
  return c;
}

constexpr VerifyRows every_kind[] = {VerifyRows::mixed,     VerifyRows::dense, VerifyRows::sparse,
                                     VerifyRows::dyadic,    VerifyRows::equal, VerifyRows::disjoint,
                                     VerifyRows::non_finite};

/// The diagnoses that a fault gives over many batches, the most frequent one.
std::string usual_diagnosis(bool tree, bool draft_probs, const Faults& faults) {
  std::vector<std::string> seen;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Verdict v = judged(
        batch(seed, tree, draft_probs, seed % 2 == 0 ? VerifyRows::dyadic : VerifyRows::mixed), faults);
    if (v.kind == VerdictKind::fail) seen.push_back(v.diagnosis);
  }
  std::string best = "none";
  std::ptrdiff_t most = 0;
  for (const std::string& d : seen)
    if (const auto n = std::count(seen.begin(), seen.end(), d); n > most) {
      most = n;
      best = d;
    }
  return best;
}

}  // namespace

TEST_CASE("A right sampler passes on rows of every kind") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    for (const VerifyRows rows : every_kind) {
      for (const int form : {0, 1, 2}) {
        const Verdict v = judged(batch(seed, form == 2, form == 0, rows));
        INFO("seed " << seed << ", form " << form << ", rows " << name(rows) << ": " << v.diagnosis << ": "
                     << v.detail);
        REQUIRE(v.kind == VerdictKind::pass);
      }
    }
  }
}

TEST_CASE("Each rule that is changed fails, by its name") {
  CHECK(usual_diagnosis(false, true, {.strict = true}) == "rejected at equality");
  CHECK(usual_diagnosis(false, false, {.strict = true}) == "rejected at equality");
  CHECK(usual_diagnosis(false, true, {.from_target = true}) == "recovered token drawn from the target");
  CHECK(usual_diagnosis(true, false, {.from_target = true}) == "recovered token drawn from the target");
  CHECK(usual_diagnosis(false, true, {.bonus_always = true}) == "bonus token after a rejection");
  CHECK(usual_diagnosis(false, true, {.reuse = true}) == "one draw used for two positions");
  CHECK(usual_diagnosis(true, false, {.sibling = true}) == "child of a sibling admitted");
  CHECK(usual_diagnosis(false, true, {.zeros = true}) == "wrong token");
}

TEST_CASE("A token outside of the vocabulary and a padded row that is not -1 are named") {
  const Case c = batch(1, false, true, VerifyRows::dense);
  const Inputs inputs = materialise(c);
  const auto& p = std::get<SpecVerify>(c.problem);
  Result result = sampler(p, std::get<SpecVerifyInputs>(inputs), {});
  Result outside = result;
  outside.tokens[0] = p.vocab;
  CHECK(judged(c, inputs, outside).diagnosis == "token outside the vocabulary");
  result.tokens.back() = 0;
  CHECK(judged(c, inputs, result).diagnosis == "row of a padded request is not -1");
  CHECK(judge(c, inputs, {}, profile("bf16")).kind == VerdictKind::harness_error);
}

TEST_CASE("Within the band both decisions are right, beyond it one") {
  SpecVerify p;
  p.vocab = 2;
  p.max_spec_len = 1;
  p.requests = {{1, false}};
  Case c;
  c.problem = p;
  const Inputs made = materialise(c);
  const auto kind = [&](double u, const Ints& tokens) {
    Inputs inputs = made;
    auto& in = std::get<SpecVerifyInputs>(inputs);
    in.draft_tokens = {0};
    in.target_probs = {0.3F, 0.7F};
    in.draft_probs = {0.9F, 0.1F};
    in.uniforms = {u};
    in.exponentials = {1, 1};
    in.bonus = {1};
    return judged(c, inputs, {tokens, {-1}}).kind;
  };
  const double ratio = double{0.3F} / double{0.9F};
  const Ints accepted = {0, 1}, rejected = {1, -1};
  for (const double in_band : {ratio, ratio * (1 + 0x1p-24), ratio * (1 - 0x1p-24)}) {
    CHECK(kind(in_band, accepted) == VerdictKind::pass);
    CHECK(kind(in_band, rejected) == VerdictKind::pass);
  }
  CHECK(kind(ratio * (1 - 0x1p-21), rejected) == VerdictKind::fail);
  CHECK(kind(ratio * (1 - 0x1p-21), accepted) == VerdictKind::pass);
  CHECK(kind(ratio * (1 + 0x1p-21), accepted) == VerdictKind::fail);
  CHECK(kind(ratio * (1 + 0x1p-21), rejected) == VerdictKind::pass);
}

TEST_CASE("Over many draws a biased sampler shows without any reference") {
  // The draws of the judge's inputs are changed under it, so that each answer is right for the draws it is
  // told, and only the statistics are wrong: every second uniform is 0.
  Case c = batch(3, false, true, VerifyRows::dense);
  auto& p = std::get<SpecVerify>(c.problem);
  p.requests = {{2, false}};
  p.padded_requests = 0;
  p.repeats = 3000;
  CHECK(judged(c).kind == VerdictKind::pass);
  Inputs inputs = materialise(c);
  auto& in = std::get<SpecVerifyInputs>(inputs);
  for (std::size_t i = 0; i < in.uniforms.size(); i += 2) in.uniforms[i] = 0;
  const Verdict v = judged(c, inputs, sampler(p, in, {}));
  CHECK(v.kind == VerdictKind::fail);
  CHECK(v.diagnosis == "emitted tokens do not follow the target");
  CHECK(v.stage == "distribution");
}

}  // namespace attest::oracle
