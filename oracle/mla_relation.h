// SPDX-License-Identifier: MIT
//
// Relations between two runs of an MLA kernel (oracle/relation.h), for mla_decode and mla_sparse.
//
//   page permutation   the same rows on other pages                 the same bits
//   unused memory      other poison wherever nothing valid lies     the same bits
//   future keys        the last key of a request changed            the same bits where it is not seen
//   batch neighbours   one request (query token) alone              within twice the bound
//   head permutation   heads rotated by one                         within twice the bound
//   single queries     q_len = n as n requests of one query         within twice the bound
//   list order         lists read backwards                         within twice the bound, or the same bits
//   dense              lists that hold all keys, as mla_decode      within twice the bound, or the same bits
//
// The last two ask for the same bits when all sums are exact and there is one split.
//
// Bits may be demanded where a kernel has no reason to do anything else: addresses do not enter arithmetic.
// They may not where the shape of a launch decides how a sum is cut up: a split count that follows the batch
// moves a result by an ulp or two and is right (deepseek-ai/FlashMLA#212). There both results lie within E
// and their rounding of the exact one, so they lie within twice that of each other.
#pragma once

#include <vector>

#include "oracle/relation.h"

namespace attest::oracle {

/// At most one, by the seed of the case: about one case in four has one.
std::vector<Relation> mla_decode_relations(const cases::Case& c, const cases::Inputs& inputs,
                                           const PrecisionProfile& profile);
std::vector<Relation> mla_sparse_relations(const cases::Case& c, const cases::Inputs& inputs,
                                           const PrecisionProfile& profile);

/// All that apply to the case, whatever its seed.
std::vector<Relation> all_mla_relations(const cases::Case& c, const cases::Inputs& inputs,
                                        const PrecisionProfile& profile);

}  // namespace attest::oracle
