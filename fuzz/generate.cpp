// SPDX-License-Identifier: MIT
#include "fuzz/generate.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>

#include "fuzz/ops/op_generator.h"

namespace attest::fuzz {
namespace {

/// RapidCheck scales ranges by the size; at this one they are whole.
constexpr int full_size = 100;

/// By the alternative of cases::Problem.
const OpGenerator& generator_at(std::size_t index) {
  static constexpr const OpGenerator* all[] = {
      &mla_decode_generator,       &block_table_expand_generator, &spec_verify_generator,
      &work_plan_generator,        &merge_states_generator,       &mla_prefill_generator,
      &verify_attention_generator, &index_remap_generator,        &topk_generator,
      &cache_write_generator,      &indexer_logits_generator,     &mla_sparse_generator,
      &dense_switch_generator};
  static_assert(std::size(all) == std::variant_size_v<cases::Problem>);
  return *all[index];
}

const OpGenerator& generator_of(const cases::Case& c) {
  return generator_at(c.problem.index());
}

const OpGenerator& generator_of(std::string_view op) {
  const std::vector<std::string> ops = cases::op_names();
  const auto at = std::find(ops.begin(), ops.end(), op);
  if (at == ops.end()) throw std::invalid_argument("no op " + std::string(op));
  return generator_at(static_cast<std::size_t>(at - ops.begin()));
}

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

cases::Case generate(std::string_view op, std::uint64_t campaign_seed, std::uint64_t number) {
  const rc::Gen<cases::Case> gen = rc::gen::noShrink(rc::gen::exec(generator_of(op).draw));
  return gen(rc::Random({campaign_seed, number, 0, 0}), full_size).value();
}

std::vector<cases::Case> shrink_candidates(const cases::Case& c) {
  std::vector<cases::Case> candidates = generator_of(c).shrink(c);
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
  return generator_of(c).complexity(c) + recipe_complexity(c);
}

std::int64_t work(const cases::Case& c) {
  return generator_of(c).work(c);
}

rc::Gen<cases::Case> any_case(std::string_view op) {
  return [op = std::string(op)](const rc::Random& random, int) {
    rc::Random r = random;
    const std::uint64_t campaign_seed = r.next();
    return rc::shrinkable::shrinkRecur(generate(op, campaign_seed, r.next()), [](const cases::Case& c) {
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
