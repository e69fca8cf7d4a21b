// SPDX-License-Identifier: MIT
#include "fuzz/generate.h"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace attest::fuzz {
namespace {

using namespace cases;

const MlaDecode& problem_of(const Case& c) {
  return std::get<MlaDecode>(c.problem);
}

/// The components that shrinking may only make smaller, in the order of the documentation.
std::vector<std::int64_t> components(const Case& c) {
  const MlaDecode& p = problem_of(c);
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  for (const Request& r : p.requests) {
    queries += r.q_len;
    keys += r.kv_len;
  }
  const auto off_default = [](bool other) { return other ? 1 : 0; };
  return {static_cast<std::int64_t>(p.requests.size()),
          queries,
          keys,
          p.heads,
          p.page_size,
          p.num_splits,
          off_default(!p.causal),
          off_default(!p.return_lse),
          off_default(p.q_format != Format::bf16),
          off_default(p.kv_format != Format::bf16),
          off_default(p.q_scale != 1.0F),
          off_default(p.kv_scale != 1.0F),
          off_default(p.sm_scale != MlaDecode{}.sm_scale),
          off_default(c.data.fill != Fill::normal),
          static_cast<std::int64_t>(c.memory.placement),
          off_default(c.memory.unused != Poison::nan),
          off_default(c.memory.output != Poison::nan),
          off_default(c.memory.scratch != Poison::nan),
          c.memory.page_padding_bytes,
          off_default(c.memory.guard_bytes != 4096),
          off_default(c.memory.prefix_sharing),
          off_default(c.seed != 0)};
}

/// Greedy descent as the campaign does it, on a predicate instead of a kernel.
template <typename Fails>
Case shrink_by(Case c, const Fails& fails, int* steps = nullptr) {
  for (bool improved = true; improved;) {
    improved = false;
    for (Case& s : shrink_candidates(c)) {
      if (!fails(s)) continue;
      c = std::move(s);
      improved = true;
      if (steps != nullptr) ++*steps;
      break;
    }
  }
  return c;
}

/// The first case of campaign 1 that fails.
template <typename Fails>
Case first_failing(const Fails& fails) {
  for (std::uint64_t n = 0; n < 20000; ++n) {
    Case c = generate("mla_decode", 1, n);
    if (fails(c)) return c;
  }
  FAIL("no case of 20000 reaches the condition");
  return {};
}

}  // namespace

TEST_CASE("A case is a function of campaign seed and number, for ever") {
  CHECK(generate("mla_decode", 1, 7) == generate("mla_decode", 1, 7));
  CHECK(generate("mla_decode", 1, 7) != generate("mla_decode", 1, 8));
  CHECK(generate("mla_decode", 1, 7) != generate("mla_decode", 2, 7));
  // Reports name cases by seed and number. A new axis changes these; then it is a new generation of
  // campaigns.
  CHECK(case_id(generate("mla_decode", 0, 0)) == "b418373e7890bf3d");
  CHECK(case_id(generate("mla_decode", 1, 0)) == "7f01bd2bf8005dad");
  CHECK(case_id(generate("mla_decode", 0xffffffffffffffffU, 0xffffffffffffffffU)) == "cec6858f21ed48dd");
}

