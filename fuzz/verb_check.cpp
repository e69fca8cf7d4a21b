// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <iostream>

#include "fuzz/exchange/exported_case.h"
#include "fuzz/selection.h"
#include "fuzz/verbs.h"
#include "fuzz/verdict_lines.h"

namespace attest::fuzz {

int verb_check(const Common& common, const CheckOptions& options) {
  const Reproduction r = select_case(options.file, options.kernel);
  const oracle::Verdict verdict = exchange::check_outputs(r.c, options.outputs, options.precision);
  if (common.json) {
    std::cout << Json{{"schema", record_schema},        {"outputs", options.outputs},
                      {"id", cases::case_id(r.c)},      {"case", to_json(r.c)},
                      {"precision", options.precision}, {"verdict", to_json(verdict)}}
                     .dump(2)
              << "\n";
  } else {
    fmt::print("{}  {}\n  case        {}\n", oracle::name(verdict.kind), options.outputs,
               cases::canonical_json(r.c));
    print_verdict(verdict);
  }
  return exit_of(verdict);
}

}  // namespace attest::fuzz
