// SPDX-License-Identifier: MIT
//
// Results that are lists of int32: fetched by name, checked for size, compared entry by entry.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cases/inputs.h"
#include "oracle/verdict.h"

namespace attest::oracle {

/// nullopt and one line in `why` when the tensor is missing or does not hold `count` int32.
inline std::optional<std::vector<std::int32_t>> integers(const cases::Outputs& outputs,
                                                         const std::string& name, std::size_t count,
                                                         std::string& why) {
  const cases::Outputs::Tensor* tensor = outputs.find(name);
  if (tensor == nullptr) {
    why = fmt::format("output {} is missing", name);
    return std::nullopt;
  }
  std::vector<std::int32_t> values(count);
  if (tensor->bytes.size() != 4 * count) {
    why = fmt::format("output {} has {} bytes, not {}", name, tensor->bytes.size(), 4 * count);
    return std::nullopt;
  }
  if (count > 0) std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

/// The first index at which the two differ; -1 when none does. `got` may be longer.
inline std::ptrdiff_t first_difference(std::span<const std::int32_t> expected,
                                       std::span<const std::int32_t> got) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (expected[i] != got[i]) return static_cast<std::ptrdiff_t>(i);
  return -1;
}

/// A verdict that an output cannot be judged at all.
inline Verdict unreadable(const std::string& why) {
  Verdict verdict;
  verdict.kind = VerdictKind::harness_error;
  verdict.diagnosis = "outputs missing or of the wrong size";
  verdict.detail = why;
  return verdict;
}

}  // namespace attest::oracle
