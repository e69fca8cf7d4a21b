// SPDX-License-Identifier: MIT
//
// A case as a flat table of named values, whatever its op: what coverage strata and ledger predicates speak
// about. The names are the paths of the case's JSON:
//
//   memory.placement           "shuffled"
//   shape.page_size            16
//   shape.requests.count       2        a list: how long,
//   shape.requests.q_len.min   1        and of each number in its members
//   shape.requests.q_len.max   3        (or of the members, when they are numbers)
//                                       the least and the largest
//
// "schema", "op" and "seed" are no fields: the first two are the same for all cases of an op, the third says
// nothing about a case's shape.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fuzz/record.h"

namespace attest::fuzz {

/// @param case_json as to_json(Case) gives it
std::map<std::string, Json> fields_of(const Json& case_json);

/// Whether every field named in `where` is there and meets its condition: a value; a list of conditions, one
/// of which is met; {"min": n, "max": n}, both ends in, either may be left out; or {"not": value}.
bool meets_all(const std::map<std::string, Json>& where, const std::map<std::string, Json>& fields);
/// Throws UsageError, beginning with `where`, when it is no condition.
void check_condition(const Json& condition, const std::string& where);

/// Shell patterns, as the lists of known things use them.
bool matches(const std::string& glob, const std::string& text);

/// The classes that coverage counts, "shape.heads=16", one per field, in order of field. Names and switches
/// are their own class. Counts up to 4 and powers of two are their own class, what lies between two powers of
/// two is one: "9..15". Floats, which cases write as bits, are "1" or "other". A list's numbers give their
/// largest, and whether they all agree.
std::vector<std::string> strata_of(const Json& case_json);

}  // namespace attest::fuzz
