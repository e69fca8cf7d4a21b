// SPDX-License-Identifier: MIT
#include "fuzz/neighbours.h"

#include <rapidcheck.h>

#include <algorithm>

#include "device/kernel.h"
#include "fuzz/evaluate.h"
#include "fuzz/generate.h"

namespace attest::fuzz {
namespace {

constexpr int tries = 12;
constexpr std::uint64_t whole_weight = std::uint64_t{1} << 20U;

/// What may be exchanged between two cases: values, and lists as a whole.
void leaves(const Json& json, const Json::json_pointer& at, std::vector<Json::json_pointer>& all) {
  if (!json.is_object()) {
    all.push_back(at);
    return;
  }
  for (const auto& [key, member] : json.items())
    if (!at.empty() || (key != "schema" && key != "op")) leaves(member, at / key, all);
}

template <typename List>
std::size_t any_of(const List& list, rc::Random& random) {
  return static_cast<std::size_t>(random.next() % list.size());
}

/// Returns the place that changed.
Json::json_pointer change_list(Json& json, const Json::json_pointer& at, const Json& given,
                               rc::Random& random) {
  Json& list = json.at(at);
  const std::uint64_t way = random.next() % 5;
  if (list.empty() || given.empty() || way == 0) {
    list = given;
    return at;
  }
  const std::size_t mine = any_of(list, random), other = any_of(given, random);
  if (way == 1) {
    list.push_back(given[other]);
    return at;
  }
  if (way == 2 && list.size() > 1) {
    list.erase(mine);
    return at;
  }
  if (way == 3 && list[mine].is_object() && given[other].is_object() && !list[mine].empty()) {
    auto member = list[mine].begin();
    std::advance(member, random.next() % list[mine].size());
    if (given[other].contains(member.key())) {
      const std::string& key = member.key();
      list[mine][key] = given[other].at(key);
      return at / mine / key;
    }
  }
  list[mine] = given[other];
  return at / mine;
}

}  // namespace

std::optional<std::pair<cases::Case, std::vector<std::string>>> crossed(const cases::Case& c,
                                                                        const cases::Case& donor,
                                                                        std::uint64_t seed) {
  rc::Random random({seed, 0, 0, 0});
  Json json = to_json(c);
  const Json other = to_json(donor);
  std::vector<Json::json_pointer> all;
  leaves(json, Json::json_pointer(), all);
  std::erase_if(all, [&](const auto& at) { return !other.contains(at) || other.at(at) == json.at(at); });
  if (all.empty()) return std::nullopt;
  std::vector<std::string> changed;
  const auto fields = static_cast<int>(1 + random.next() % 3);
  for (int n = 0; n < fields; ++n) {
    const Json::json_pointer& at = all[any_of(all, random)];
    const Json& given = other.at(at);
    if (json.at(at).is_array() && given.is_array()) {
      changed.push_back(change_list(json, at, given, random).to_string());
    } else {
      json[at] = given;
      changed.push_back(at.to_string());
    }
  }
  try {
    cases::Case child = cases::parse_case(json.dump());
    if (child == c) return std::nullopt;
    return std::pair{std::move(child), std::move(changed)};
  } catch (const cases::CaseError&) {
    return std::nullopt;
  }
}

void Neighbourhood::absorb(std::uint64_t item, const std::string& kernel, const cases::Case& c,
                           const BranchWays& ways) {
  if (ways.empty()) return;
  const auto reached = std::make_shared<const Reached>(Reached{item, c});
  Branches& branches = kernels_[kernel];
  for (const auto& [function, digits] : ways)
    for (std::size_t n = 0; n < digits.size(); ++n) {
      if (digits[n] == '0') continue;
      Branch& branch = branches[{function, n}];
      for (unsigned s = 0; s < 2; ++s) {
        if ((static_cast<unsigned>(digits[n] - '0') >> s & 1U) == 0) continue;
        Side& side = branch.sides[s];
        ++side.cases;
        if (rc::Random({item, n, s, 1}).next() % side.cases == 0) side.one = reached;
      }
    }
}

std::optional<Neighbour> Neighbourhood::next(const std::string& kernel, std::uint64_t seed,
                                             std::uint64_t slot) const {
  const auto known = kernels_.find(kernel);
  if (known == kernels_.end()) return std::nullopt;
  const auto weight = [](const Branch& branch, unsigned s) {
    if (branch.sides[s].cases == 0) return std::uint64_t{0};
    return std::max<std::uint64_t>(1, whole_weight / branch.sides[s].cases) *
           (branch.sides[1 - s].cases == 0 ? 4 : 1);
  };
  std::uint64_t sum = 0;
  for (const auto& [at, branch] : known->second) sum += weight(branch, 0) + weight(branch, 1);
  if (sum == 0) return std::nullopt;

  rc::Random random({seed, slot, 0, 2});
  const device::Kernel* k = device::find_kernel(kernel);
  for (int n = 0; n < tries; ++n) {
    std::uint64_t left = random.next() % sum;
    const Reached* parent = nullptr;
    for (const auto& [at, branch] : known->second)
      for (unsigned s = 0; s < 2 && parent == nullptr; ++s) {
        const std::uint64_t w = weight(branch, s);
        if (left < w)
          parent = branch.sides[s].one.get();
        else
          left -= w;
      }
    const cases::Case donor = case_for(kernel, random.next(), slot);
    auto made = crossed(parent->c, donor, random.next());
    if (!made) continue;
    cases::Case& child = made->first;
    if (k != nullptr) {
      if (const auto domain = k->domain()) child = cases::fit(std::move(child), *domain);
      if (child == parent->c || k->refuses(child)) continue;
    }
    if (work(child) > 2 * std::max(work(parent->c), work(donor))) continue;
    return Neighbour{std::move(child), parent->item, std::move(made->second)};
  }
  return std::nullopt;
}

}  // namespace attest::fuzz
