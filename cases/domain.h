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
  std::vector<int> heads;                             ///< not empty
  int longest_q_len_min = 1, longest_q_len_max = 16;  ///< of the longest request of the batch
  bool uniform_q_len = false;                         ///< every request has the longest's q_len
  Format q_format = Format::bf16, kv_format = Format::bf16;
  bool causal_only = false;
  bool single_split = false;
  bool return_lse = true;                      ///< false: return_lse is set to false
  bool page_padding = true;                    ///< false: page_padding_bytes is set to 0
  std::vector<Placement> placements_excluded;  ///< moved to shuffled
};

/// `c` with as little changed as puts it into the domain. A valid case stays valid.
Case fit(Case c, const MlaDecodeDomain& domain);

}  // namespace attest::cases
