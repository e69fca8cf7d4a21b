// SPDX-License-Identifier: MIT
#include "fuzz/gate_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>
#include <vector>

namespace attest::fuzz {
namespace {

/// XML 1.0 has no way to write most control characters.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t'; }, '?');
  return text;
}

const char* name(Check::Result result) {
  switch (result) {
    case Check::Result::passed:
      return "passed";
    case Check::Result::failed:
      return "failed";
    case Check::Result::skipped:
      break;
  }
  return "skipped";
}

/// Groups in order of first appearance.
std::vector<std::string> groups_of(const GateReport& report) {
  std::vector<std::string> groups;
  for (const Check& check : report.checks)
    if (std::find(groups.begin(), groups.end(), check.group) == groups.end()) groups.push_back(check.group);
  return groups;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// A cell of a Markdown table.
std::string in_table(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// What went wrong, check by check.
std::string failed_checks(const GateReport& report) {
  std::string rows;
  for (const Check& c : report.checks)
    if (c.result == Check::Result::failed)
      rows += fmt::format("| {} | {} | {} |\n", in_table(c.group), in_table(c.what), in_table(c.why));
  if (rows.empty()) return rows;
  return "### Not as expected\n\n| where | what | why |\n|---|---|---|\n" + rows + "\n";
}

/// What was not run, a line per reason: where the kernels of others are missing, that is one reason and
/// dozens of checks. The JUnit and JSON forms have all of them.
std::string skipped_checks(const GateReport& report) {
  struct Reason {
    std::string why, first;
    int checks = 0;
  };
  std::vector<Reason> reasons;
  for (const Check& c : report.checks) {
    if (c.result != Check::Result::skipped) continue;
    auto at = std::find_if(reasons.begin(), reasons.end(), [&](const Reason& r) { return r.why == c.why; });
    if (at == reasons.end()) at = reasons.insert(at, {.why = c.why, .first = c.group + ": " + c.what});
    ++at->checks;
  }
  if (reasons.empty()) return {};
  std::string text = "### Skipped\n\n| why | checks | the first |\n|---|--:|---|\n";
  for (const Reason& r : reasons)
    text += fmt::format("| {} | {} | {} |\n", in_table(r.why), r.checks, in_table(r.first));
  return text + "\n";
}

}  // namespace

std::string junit_xml(const GateReport& report) {
  pugi::xml_document document;
  auto declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  auto root = document.append_child("testsuites");
  root.append_attribute("name") = "attest gate";
  const auto count = [&](const std::string& group, Check::Result result) {
    return static_cast<unsigned>(std::count_if(
        report.checks.begin(), report.checks.end(),
        [&](const Check& c) { return (group.empty() || c.group == group) && c.result == result; }));
  };
  const auto counts = [&](pugi::xml_node node, const std::string& group) {
    const unsigned failed = count(group, Check::Result::failed),
                   skipped = count(group, Check::Result::skipped);
    node.append_attribute("tests") = failed + skipped + count(group, Check::Result::passed);
    node.append_attribute("failures") = failed;
    node.append_attribute("errors") = 0;
    node.append_attribute("skipped") = skipped;
  };
  counts(root, "");
  root.append_attribute("time") = fmt::format("{:.3f}", report.seconds).c_str();
  for (const std::string& group : groups_of(report)) {
    auto suite = root.append_child("testsuite");
    suite.append_attribute("name") = printable(group).c_str();
    counts(suite, group);
    auto properties = suite.append_child("properties");
    const auto property = [&](const char* key, const std::string& value) {
      auto node = properties.append_child("property");
      node.append_attribute("name") = key;
      node.append_attribute("value") = value.c_str();
    };
    property("commit", report.commit);
    property("seed", fmt::format("{}", report.seed));
    property("device", report.device);
    property("arch", report.arch);
    for (const Check& check : report.checks) {
      if (check.group != group) continue;
      auto test = suite.append_child("testcase");
      test.append_attribute("classname") = printable(group).c_str();
      test.append_attribute("name") = printable(check.what).c_str();
      test.append_attribute("time") = fmt::format("{:.3f}", check.seconds).c_str();
      if (check.result == Check::Result::passed) continue;
      auto node = test.append_child(check.result == Check::Result::failed ? "failure" : "skipped");
      node.append_attribute("message") = printable(first_line(check.why)).c_str();
      if (check.result == Check::Result::failed) {
        node.append_attribute("type") = fuzz::name(check.outcome);
        node.append_child(pugi::node_pcdata).set_value(printable(check.why).c_str());
      }
    }
  }
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

Json to_json(const GateReport& report) {
  Json cells = Json::array();
  for (const CellResult& c : report.cells)
    cells.push_back({{"kernel", c.cell.kernel},
                     {"op", c.cell.op},
                     {"arch", c.cell.arch},
                     {"device", c.cell.device},
                     {"built", c.built},
                     {"cases", c.cases},
                     {"tested", c.tested},
                     {"least_tested", c.cell.least_tested},
                     {"failed", c.failed},
                     {"known", c.known},
                     {"quarantined", c.quarantined},
                     {"pairs", {{"covered", c.pairs_covered}, {"reachable", c.pairs_reachable}}}});
  Json checks = Json::array();
  for (const Check& c : report.checks)
    checks.push_back({{"group", c.group},
                      {"what", c.what},
                      {"result", name(c.result)},
                      {"outcome", fuzz::name(c.outcome)},
                      {"why", c.why},
                      {"seconds", c.seconds}});
  return {{"schema", record_schema},
          {"outcome", fuzz::name(report.outcome)},
          {"exit_code", exit_code(report.outcome)},
          {"commit", report.commit},
          {"seed", report.seed},
          {"device", report.device},
          {"arch", report.arch},
          {"seconds", report.seconds},
          {"folder", report.folder},
          {"cells", std::move(cells)},
          {"checks", std::move(checks)},
          {"remarks", report.remarks}};
}

std::string markdown(const GateReport& report) {
  std::string text = fmt::format("## attest gate: {}\n\n", fuzz::name(report.outcome));
  text += fmt::format("{} on {}, commit `{}`, seed {}, {:.0f} s\n\n", report.device, report.arch,
                      report.commit.empty() ? "none" : report.commit, report.seed, report.seconds);
  if (!report.cells.empty()) {
    text += "| promised kernel | cases | tested | new failures | known | quarantined | pairs of strata |\n";
    text += "|---|--:|--:|--:|--:|--:|--:|\n";
    for (const CellResult& c : report.cells)
      text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", c.cell.kernel,
                          c.built ? std::to_string(c.cases) : "not built", c.tested, c.failed, c.known,
                          c.quarantined, fmt::format("{} of {}", c.pairs_covered, c.pairs_reachable));
    text += "\n";
  }
  text += failed_checks(report);
  text += skipped_checks(report);
  for (const std::string& remark : report.remarks) text += fmt::format("- {}\n", remark);
  return text;
}

}  // namespace attest::fuzz
