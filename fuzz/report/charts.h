// SPDX-License-Identifier: MIT
//
// The charts of a report as inline SVG, drawn here: no script, no resource from elsewhere. Colours are
// classes of fuzz/report/style.h, so that light and dark are the page's business. Sizes are CSS pixels; a
// chart wider than its place shrinks (histogram_chart, rate_chart) or is scrolled by the box around it
// (heat_map, coverage_matrix), whichever keeps its labels legible on a phone.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fuzz/coverage.h"
#include "fuzz/report/budget_histogram.h"
#include "fuzz/report/html.h"
#include "fuzz/report/mismatch_map.h"
#include "fuzz/report/run_numbers.h"

namespace attest::fuzz::report {

/// The CSS class of a verdict's colour: "v-fail"; "v-other" for a name of another version.
std::string verdict_class(const std::string& kind);

/// Shares of the verdicts, worst first.
Html verdict_bar(const std::map<std::string, std::uint64_t>& verdicts);

/// Cases by used budget. @param before drawn as an outline over it, as shares; nullptr: none
Html histogram_chart(const BudgetHistogram& histogram, const BudgetHistogram* before = nullptr);

/// Cases/s over the time of the run, with the moments when a worker was lost or the run was resumed.
Html rate_chart(const RunNumbers& run);

/// Query rows by heads, coloured by used budget. heat_map_legend names the colours.
Html heat_map(const MismatchMap& map);
Html heat_map_legend();

/// Fields by fields, coloured by the share of their pairs that tested cases had.
Html coverage_matrix(const Coverage& coverage);
Html coverage_legend();

}  // namespace attest::fuzz::report
