// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <map>

#include "fuzz/case_files.h"
#include "fuzz/causes.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {
namespace {

struct Sorted {
  const Cause* cause = nullptr;  ///< nullptr: new
  std::string file, kernel, diagnosis;
};

std::vector<Sorted> sort_findings(const std::vector<std::string>& words, const Causes& causes) {
  std::vector<std::string> where;
  for (const std::string& word : words) {
    const std::filesystem::path failures = std::filesystem::path(word) / "failures";
    if (std::filesystem::exists(std::filesystem::path(word) / "events.jsonl") &&
        !std::filesystem::exists(failures))
      continue;  // a run without findings
    where.push_back(std::filesystem::is_directory(failures) ? failures.string() : word);
  }
  std::vector<Sorted> sorted;
  if (where.empty()) return sorted;
  for (const std::string& file : json_files(where)) {
    const Sighting finding = Sighting::read(file);
    sorted.push_back({causes.of(finding), file, finding.kernel, finding.diagnosis});
  }
  return sorted;
}

std::string counted(std::size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

}  // namespace

int verb_triage(const Common& common, const TriageOptions& options) {
  const Causes causes = Causes::read(options.causes);
  const std::vector<Sorted> findings = sort_findings(options.words, causes);
  std::map<const Cause*, std::vector<const Sorted*>> of;
  for (const Sorted& finding : findings) of[finding.cause].push_back(&finding);
  const std::size_t fresh = of.count(nullptr) != 0 ? of.at(nullptr).size() : 0;
  const std::size_t known = of.size() - (fresh > 0 ? 1 : 0);

  if (common.json) {
    Json json{
        {"schema", 1}, {"findings", findings.size()}, {"new", Json::array()}, {"causes", Json::array()}};
    const auto entry = [](const Sorted& f) {
      return Json{{"file", f.file}, {"kernel", f.kernel}, {"diagnosis", f.diagnosis}};
    };
    if (fresh > 0)
      for (const Sorted* f : of.at(nullptr)) json["new"].push_back(entry(*f));
    for (const Cause& cause : causes.all()) {
      Json list = Json::array();
      if (const auto it = of.find(&cause); it != of.end())
        for (const Sorted* f : it->second) list.push_back(entry(*f));
      json["causes"].push_back({{"id", cause.id}, {"cause", cause.text}, {"findings", std::move(list)}});
    }
    std::cout << json.dump(2) << "\n";
  } else {
    fmt::print("{}: {} of {}, {} new\n", counted(findings.size(), "finding"), findings.size() - fresh,
               counted(known, "known cause"), fresh);
    for (const Cause& cause : causes.all())
      if (const auto it = of.find(&cause); it != of.end())
        fmt::print("{:>6}  {}: {}\n", it->second.size(), cause.id, cause.text);
    if (fresh > 0) {
      fmt::print("\nnew\n");
      for (const Sorted* f : of.at(nullptr))
        fmt::print("  {}  {}\n    attest explain {}\n", f->kernel, f->diagnosis, f->file);
    }
  }
  return fresh > 0 ? exit_verdict : exit_ok;
}

}  // namespace attest::fuzz
