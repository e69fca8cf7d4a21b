// SPDX-License-Identifier: MIT
//
// Cases out of nothing, and simpler cases out of a case.
//
//   Case c = generate("mla_decode", campaign_seed, 1234);   // case number 1234 of the campaign, on every
//   machine for (const Case& s : shrink_candidates(c)) ...   // simpler, most aggressive first
//   rc::prop("...", [] { const Case c = *any_case("mla_decode"); ... });   // the same two, as a RapidCheck
//   generator
//
// Every generated case is valid by construction: nothing is drawn and thrown away, so the distribution is
// what the code says. RapidCheck supplies the splittable random numbers and the shrink tree. Its own test
// loop is not used: it makes the size of a case depend on how many cases were asked for, so that a seed alone
// does not name a case.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <vector>

#include "cases/case.h"

namespace attest::fuzz {

/// A pure function of its arguments. Throws std::invalid_argument when there is no such op.
cases::Case generate(std::string_view op, std::uint64_t campaign_seed, std::uint64_t number);

/// Valid cases, each simpler than `c`: no component of `complexity` is larger and at least one is smaller.
/// Ordered from most to least aggressive. Empty when nothing is left to simplify.
std::vector<cases::Case> shrink_candidates(const cases::Case& c);

/// What shrinking makes smaller: the sum of components, all of them non-negative integers, so that every
/// descent ends. Lengths, counts and sizes count by value; a switch or a recipe counts by its rank, 0 for the
/// default.
std::int64_t complexity(const cases::Case& c);

/// How much a kernel has to do, in units of about 25 microseconds of simulation (mla_decode: 16 query rows
/// times one key); what the generator keeps small.
std::int64_t work(const cases::Case& c);

/// `generate` with a random seed, `shrink_candidates` as its shrinks.
rc::Gen<cases::Case> any_case(std::string_view op);

}  // namespace attest::fuzz

namespace attest::cases {
/// For RapidCheck's counterexamples.
void showValue(const Case& c, std::ostream& os);
}  // namespace attest::cases
