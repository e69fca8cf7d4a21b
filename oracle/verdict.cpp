// SPDX-License-Identifier: MIT
#include "oracle/verdict.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace attest::oracle {

const char* name(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::pass:
      return "pass";
    case VerdictKind::fail:
      return "fail";
    case VerdictKind::crash:
      return "crash";
    case VerdictKind::timeout:
      return "timeout";
    case VerdictKind::hazard:
      return "hazard";
    case VerdictKind::flaky:
      return "flaky";
    case VerdictKind::unsupported:
      return "unsupported";
    case VerdictKind::mistrusted:
      return "mistrusted";
    case VerdictKind::harness_error:
      return "harness_error";
  }
  return "harness_error";
}

std::string signature(const std::string& op, const std::string& kernel, const Verdict& verdict) {
  constexpr std::array<std::string_view, 5> result_stages = {"class", "exact", "element", "lse", "row"};
  const bool result =
      std::find(result_stages.begin(), result_stages.end(), verdict.stage) != result_stages.end();
  return op + '/' + kernel + '/' + name(verdict.kind) + '/' + (result ? "result" : verdict.stage) + '/' +
         verdict.diagnosis;
}

}  // namespace attest::oracle
