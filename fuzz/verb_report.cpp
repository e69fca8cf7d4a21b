// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <iostream>

#include "fuzz/report/page.h"
#include "fuzz/report/run_numbers.h"
#include "fuzz/run_folder.h"
#include "fuzz/usage_error.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {

int verb_report(const Common& common, const ReportOptions& options) {
  const report::RunNumbers run = report::read_run(options.folders.at(0));
  std::string out = options.out;
  if (out.empty() && !common.json) out = options.folders[0] + "/report.html";
  if (!out.empty()) write_whole_file(out, report::page(run));
  if (common.json)
    std::cout << report::report_json(run).dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  else
    fmt::print("{}: {} cases, {} tested, {} findings{}\n", out, run.cases_run, run.tested,
               run.findings.size(), run.complete ? "" : "; the run has not ended");
  return exit_ok;
}

}  // namespace attest::fuzz
