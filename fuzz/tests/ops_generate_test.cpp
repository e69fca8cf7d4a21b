// SPDX-License-Identifier: MIT
//
// What holds for the cases of every op, whatever its problem.
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "fuzz/generate.h"

namespace attest::fuzz {

using namespace cases;

TEST_CASE("Cases of every op are valid, differ, and survive their text form") {
  for (const std::string& op : op_names()) {
    INFO(op);
    std::set<std::string> ids;
    for (std::uint64_t n = 0; n < 2000; ++n) {
      const Case c = generate(op, 3, n);
      REQUIRE(op_name(c.problem) == op);
      REQUIRE_NOTHROW(validate(c));
      REQUIRE(work(c) >= 0);
      if (n < 200) REQUIRE(parse_case(pretty_json(c)) == c);
      ids.insert(case_id(c));
    }
    CHECK(ids.size() >= 1990);
    CHECK(generate(op, 1, 7) == generate(op, 1, 7));
    CHECK(generate(op, 1, 7) != generate(op, 2, 7));
  }
}

TEST_CASE("Shrink candidates of every op are valid and simpler, and a descent ends") {
  for (const std::string& op : op_names()) {
    for (std::uint64_t n = 0; n < 24; ++n) {
      Case c = generate(op, 5, n);
      std::vector<Case> candidates = shrink_candidates(c);
      std::size_t steps = 0;
      for (; !candidates.empty() && steps < 3000; ++steps) {
        INFO(canonical_json(c));
        std::set<std::string> texts;
        for (const Case& s : candidates) {
          const bool simpler = complexity(s) < complexity(c) && complexity(s) >= 0;
          if (!simpler) FAIL("not simpler: " << canonical_json(s));
          if (!texts.insert(canonical_json(s)).second) FAIL("twice: " << canonical_json(s));
        }
        for (const Case& s : {candidates.front(), candidates.back()}) REQUIRE_NOTHROW(validate(s));
        // Any path down, not only the steepest.
        c = candidates[steps % 3 == 0 ? steps * 7 % candidates.size() : 0];
        candidates = shrink_candidates(c);
      }
      CHECK(candidates.empty());
    }
  }
}

}  // namespace attest::fuzz
