// SPDX-License-Identifier: MIT
//
// The part of the case space that a narrow kernel takes, and the way into it.
//
// A hand-written kernel does one head count, one q_len range, one pair of formats. Drawing from the whole
// space would skip most cases; drawing until one fits would waste as many. Instead a case is moved into the
// domain, by changing only what does not fit, as a pure function of the case: case k of a campaign stays a
// function of (seed, k, kernel).
#pragma once

#include <utility>
#include <vector>

#include "cases/case.h"

namespace attest::cases {

struct MlaDecodeDomain {
  std::vector<int> heads;                             ///< empty: any
  int longest_q_len_min = 1, longest_q_len_max = 16;  ///< of the longest request of the batch
  bool uniform_q_len = false;                         ///< every request has the longest's q_len
  Format q_format = Format::bf16, kv_format = Format::bf16;
  KvLayout kv_layout = KvLayout::rows;
  bool causal_only = false;
  bool return_lse = true;                      ///< false: return_lse is set to false
  std::vector<int> page_sizes;                 ///< empty: any
  bool page_padding = true;                    ///< false: page_padding_bytes is set to 0
  std::vector<Placement> placements_excluded;  ///< moved to shuffled
  /// Every request has a query and, for each of its positions, a key: q_len 0 becomes 1, kv_len is raised.
  bool keys_for_every_row = false;
  int num_splits_min = 1, num_splits_max = 32;
  bool lse_with_one_split = true;  ///< false: return_lse is set to false where num_splits is 1
  /// With splits dealt out in chunks of so many tokens, every split has a key that the first position sees:
  /// as many splits as the shortest request has such chunks. 0: no matter.
  int tokens_per_split = 0;
  bool unit_scales = false;    ///< q_scale and kv_scale are 1
  bool finite_unused = false;  ///< memory.unused nan and inf become stale
};

/// `c` with as little changed as puts it into the domain. A valid case stays valid.
Case fit(Case c, const MlaDecodeDomain& domain);

}  // namespace attest::cases
