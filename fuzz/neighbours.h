// SPDX-License-Identifier: MIT
//
// Cases next to cases that went where few others did.
//
// A branch behind three conditions is out of reach of a generator that meets each of them once in a hundred
// cases, and of pairwise steering (fuzz/coverage.h) too: no pair of strata is missing. But a case that meets
// two of the three shows itself, because it executes a side of a branch that hardly any other case executes.
// Its neighbours keep most of what made it special and change one thing. This is what coverage-guided fuzzers
// do (https://lcamtuf.coredump.cx/afl/technical_details.txt), with rarity deciding who gets neighbours, as in
// AFLFast (Boehme, Pham, Roychoudhury: Coverage-based Greybox Fuzzing as Markov Chain, CCS 2016).
//
//   whose    A side that n cases executed is drawn with weight 1/n, four times as much while its branch has
//            never gone the other way. Of the n cases any is as likely as the others: the k-th replaces the
//            one that is kept with probability 1/k. Sides that can never be executed attract nothing, and a
//            side that got many neighbours is rare no more.
//   what     One to three fields of the case are those of another generated case: a number, a recipe,
//            a list; of a list also one member, one number of a member, one member more or less. So every value
//            is one that the generator can draw. What the op's rules or the kernel refuse, what is no other
//            case, and what is much more work is drawn again, a few times.
//
// Nothing here looks at the clock or at the order in which workers answer: the state is a fold over verdicts
// in order of item, and a neighbour is a function of that state, the seed and its slot.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cases/case.h"
#include "fuzz/branches.h"

namespace attest::fuzz {

struct Neighbour {
  cases::Case c;
  std::uint64_t of = 0;              ///< item of the case it is next to
  std::vector<std::string> changed;  ///< "/shape/page_size", "/shape/requests/1/q_len": JSON pointers
};

class Neighbourhood {
 public:
  /// The verdict of `item`, a later one at each call.
  void absorb(std::uint64_t item, const std::string& kernel, const cases::Case& c, const BranchWays& ways);

  /// nullopt: no branch of the kernel is known, or nothing that was tried can be a case.
  [[nodiscard]] std::optional<Neighbour> next(const std::string& kernel, std::uint64_t seed,
                                              std::uint64_t slot) const;

 private:
  struct Reached {
    std::uint64_t item = 0;
    cases::Case c;
  };
  struct Side {
    std::uint64_t cases = 0;
    std::shared_ptr<const Reached> one;  ///< of them
  };
  struct Branch {
    Side sides[2];  ///< gone on, taken
  };
  using Branches = std::map<std::pair<std::string, std::size_t>, Branch>;  ///< by function and number
  std::map<std::string, Branches> kernels_;
};

/// `c` with one to three fields of `donor`, and what was changed; what they are is drawn from `random`.
/// nullopt: no case comes of it, or `c` itself.
std::optional<std::pair<cases::Case, std::vector<std::string>>> crossed(const cases::Case& c,
                                                                        const cases::Case& donor,
                                                                        std::uint64_t random);

}  // namespace attest::fuzz
