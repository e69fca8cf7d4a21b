// SPDX-License-Identifier: MIT
//
// One row of a result against its bound: the rules, in the order in which they can fail.
//
//   class    NaN and infinity where the reference is finite; an empty row that is not 0; the reverse
//   exact    for inputs whose result f32 holds without error: y must be the rounding of some z, |z - o| <= E,
//            with the bound of unrounded P. E is then so small that the set is one number almost everywhere
//   element  |y - o| beyond the rounding cell of the output, over E
//   lse      |yl - lse| over El
//   row      what is small in every element and systematic in the row: residual and scale, against the
//   deviations
//
// Every row stands for itself. A maximum, count or norm over rows would let one short request hide a long
// one.
#pragma once

#include <span>

#include "oracle/mla_bound.h"
#include "oracle/precision.h"
#include "oracle/rounding_grid.h"

namespace attest::oracle {

enum class Stage : std::uint8_t { none, data_class, exact, element, lse, row };
/// "class", "exact", ...; "" for none.
const char* name(Stage stage);

/// What is demanded of all rows of a launch.
struct Rules {
  RoundingGrid grid;
  OutputRounding rounding = OutputRounding::nearest_even;
  double lse_empty = 0;
  EmptyOutput empty = EmptyOutput::zero;
  bool exact = false;      ///< the exact lane: no row statistics either, roundings of k/n are not random
  bool generic = true;     ///< V has full rank and random entries, so that a correct residual is noise
  bool statistics = true;  ///< judge residual and scale
};

struct RowResult {
  Stage failed = Stage::none;  ///< the first rule that failed
  bool judged = false;         ///< something was claimed about this row
  bool telling = false;        ///< a row of zeros would have failed
  double used = 0;             ///< largest ratio of the element rule; infinite on a class failure
  int column = -1;             ///< where
  int failing_elements = 0;
  double lse_used = 0;                      ///< ratio of the lse rule
  double residual = 0, residual_limit = 0;  ///< zeta
  double scale = 0, scale_limit = 0;        ///< beta
};

/// What a mismatch map shows of a row: the largest of its ratios, whichever rule they are of.
double used_budget(const RowResult& result, std::span<const double> y, const double* lse);

/// @param y [C] one row of the result, @param lse its lse or nullptr
/// @param attention,bound of the request, @param row in it
RowResult compare_row(std::span<const double> y, const double* lse,
                      const reference::RequestAttention& attention, const MlaBound& bound, Eigen::Index row,
                      const Rules& rules);

}  // namespace attest::oracle
