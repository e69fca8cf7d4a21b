// SPDX-License-Identifier: MIT
//
// What kind of wrong a result is: the pattern a person would look for, named from the numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "oracle/mla_compare.h"
#include "oracle/mla_launch.h"

namespace attest::oracle {

struct Diagnosis {
  std::string text;    ///< short, stable, free of coordinates and of the case's recipe: part of a signature
  std::string detail;  ///< coordinates and estimates
};

/// @param rows the results of all rows of the launch; at least one failed. The profile is the one they were
/// judged by.
Diagnosis diagnose(const MlaLaunch& launch, const std::vector<RowResult>& rows, const Rules& rules,
                   const PrecisionProfile& profile);

/// A model of the defect that the diagnosis rests on, held against every element of up to 64 failing rows.
struct Alternative {
  std::string model;         ///< the diagnosis
  bool bit_for_bit = false;  ///< elements agree when their bits do: the rows hold other rows. Else within the
                             ///< model's own bound (oracle/imagined.h)
  std::int64_t rows = 0, elements = 0;
  std::int64_t with_alternative = 0, with_reference = 0;  ///< elements that agree
};

/// nullopt: the diagnosis is a pattern or an estimate and no model gives the elements. Arguments as for
/// diagnose.
std::optional<Alternative> alternative(const MlaLaunch& launch, const std::vector<RowResult>& rows,
                                       const Rules& rules, const PrecisionProfile& profile);

}  // namespace attest::oracle
