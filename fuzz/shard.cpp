// SPDX-License-Identifier: MIT
#include "fuzz/shard.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "fuzz/usage_error.h"

namespace attest::fuzz {
namespace {

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Launcher {
  const char *index, *count, *first, *step;  // first, step: nullptr = counts from 0 by 1
};
constexpr std::array<Launcher, 4> launchers = {{
    {"BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", nullptr, nullptr},
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP"},
    {"GTEST_SHARD_INDEX", "GTEST_TOTAL_SHARDS", nullptr, nullptr},
    {"TEST_SHARD_INDEX", "TEST_TOTAL_SHARDS", nullptr, nullptr},
}};

}  // namespace

Shard parse_shard(const std::string& text) {
  const auto slash = text.find('/');
  if (slash != std::string::npos) {
    const auto index = number_of(std::string_view(text).substr(0, slash));
    const auto count = number_of(std::string_view(text).substr(slash + 1));
    if (index && count && *index < *count) return {*index, *count};
  }
  throw UsageError(fmt::format("--shard {}: must be INDEX/COUNT with the index from 0, as 0/4 to 3/4", text));
}

std::optional<Shard> shard_of_environment(const std::function<const char*(const char*)>& variable,
                                          std::string& from) {
  for (const Launcher& launcher : launchers) {
    const char* index_text = variable(launcher.index);
    if (index_text == nullptr) continue;
    const auto value = [&](const char* name) -> std::uint64_t {
      const char* text = variable(name);
      if (text == nullptr)
        throw UsageError(
            fmt::format("{} is set and {} is not: give --shard INDEX/COUNT", launcher.index, name));
      const auto number = number_of(text);
      if (!number)
        throw UsageError(fmt::format("{}={}: is not a number; give --shard INDEX/COUNT", name, text));
      return *number;
    };
    const auto optional = [&](const char* name, std::uint64_t otherwise) {
      return name == nullptr || variable(name) == nullptr ? otherwise : value(name);
    };
    const std::uint64_t id = value(launcher.index), count = value(launcher.count);
    const std::uint64_t first = optional(launcher.first, 0), step = optional(launcher.step, 1);
    if (step == 0 || id < first || (id - first) % step != 0 || (id - first) / step >= count)
      throw UsageError(
          fmt::format("{}={} is none of {} shards; give --shard INDEX/COUNT", launcher.index, id, count));
    from = launcher.index;
    return Shard{(id - first) / step, count};
  }
  return std::nullopt;
}

}  // namespace attest::fuzz
