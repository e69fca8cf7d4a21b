// SPDX-License-Identifier: MIT
#include "fuzz/merge.h"
#include "fuzz/run_folder.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {

int verb_merge(const Common& common, const MergeOptions& options) {
  check_shards(options.folders);
  RunFolder out(options.out.empty() ? next_run_path() : options.out);
  return say_summary(common, merge_runs(options.folders, out), out.path());
}

}  // namespace attest::fuzz
