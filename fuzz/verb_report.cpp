// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <iostream>

#include "fuzz/report/comparison.h"
#include "fuzz/report/html.h"
#include "fuzz/report/page.h"
#include "fuzz/report/run_numbers.h"
#include "fuzz/run_folder.h"
#include "fuzz/usage_error.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {
namespace {

void hand_over(const Common& common, const std::string& out, const std::string& page, const Json& numbers,
               const std::string& said) {
  if (!out.empty()) {
    try {
      write_whole_file(out, page);
    } catch (const RunFolderError& error) {
      throw UsageError(fmt::format("{}; choose another --out", error.what()));
    }
  }
  if (common.json)
    std::cout << numbers.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  else
    fmt::print("{}: {}\n", out, said);
}

int report_comparison(const Common& common, const ReportOptions& options, const std::string& out) {
  const report::RunNumbers before = report::read_run(options.folders[0]),
                           after = report::read_run(options.folders[1]);
  const report::Comparison c = report::compare(before, after);
  hand_over(
      common, out, report::comparison_page(before, after, c), report::comparison_json(before, after, c),
      fmt::format("{}, {}, {}, {}", report::counted(c.fresh.size(), "new finding"),
                  report::counted(c.drifted(), "drifted kernel"),
                  report::counted(c.worse_verdicts(), "worse verdict"),
                  report::counted(c.no_more_tested(), "kernel no more tested", "kernels no more tested")));
  return c.worse() ? exit_verdict : exit_ok;
}

}  // namespace

int verb_report(const Common& common, const ReportOptions& options) {
  const bool two = options.folders.size() == 2;
  std::string out = options.out;
  if (out.empty() && !common.json) out = options.folders.back() + (two ? "/comparison.html" : "/report.html");
  if (two) return report_comparison(common, options, out);
  const report::RunNumbers run = report::read_run(options.folders[0]);
  hand_over(common, out, report::page(run), report::report_json(run),
            fmt::format("{}, {} tested, {}{}", report::counted(run.cases_run, "case"),
                        report::grouped(run.tested), report::counted(run.findings.size(), "finding"),
                        run.complete ? "" : "; the run has not ended"));
  return exit_ok;
}

}  // namespace attest::fuzz
