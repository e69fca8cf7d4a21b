// SPDX-License-Identifier: MIT
//
// Part i of n of a campaign: every case whose number is i modulo n. A pure function of (seed, i, n): the
// cases themselves do not know of shards. Strides and not blocks, since what a case costs depends on where in
// a campaign it is.
//
// Launchers name a part by environment variables; the first that is set counts:
//
//   BUILDKITE_PARALLEL_JOB, BUILDKITE_PARALLEL_JOB_COUNT https://buildkite.com/docs/tutorials/parallel-builds
//   SLURM_ARRAY_TASK_ID, _COUNT, _MIN, _STEP                   https://slurm.schedmd.com/job_array.html
//   GTEST_SHARD_INDEX, GTEST_TOTAL_SHARDS                      google.github.io/googletest/advanced.html
//   TEST_SHARD_INDEX, TEST_TOTAL_SHARDS                        bazel.build/reference/test-encyclopedia
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace attest::fuzz {

struct Shard {
  std::uint64_t index = 0, count = 1;
  [[nodiscard]] bool has(std::uint64_t number) const { return number % count == index; }
  bool operator==(const Shard&) const = default;
};

/// "2/8", the index from 0. Throws UsageError.
Shard parse_shard(const std::string& text);

/// @param variable the environment; nullptr when unset. @param from the variable that decided. Throws
/// UsageError when one is set and the others of its kind are missing or contradict it.
std::optional<Shard> shard_of_environment(const std::function<const char*(const char*)>& variable,
                                          std::string& from);

}  // namespace attest::fuzz
