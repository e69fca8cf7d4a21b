// SPDX-License-Identifier: MIT
#include "cases/vocabulary.h"

#include <array>

namespace attest::cases {

std::span<const char* const> names(Format) {
  static constexpr std::array all = {"bf16",         "f16",      "f32",          "fp8_e4m3fn",
                                     "fp8_e4m3fnuz", "fp8_e5m2", "fp8_e5m2fnuz", "e8m0"};
  return all;
}

std::span<const char* const> names(Fill) {
  static constexpr std::array all = {
      "normal",      "mean_shifted",    "outlier_channels", "needle",     "position_coded", "constant_scores",
      "wide_scores", "negative_offset", "deep_offset",      "tiny",       "cancelling",     "saturating",
      "exact",       "few_values",      "zero_ties",        "infinities", "nans",           "ascending",
      "descending"};
  return all;
}

std::span<const char* const> names(Poison) {
  static constexpr std::array all = {"nan", "inf", "large", "stale", "zero"};
  return all;
}

std::span<const char* const> names(Placement) {
  static constexpr std::array all = {"ordered", "shuffled", "reversed", "high", "beyond_2gib", "beyond_4gib"};
  return all;
}

}  // namespace attest::cases