TEST_CASE("100000 cases are valid, small, and reach every value of every axis") {
  std::map<std::string, int> seen;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> pool_bytes;
  int equal_dimensions = 0;
  constexpr int total = 100000;
  for (std::uint64_t n = 0; n < total; ++n) {
    const Case c = generate("mla_decode", 3, n);
    const MlaDecode& p = problem_of(c);
    try {
      validate(c);
    } catch (const CaseError& error) {
      FAIL(error.what() << " in " << canonical_json(c));
    }
    sizes.push_back(work(c));
    std::int64_t pages = 0;
    for (const Request& r : p.requests) pages += (r.kv_len + p.page_size - 1) / p.page_size;
    pool_bytes.push_back(pages * (std::int64_t{p.page_size} * 1152 + c.memory.page_padding_bytes));
    const auto count = [&](const std::string& axis, const auto& value) {
      if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>) {
        ++seen[axis + "=" + std::to_string(value)];
      } else {
        ++seen[axis + "=" + value];
      }
    };
    const auto count_if = [&](const std::string& what, bool is) { seen[what] += is ? 1 : 0; };
    count("heads", p.heads);
    count("page_size", p.page_size);
    count("num_splits", p.num_splits);
    count("batch", p.requests.size());
    count("causal", static_cast<int>(p.causal));
    count("return_lse", static_cast<int>(p.return_lse));
    count("formats", std::string(name(p.q_format)) + "," + name(p.kv_format));
    count("fill", std::string(name(c.data.fill)));
    count("fill of fp8", std::string(p.kv_format == Format::bf16 ? "bf16" : name(c.data.fill)));
    count("placement", std::string(name(c.memory.placement)));
    count("unused", std::string(name(c.memory.unused)));
    count("output", std::string(name(c.memory.output)));
    count("scratch", std::string(name(c.memory.scratch)));
    count("sharing", static_cast<int>(c.memory.prefix_sharing));
    count_if("padding", c.memory.page_padding_bytes > 0);
    count_if("guard", c.memory.guard_bytes != 4096);
    int exponent = 0;
    count_if("q_scale no power of two", std::frexp(p.q_scale, &exponent) != 0.5F);
    count_if("kv_scale no power of two", std::frexp(p.kv_scale, &exponent) != 0.5F);
    count_if("sm_scale not the default", p.sm_scale != MlaDecode{}.sm_scale);
    count_if("q_scale differs from kv_scale", p.q_scale != p.kv_scale && p.q_scale != 1 && p.kv_scale != 1);
    int longest = 0;
    int most_keys = 0;
    std::set<int> q_lens;
    for (std::size_t i = 0; i < p.requests.size(); ++i) {
      const Request& r = p.requests[i];
      count("q_len", r.q_len);
      if (r.kv_len <= 300) count("kv_len", r.kv_len);
      longest = std::max(longest, r.q_len);
      most_keys = std::max(most_keys, r.kv_len);
      q_lens.insert(r.q_len);
      for (const int corner : {1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097}) {
        count_if("kv_len=" + std::to_string(corner), r.kv_len == corner);
      }
      count_if("kv_len below q_len", r.q_len > 0 && r.kv_len < r.q_len);
      count_if("more splits than 16-key tiles", r.kv_len > 0 && p.num_splits > (r.kv_len + 15) / 16);
      count_if("whole pages", p.page_size > 1 && r.kv_len > 0 && r.kv_len % p.page_size == 0);
      count_if("one row in the last page", p.page_size > 1 && r.kv_len % p.page_size == 1);
      count_if("last page full but one", p.page_size > 2 && r.kv_len % p.page_size == p.page_size - 1);
      count_if("no keys at first", i == 0 && r.kv_len == 0 && p.requests.size() > 1);
      count_if("no query in the middle", i > 0 && i + 1 < p.requests.size() && r.q_len == 0);
      count_if("no query at last", i > 0 && i + 1 == p.requests.size() && r.q_len == 0);
    }
    if (std::none_of(p.requests.begin(), p.requests.end(),
                     [](const Request& r) { return r.q_len > 0 && r.kv_len > 0; })) {
      FAIL("nobody sees a key in " << canonical_json(c));
    }
    count_if("ragged queries", q_lens.size() > 2);
    count_if("one split with lse", p.num_splits == 1 && p.return_lse);
    count_if("128 heads with 16 queries", p.heads == 128 && longest == 16);
    count_if("the field's most common shape",
             p.heads == 16 && p.requests.size() > 1 && longest == 1 && p.page_size == 1);
    equal_dimensions += p.heads == p.page_size || (p.num_splits > 1 && p.num_splits == p.heads) ? 1 : 0;
  }

  const auto require = [&](const std::string& what, int least) {
    CAPTURE(what, seen[what]);
    CHECK(seen[what] >= least);
  };
  for (const int v : {1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128})
    require("heads=" + std::to_string(v), 1000);
  for (const int v : {1, 2, 16, 32, 48, 64, 128, 256, 480, 528, 784, 1024}) {
    require("page_size=" + std::to_string(v), 1000);
  }
  for (const int v : {1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32})
    require("num_splits=" + std::to_string(v), 100);
  for (const int v : {1, 2, 3, 4, 5, 6, 9, 17, 33, 64, 65}) require("batch=" + std::to_string(v), 50);
  for (const int v : {128, 256}) require("batch=" + std::to_string(v), 10);
  for (int v = 0; v <= 16; ++v) require("q_len=" + std::to_string(v), 500);
  for (int v = 0; v <= 300; ++v) require("kv_len=" + std::to_string(v), 40);
  for (const int v : {1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097})
    require("kv_len=" + std::to_string(v), 20);
  for (int f = 0; f <= static_cast<int>(Fill::exact); ++f) {
    require(std::string("fill=") + name(static_cast<Fill>(f)), 1000);
    require(std::string("fill of fp8=") + name(static_cast<Fill>(f)), 500);
  }
  for (int v = 0; v <= static_cast<int>(Placement::beyond_4gib); ++v) {
    require(std::string("placement=") + name(static_cast<Placement>(v)), 500);
  }
  for (int v = 0; v <= static_cast<int>(Poison::zero); ++v) {
    for (const char* place : {"unused=", "output=", "scratch="})
      require(place + std::string(name(static_cast<Poison>(v))), 1000);
  }
  for (const char* formats : {"bf16,bf16", "bf16,fp8_e4m3fnuz", "fp8_e4m3fnuz,fp8_e4m3fnuz"}) {
    require(std::string("formats=") + formats, 10000);
  }
  for (const char* what : {"causal=0",
                           "causal=1",
                           "return_lse=0",
                           "return_lse=1",
                           "sharing=0",
                           "sharing=1",
                           "padding",
                           "guard",
                           "q_scale no power of two",
                           "kv_scale no power of two",
                           "sm_scale not the default",
                           "q_scale differs from kv_scale",
                           "kv_len below q_len",
                           "more splits than 16-key tiles",
                           "whole pages",
                           "one row in the last page",
                           "last page full but one",
                           "no keys at first",
                           "no query in the middle",
                           "no query at last",
                           "ragged queries",
                           "one split with lse",
                           "the field's most common shape"}) {
    require(what, 1000);
  }
  require("128 heads with 16 queries", 20);
  CHECK(equal_dimensions < total / 25);

  std::sort(sizes.begin(), sizes.end());
  const auto quantile = [&](double q) { return sizes[static_cast<std::size_t>(q * (total - 1))]; };
  CAPTURE(quantile(0.1), quantile(0.5), quantile(0.9), quantile(0.99), sizes.back());
  CHECK(quantile(0.5) >= 60);  // not trivial
  CHECK(quantile(0.5) <= 300);
  CHECK(quantile(0.99) <= 5000);
  CHECK(sizes.back() <= 10000);
  std::sort(pool_bytes.begin(), pool_bytes.end());
  CHECK(pool_bytes.back() <= 16 << 20);
}

