// SPDX-License-Identifier: MIT
#include "fuzz/generate.h"

#include <functional>
#include <ostream>
#include <set>
#include <string>

#include "fuzz/generate_mla_decode.h"

namespace attest::fuzz {
namespace {

/// RapidCheck scales ranges by the size; at this one they are whole.
constexpr int full_size = 100;

bool valid(const cases::Case& c) {
  try {
    cases::validate(c);
    return true;
  } catch (const cases::CaseError&) {
    return false;
  }
}

/// Simplifications of the recipes, which are the same for every op.
std::vector<cases::Case> shrink_recipes(const cases::Case& c) {
  using namespace cases;
  std::vector<Case> simpler;
  const auto with = [&](const std::function<void(Case&)>& change) {
    Case s = c;
    change(s);
    if (s != c) simpler.push_back(std::move(s));
  };
  with([](Case& s) { s.data.fill = Fill::normal; });
  with([](Case& s) { s.memory = MemoryRecipe{.placement = Placement::ordered}; });
  for (const Placement p : {Placement::ordered, Placement::shuffled}) {
    if (p < c.memory.placement) with([p](Case& s) { s.memory.placement = p; });
  }
  with([](Case& s) { s.memory.prefix_sharing = false; });
  with([](Case& s) { s.memory.page_padding_bytes = 0; });
  if (c.memory.page_padding_bytes > 16) with([](Case& s) { s.memory.page_padding_bytes = 16; });
  with([](Case& s) { s.memory.unused = Poison::nan; });
  with([](Case& s) { s.memory.output = Poison::nan; });
  with([](Case& s) { s.memory.scratch = Poison::nan; });
  with([](Case& s) { s.memory.guard_bytes = MemoryRecipe{}.guard_bytes; });
  with([](Case& s) { s.seed = 0; });
  return simpler;
}

std::int64_t recipe_complexity(const cases::Case& c) {
  using namespace cases;
  const auto rank = [](bool simplest) { return simplest ? 0 : 1; };
  return rank(c.data.fill == Fill::normal) + static_cast<std::int64_t>(c.memory.placement) +
         rank(!c.memory.prefix_sharing) + c.memory.page_padding_bytes / 16 +
         rank(c.memory.unused == Poison::nan) + rank(c.memory.output == Poison::nan) +
         rank(c.memory.scratch == Poison::nan) + rank(c.memory.guard_bytes == MemoryRecipe{}.guard_bytes) +
         rank(c.seed == 0);
}

}  // namespace

cases::Case generate(std::uint64_t campaign_seed, std::uint64_t number) {
  static const rc::Gen<cases::Case> gen = mla_decode_case();
  return gen(rc::Random({campaign_seed, number, 0, 0}), full_size).value();
}

std::vector<cases::Case> shrink_candidates(const cases::Case& c) {
  std::vector<cases::Case> candidates = shrink_mla_decode(c);
  for (cases::Case& s : shrink_recipes(c)) candidates.push_back(std::move(s));
  // Two ways may lead to the same case: the first one counts. A shrunk field may contradict one that stayed,
  // in rare corners: an fp8 query that needs its scale to reach the scores of its fill, a shared prefix
  // without which the cache is too large.
  std::set<std::string> seen;
  std::erase_if(candidates,
                [&](const cases::Case& s) { return !seen.insert(canonical_json(s)).second || !valid(s); });
  return candidates;
}

std::int64_t complexity(const cases::Case& c) {
  return mla_decode_complexity(std::get<cases::MlaDecode>(c.problem)) + recipe_complexity(c);
}

std::int64_t work(const cases::Case& c) {
  return mla_decode_work(std::get<cases::MlaDecode>(c.problem));
}

rc::Gen<cases::Case> any_case() {
  return [](const rc::Random& random, int) {
    rc::Random r = random;
    const std::uint64_t campaign_seed = r.next();
    return rc::shrinkable::shrinkRecur(generate(campaign_seed, r.next()), [](const cases::Case& c) {
      return rc::seq::fromContainer(shrink_candidates(c));
    });
  };
}

}  // namespace attest::fuzz

namespace attest::cases {
void showValue(const Case& c, std::ostream& os) {
  os << canonical_json(c);
}
}  // namespace attest::cases
