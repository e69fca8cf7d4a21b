// SPDX-License-Identifier: MIT
#include "fuzz/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "device/kernel.h"
#include "fuzz/case_fields.h"
#include "fuzz/evaluate.h"

namespace attest::fuzz {
namespace {

constexpr std::uint64_t sample_seed = 0x5354'5241'5441U;
constexpr std::uint64_t candidates = 6;

/// An odd constant, so that the candidates of different seeds do not meet.
constexpr std::uint64_t candidate_stride = 0x9e37'79b9'7f4a'7c15U;

/// (1 - count / sample_size)^number, by squaring.
double still_missing(std::uint64_t count, std::uint64_t number) {
  double base = 1.0 - static_cast<double>(count) / static_cast<double>(PairTable::sample_size);
  double power = 1.0;
  for (std::uint64_t n = number; n != 0 && base > 0; n >>= 1U) {
    if ((n & 1U) != 0) power *= base;
    base *= base;
  }
  return base > 0 || number == 0 ? power : 0.0;
}

}  // namespace

std::uint32_t PairTable::id_of(const std::string& stratum) {
  const auto [it, added] = ids_.try_emplace(stratum, static_cast<std::uint32_t>(strata_.size()));
  if (added) strata_.push_back(stratum);
  return it->second;
}

std::vector<PairTable::Pair> PairTable::pairs_of(const Json& case_json) {
  std::vector<std::uint32_t> ids;
  for (const std::string& stratum : strata_of(case_json)) ids.push_back(id_of(stratum));
  std::vector<Pair> pairs;
  pairs.reserve(ids.size() * (ids.size() - 1) / 2);
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t j = i + 1; j < ids.size(); ++j) pairs.push_back(Pair{ids[i]} << 32U | ids[j]);
  return pairs;
}

std::uint64_t PairTable::count(Pair pair) const {
  const auto it = counts_.find(pair);
  return it == counts_.end() ? 0 : it->second;
}

std::pair<std::string, std::string> PairTable::names(Pair pair) const {
  return {strata_[pair >> 32U], strata_[pair & 0xffff'ffffU]};
}

PairTable& PairTable::of(const std::string& kernel) {
  static std::map<std::string, std::unique_ptr<PairTable>> tables;
  auto& table = tables[kernel];
  if (!table) {
    table = std::make_unique<PairTable>();
    const device::Kernel* k = device::find_kernel(kernel);
    for (std::uint64_t number = 0; number < sample_size; ++number) {
      const cases::Case c = case_for(kernel, sample_seed, number);
      if (k != nullptr && k->refuses(c)) continue;
      for (const Pair pair : table->pairs_of(to_json(c))) ++table->counts_[pair];
    }
  }
  return *table;
}

cases::Case campaign_case(const std::string& kernel, std::uint64_t seed, std::uint64_t number) {
  cases::Case best = case_for(kernel, seed, number);
  if (number % 2 == 0) return best;
  PairTable& table = PairTable::of(kernel);
  const device::Kernel* k = device::find_kernel(kernel);
  double best_score = -1;
  for (std::uint64_t j = 0; j < candidates; ++j) {
    cases::Case c = j == 0 ? best : case_for(kernel, seed + j * candidate_stride, number);
    double score = 0;
    if (k == nullptr || !k->refuses(c))
      for (const auto pair : table.pairs_of(to_json(c))) score += still_missing(table.count(pair), number);
    if (score > best_score) {
      best_score = score;
      best = std::move(c);
    }
  }
  return best;
}

void Coverage::add(const Json& case_json) {
  PairTable& table = PairTable::of(kernel_);
  for (const auto pair : table.pairs_of(case_json))
    if (seen_.insert(pair).second && table.count(pair) == 0) ++beside_;
  for (const std::string& stratum : strata_of(case_json)) {
    const auto equals = stratum.find('=');
    ++fields_[stratum.substr(0, equals)][stratum.substr(equals + 1)];
  }
}

std::map<std::pair<std::string, std::string>, Coverage::OfFields> Coverage::by_fields() const {
  const PairTable& table = PairTable::of(kernel_);
  std::map<std::pair<std::string, std::string>, OfFields> all;
  const auto of = [&](PairTable::Pair pair) -> OfFields& {
    const auto [a, b] = table.names(pair);
    std::pair<std::string, std::string> fields{a.substr(0, a.find('=')), b.substr(0, b.find('='))};
    if (fields.second < fields.first) std::swap(fields.first, fields.second);
    return all[std::move(fields)];
  };
  for (const auto& [pair, count] : table.counts()) ++of(pair).reachable;
  for (const PairTable::Pair pair : seen_) {
    OfFields& fields = of(pair);
    ++fields.covered;
    if (table.count(pair) == 0) ++fields.reachable;
  }
  return all;
}

Json Coverage::json() const {
  const PairTable& table = PairTable::of(kernel_);
  struct Missing {
    std::uint32_t count;
    std::string names;
  };
  std::vector<Missing> missing;
  for (const auto& [pair, count] : table.counts())
    if (seen_.find(pair) == seen_.end()) {
      const auto [a, b] = table.names(pair);
      missing.push_back({count, a + " & " + b});
    }
  std::sort(missing.begin(), missing.end(), [](const Missing& a, const Missing& b) {
    return a.count != b.count ? a.count > b.count : a.names < b.names;
  });
  if (missing.size() > 20) missing.resize(20);
  Json names = Json::array();
  for (const Missing& m : missing) names.push_back(m.names);
  Json fields = Json::object();
  for (const auto& [field, classes] : fields_)
    for (const auto& [name, times] : classes) fields[field][name] = times;
  return {{"pairs", {{"covered", covered()}, {"reachable", reachable()}, {"missing", std::move(names)}}},
          {"fields", std::move(fields)}};
}

}  // namespace attest::fuzz