TEST_CASE("Shrink candidates are valid and smaller in the product order") {
  rc::prop("candidates", [] {
    const Case c = *rc::gen::noShrink(any_case("mla_decode"));
    const std::vector<Case> candidates = shrink_candidates(c);
    const auto before = components(c);
    std::set<std::string> texts;
    for (const Case& s : candidates) {
      validate(s);
      RC_ASSERT(complexity(s) < complexity(c));
      RC_ASSERT(complexity(s) >= 0);
      const auto after = components(s);
      for (std::size_t i = 0; i < before.size(); ++i) RC_ASSERT(after[i] <= before[i]);
      texts.insert(canonical_json(s));
    }
    RC_ASSERT(texts.size() == candidates.size());
  });
}

TEST_CASE("Every descent ends in the one simplest case") {
  for (std::uint64_t n = 0; n < 200; ++n) {
    int steps = 0;
    const Case least = shrink_by(generate("mla_decode", 5, n), [](const Case&) { return true; }, &steps);
    CHECK(shrink_candidates(least).empty());
    const MlaDecode& p = problem_of(least);
    CHECK(p.requests == std::vector<Request>{{1, 0}});
    CHECK(p.heads == 1);
    CHECK(p.page_size == 1);
    CHECK(least.memory.placement == Placement::ordered);
    CHECK(steps < 40);
  }
}

TEST_CASE("Shrinking finds the smallest case that shows a fault") {
  SECTION("a q_len that is no power of two, with at least two pages") {
    const auto fails = [](const Case& c) {
      const MlaDecode& p = problem_of(c);
      return std::any_of(p.requests.begin(), p.requests.end(), [&](const Request& r) {
        return r.q_len > 1 && (r.q_len & (r.q_len - 1)) != 0 && r.kv_len > p.page_size;
      });
    };
    const Case least = shrink_by(first_failing(fails), fails);
    CHECK(problem_of(least).requests == std::vector<Request>{{3, 2}});
    CHECK(problem_of(least).page_size == 1);
  }
  SECTION("a request whose length is not a multiple of the page, behind another") {
    const auto fails = [](const Case& c) {
      const MlaDecode& p = problem_of(c);
      return p.page_size >= 16 && p.requests.size() >= 2 && p.requests[1].kv_len > p.page_size &&
             p.requests[1].kv_len % p.page_size != 0;
    };
    const Case least = shrink_by(first_failing(fails), fails);
    CHECK(problem_of(least).page_size == 16);
    CHECK(problem_of(least).requests.size() == 2);
    CHECK(problem_of(least).requests[1].kv_len == 17);
    CHECK(problem_of(least).requests[0].kv_len == 0);
  }
  SECTION("more splits than tiles, with an fp8 cache whose scale is no power of two") {
    const auto fails = [](const Case& c) {
      const MlaDecode& p = problem_of(c);
      int exponent = 0;
      return std::frexp(p.kv_scale, &exponent) != 0.5F && p.num_splits > 2 && p.heads % 16 != 0;
    };
    const Case least = shrink_by(first_failing(fails), fails);
    CHECK(problem_of(least).num_splits == 3);
    CHECK(problem_of(least).heads == 1);
    CHECK(problem_of(least).q_format == Format::bf16);
    CHECK(problem_of(least).kv_format == Format::fp8_e4m3fnuz);
    CHECK(least.data.fill == Fill::normal);
  }
}

TEST_CASE("The RapidCheck tree shrinks by the same candidates") {
  const rc::Shrinkable<Case> root = any_case("mla_decode")(rc::Random(std::uint64_t{11}), 0);
  const Case c = root.value();
  const std::vector<Case> expected = shrink_candidates(c);
  rc::Seq<rc::Shrinkable<Case>> shrinks = root.shrinks();
  for (const Case& e : expected) {
    auto next = shrinks.next();
    REQUIRE(next);
    REQUIRE(next->value() == e);
  }
  CHECK(!shrinks.next());
}

}  // namespace attest::fuzz
