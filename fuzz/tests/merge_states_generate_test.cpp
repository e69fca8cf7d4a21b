// SPDX-License-Identifier: MIT
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "fuzz/generate.h"

namespace attest::fuzz {
namespace {

using namespace cases;

const MergeStates& problem_of(const Case& c) {
  return std::get<MergeStates>(c.problem);
}

}  // namespace

TEST_CASE("merge_states: cases reach every value of every axis") {
  std::map<std::string, int> seen;
  for (std::uint64_t n = 0; n < 20000; ++n) {
    const Case c = generate("merge_states", 3, n);
    const MergeStates& p = problem_of(c);
    ++seen["states=" + std::to_string(p.states.size())];
    ++seen[std::string("base ") + name(p.lse_base)];
    ++seen[name(p.lse_layout)];
    ++seen[std::string("empty ") + name(p.empty) + " " + name(p.empty_lse)];
    ++seen[std::string("fill ") + name(c.data.fill)];
    ++seen[std::string(name(p.state_format)) + " to " + name(p.out_format)];
    seen["in place"] += p.in_place ? 1 : 0;
    seen["no lse"] += p.return_lse ? 0 : 1;
    bool differ = false;
    for (const StateLayout& s : p.states) differ = differ || s.head_padding != p.states[0].head_padding;
    seen["strides differ"] += differ ? 1 : 0;
    CHECK(work(c) < 4000);
  }
  const auto require = [&](const std::string& what, int least) {
    CAPTURE(what, seen[what]);
    CHECK(seen[what] >= least);
  };
  for (const int states : {1, 2, 3, 15, 16, 17, 31, 32}) require("states=" + std::to_string(states), 500);
  for (const char* empty : {"some", "leading", "rows"})
    for (const char* lse : {"minus_inf", "plus_inf", "either"})
      require(std::string("empty ") + empty + " " + lse, 300);
  for (const char* what :
       {"base e", "base 2", "heads_first", "tokens_first", "empty none minus_inf", "fill normal",
        "fill constant_scores", "fill wide_scores", "fill cancelling", "bf16 to bf16", "bf16 to f32",
        "f32 to bf16", "f32 to f32", "in place", "no lse", "strides differ"})
    require(what, 1000);
}

TEST_CASE("merge_states: shrinking ends in a case that can be checked by hand") {
  const auto fails = [](const Case& c) {
    const MergeStates& p = problem_of(c);
    return p.states.size() >= 2 && p.states[1].head_padding != p.states[0].head_padding && p.heads > 1;
  };
  Case c = generate("merge_states", 1, 0);
  for (std::uint64_t n = 0; !fails(c); ++n) c = generate("merge_states", 1, n);
  for (bool improved = true; improved;) {
    improved = false;
    for (Case& s : shrink_candidates(c)) {
      if (!fails(s)) continue;
      c = std::move(s);
      improved = true;
      break;
    }
  }
  const MergeStates& p = problem_of(c);
  CHECK(p.states.size() == 2);
  CHECK(p.states[0].head_padding + p.states[1].head_padding == 8);
  CHECK(p.tokens == 1);
  CHECK(p.heads == 2);
  CHECK(p.head_dim == 8);
}

}  // namespace attest::fuzz
