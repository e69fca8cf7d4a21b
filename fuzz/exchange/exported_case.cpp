// SPDX-License-Identifier: MIT
#include "fuzz/exchange/exported_case.h"

#include <fmt/format.h>

#include <stdexcept>

#include "fuzz/exchange/description.h"
#include "oracle/judge.h"
#include "oracle/precision.h"

namespace attest::fuzz::exchange {

cases::Case exported_case(const std::string& path) {
  const SafetensorsFile file(path);
  const auto found = file.metadata().find("case");
  if (found == file.metadata().end())
    throw UsageError(
        fmt::format("{}: names no case in its metadata: it is no file of attest export (attest capture reads "
                    "dumps of calls)",
                    path));
  try {
    return cases::parse_case(found->second);
  } catch (const cases::CaseError& error) {
    throw UsageError(fmt::format("{}: case: {}", path, error.what()));
  }
}

oracle::Verdict check_outputs(const cases::Case& c, const std::string& path, const std::string& precision) {
  const oracle::PrecisionProfile* profile = nullptr;
  try {
    profile = &oracle::profile(precision);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--precision: {}", error.what()));
  }
  const SafetensorsFile file(path);
  const cases::Inputs inputs = cases::materialise(c);
  const Description description = describe(c, inputs);
  return oracle::judge(c, inputs, outputs_of(description, file), *profile);
}

}  // namespace attest::fuzz::exchange
