// SPDX-License-Identifier: MIT
//
// What kind of wrong a result is: the pattern a person would look for, named from the numbers.
#pragma once

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

}  // namespace attest::oracle
