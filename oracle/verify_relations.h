// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "oracle/relation.h"

namespace attest::oracle {

/// The relations of verify_attention, each on an eighth of the seeds:
///
///   future KV        with the cache row of one node changed, every row that does not see the node has the
///                    same bits. A draft that can look ahead raises acceptance and looks like a speed-up
///                    (vllm-project/vllm#50476)
///   padded, folded   without leading rows and folding where the case has them, with them where it has not,
///                    every row has the same bits
std::vector<Relation> verify_relations(const cases::Case& c, const cases::Inputs& inputs);

}  // namespace attest::oracle
