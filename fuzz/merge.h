// SPDX-License-Identifier: MIT
//
// The shards of a campaign, joined.
//
// A shard's verdicts are those of the whole campaign at its items, so the whole is its verdicts in order of
// item. The first case of a signature in the whole is the first in its shard too, so its finding was made
// there, confirmed and shrunk from the same case: it is taken over as it is, and those that other shards made
// of later cases are dropped. The result equals the unsharded run: the same verdicts, counts, coverage and
// findings. (One thing may exceed it: `max_shrunk` counts findings per shard, so later findings of a
// kernel may come shrunk where the whole run would have kept them as found.)
#pragma once

#include <string>
#include <vector>

#include "fuzz/run_folder.h"
#include "fuzz/summary.h"

namespace attest::fuzz {

/// Writes the joined run into `out`. Throws UsageError when the folders are not all the shards of one
/// campaign, each exactly once and ended; the message names what is missing.
Summary merge_runs(const std::vector<std::string>& folders, RunFolder& out);

/// The check that merge_runs begins with, before there is an `out`.
void check_shards(const std::vector<std::string>& folders);

}  // namespace attest::fuzz
