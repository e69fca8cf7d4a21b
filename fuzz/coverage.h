// SPDX-License-Identifier: MIT
//
// Which combinations a campaign has tried, and how its cases are steered to the others.
//
// Wrong kernels are wrong where two or three dimensions meet: page size 16 with q_len 3, fp8 with a split
// that is empty. So coverage is pairwise: of all pairs of strata (fuzz/case_fields.h) of two different fields
// that the generator can produce for a kernel, how many has a tested case had?
//
// Steering. A campaign must be able to run case 123456 alone: in a shard, after a kill, on replay. So the
// choice may not look at what came before, only at (kernel, seed, number). It looks at what must be expected
// to have come before instead: a pair that a generated case has with probability f is still missing after
// `number` cases with probability (1 - f)^number. Every other case (the odd numbers) is the one of a few
// candidates, each a generated case in its own right, with the largest sum of these over its pairs: the
// expected number of pairs that it adds. Early in a campaign that favours cases with many different pairs,
// later only the rare ones count. The even numbers stay as the generator draws them, so that nothing the
// generator's author weighted is lost.
//
// f comes from a fixed sample of the generator, moved into the kernel's domain, without what it refuses: it
// depends on the build and on nothing else. The sums are of IEEE products in a fixed order: the same bits on
// every machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cases/case.h"
#include "fuzz/record.h"

namespace attest::fuzz {

/// The pairs of strata that generated cases of one kernel have, and how often.
class PairTable {
 public:
  static constexpr std::uint64_t sample_size = 2048;

  /// Of the kernel's cases; computed once per kernel. Kernels that are not in this build get those of their
  /// op's generator.
  static PairTable& of(const std::string& kernel);

  using Pair = std::uint64_t;

  /// The pairs of a case, each once, in a fixed order. Strata that the sample has not are numbered on.
  std::vector<Pair> pairs_of(const Json& case_json);
  [[nodiscard]] std::size_t reachable() const { return counts_.size(); }
  /// Of sample_size.
  [[nodiscard]] std::uint64_t count(Pair pair) const;
  /// {"shape.heads=16", "memory.placement=high"}
  [[nodiscard]] std::pair<std::string, std::string> names(Pair pair) const;
  [[nodiscard]] const std::unordered_map<Pair, std::uint32_t>& counts() const { return counts_; }

 private:
  std::uint32_t id_of(const std::string& stratum);
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<std::string> strata_;
  std::unordered_map<Pair, std::uint32_t> counts_;
};

/// Case `number` of a campaign with `seed` on `kernel`, steered as above: a function of its arguments.
cases::Case campaign_case(const std::string& kernel, std::uint64_t seed, std::uint64_t number);

/// What the tested cases of one kernel have covered.
class Coverage {
 public:
  explicit Coverage(const std::string& kernel) : kernel_(kernel) {}
  void add(const Json& case_json);

  [[nodiscard]] std::size_t covered() const { return seen_.size(); }
  /// Pairs of the sample and those seen beside it.
  [[nodiscard]] std::size_t reachable() const { return PairTable::of(kernel_).reachable() + beside_; }

  /// {"pairs": {"covered", "reachable", "missing": ["a=x & b=y", ...]}, "fields": {"shape.heads": {"16":
  /// 120}}}; "missing" holds at most 20, the commonest in the sample first.
  [[nodiscard]] Json json() const;

  /// Pairs of two fields, taken together.
  struct OfFields {
    std::size_t covered = 0, reachable = 0;
  };
  /// {"memory.placement", "shape.heads"}, the lesser name first
  [[nodiscard]] std::map<std::pair<std::string, std::string>, OfFields> by_fields() const;

 private:
  std::string kernel_;
  std::unordered_set<PairTable::Pair> seen_;
  std::size_t beside_ = 0;  ///< of seen_, not in the sample
  std::map<std::string, std::map<std::string, std::uint64_t>> fields_;
};

}  // namespace attest::fuzz
