// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <optional>

#include "cases/inputs.h"
#include "fuzz/explain/asks.h"
#include "fuzz/explain/heat_map.h"
#include "fuzz/explain/paged_keys.h"
#include "fuzz/explain/subject.h"
#include "fuzz/record.h"
#include "fuzz/verbs.h"
#include "oracle/mla_judge.h"
#include "oracle/precision.h"

namespace attest::fuzz {
namespace {

using oracle::VerdictKind;

/// The outputs once more, in this process: the kernel has shown that it ends.
std::optional<oracle::Alternative> find_alternative(const Subject& s, const cases::Inputs& inputs,
                                                    const Common& common) {
  if (!std::holds_alternative<cases::MlaDecode>(s.c.problem) &&
      !std::holds_alternative<cases::VerifyAttention>(s.c.problem) &&
      !std::holds_alternative<cases::MlaSparse>(s.c.problem))
    return std::nullopt;
  const auto device = device::open_device(common.device, 0);
  device->choose_schedule(s.schedule);
  const device::Outcome outcome = s.kernel->run(*device, s.c, inputs);
  if (outcome.status != device::Status::ok) return std::nullopt;
  return oracle::alternative_mla(s.c, inputs, outcome.outputs, oracle::profile(s.kernel->precision()));
}

Json to_json(const oracle::Alternative& a) {
  return {{"model", a.model},
          {"agreement", a.bit_for_bit ? "bit for bit" : "within its bound"},
          {"rows", a.rows},
          {"elements", a.elements},
          {"with_alternative", a.with_alternative},
          {"with_reference", a.with_reference}};
}

double used(const oracle::Element& e) {
  const double excess = std::abs(e.got - e.expected);
  return std::isfinite(excess) && e.bound > 0 ? excess / e.bound : INFINITY;
}

Json keys_json(const SeenKeys& keys) {
  return {{"visible", keys.visible},
          {"pages", keys.pages},
          {"page_size", keys.page_size},
          {"last_slot", keys.last_slot},
          {"split_ends", keys.split_ends}};
}

Json worst_json(const Subject& s, const cases::Inputs& inputs, const oracle::Verdict& v) {
  Json list = Json::array();
  for (const oracle::Element& e : v.worst) {
    Json json = {{"request", e.request},
                 {"position", e.position},
                 {"head", e.head},
                 {"column", e.column},
                 {"got", number_json(e.got)},
                 {"expected", number_json(e.expected)},
                 {"bound", number_json(e.bound)},
                 {"bounds", number_json(used(e))},
                 {"term", e.term}};
    if (const auto keys = seen_keys(s.c, inputs, e.request, e.position)) json["keys"] = keys_json(*keys);
    list.push_back(std::move(json));
  }
  return list;
}

void print_worst(const Subject& s, const cases::Inputs& inputs, const oracle::Verdict& v) {
  if (v.worst.empty()) return;
  fmt::print("\nworst elements\n  {:>7} {:>8} {:>5} {:>6} {:>14} {:>14} {:>10} {:>9}  {}\n", "request",
             "position", "head", "column", "got", "expected", "bound", "bounds", "term");
  for (const oracle::Element& e : v.worst)
    fmt::print("  {:>7} {:>8} {:>5} {:>6} {:>14.7g} {:>14.7g} {:>10.3g} {:>9.3g}  {}\n", e.request,
               e.position, e.head, e.column < 0 ? "lse" : std::to_string(e.column), e.got, e.expected,
               e.bound, used(e), e.term);
  int request = -1, position = -1;
  for (const oracle::Element& e : v.worst) {
    if (e.request == request && e.position == position) continue;
    request = e.request;
    position = e.position;
    if (const auto keys = seen_keys(s.c, inputs, request, position))
      fmt::print("  request {} position {} {}\n", request, position, in_words(*keys));
  }
}

/// The detail of a fault, piece by piece.
void print_fault(const oracle::Verdict& v) {
  fmt::print("\nfault in {}\n", v.stage.empty() ? "the kernel" : v.stage);
  std::size_t begin = 0;
  while (begin < v.detail.size()) {
    const std::size_t end = std::min(v.detail.find("; ", begin), v.detail.size());
    fmt::print("  {}\n", v.detail.substr(begin, end - begin));
    begin = end + 2;
  }
}

void print_hazards(const device::Observations& seen) {
  if (seen.hazards.empty()) return;
  fmt::print("\nwhat the detectors saw\n");
  for (const device::Hazard& hazard : seen.hazards) {
    const Json h = Json::parse(hazard.json);
    fmt::print("  {}{}: {}\n", hazard.detector, hazard.hard ? "" : " (advisory)",
               h.at("message").get<std::string>());
    const auto site = [&](const char* label, const Json& at, const std::string& who) {
      if (!at.is_null())
        fmt::print("    {:<5} {:#06x}  {}{}\n", label, at.at("pc").get<std::uint64_t>(),
                   at.at("disassembly").get<std::string>(), who);
    };
    const int wave = h.at("wave").get<int>(), other = h.at("other_wave").get<int>();
    site("at", h.at("at"), wave >= 0 ? fmt::format("   wave {}", wave) : "");
    site("from", h.at("with"), other >= 0 ? fmt::format("   wave {}", other) : "");
    std::string place =
        fmt::format("{}, workgroup {}", h.at("kernel").get<std::string>(), h.at("workgroup").dump());
    if (h.at("lane").get<int>() >= 0) place += fmt::format(", lane {}", h.at("lane").get<int>());
    if (const auto buffer = h.at("buffer").get<std::string>(); !buffer.empty())
      place += fmt::format(", {} byte {}", buffer, h.at("offset").get<std::uint64_t>());
    if (h.at("distance").get<std::int64_t>() >= 0)
      place += fmt::format(", {} instructions apart", h.at("distance").get<std::int64_t>());
    fmt::print("    in    {}; met {} time{}\n", place, h.at("count").get<std::uint64_t>(),
               h.at("count").get<std::uint64_t>() == 1 ? "" : "s");
  }
}

int exit_code(const oracle::Verdict& v) {
  if (v.kind == VerdictKind::harness_error) return exit_harness;
  if (is_finding(v.kind)) return exit_verdict;
  return v.kind == VerdictKind::pass ? exit_ok : exit_nothing_tested;
}

}  // namespace

int verb_explain(const Common& common, const ExplainOptions& options) {
  const Subject s = select_subject(options.subject, common);
  const Evaluation e = evaluate_isolated(s, common, options.deadline_seconds);
  const oracle::Verdict& v = e.verdict;
  const cases::Inputs inputs = cases::materialise(s.c);
  std::optional<oracle::Alternative> alternative;
  if (!v.mismatch.empty()) alternative = find_alternative(s, inputs, common);
  const std::string signature = signature_of(s.kernel->name(), s.c, v);
  const std::vector<std::string> asked = asks(s.c, inputs);

  if (common.json) {
    Json json = {{"schema", record_schema},   {"word", s.word},       {"kernel", s.kernel->name()},
                 {"id", cases::case_id(s.c)}, {"case", to_json(s.c)}, {"asks", asked},
                 {"evaluation", to_json(e)}};
    if (!signature.empty()) json["signature"] = signature;
    json["alternative"] = alternative ? to_json(*alternative) : Json(nullptr);
    json["worst"] = worst_json(s, inputs, v);
    json["mismatch"] = to_json(v.mismatch);
    std::cout << json.dump(2) << "\n";
    return exit_code(v);
  }

  fmt::print("{}  {}  {}\n", oracle::name(v.kind), s.kernel->name(), s.word);
  if (!v.diagnosis.empty()) fmt::print("  {}\n", v.diagnosis);
  if (!s.kernel->fault().empty())
    fmt::print("  a planted fault: {}; it imitates {}\n", s.kernel->fault(), s.kernel->imitates());
  fmt::print("\nwhat the case asks for\n");
  for (const std::string& line : asked) fmt::print("  {}\n", line);
  if (v.kind == VerdictKind::crash || v.kind == VerdictKind::timeout) {
    print_fault(v);
  } else if (!v.detail.empty()) {
    fmt::print("\nwhat is wrong\n  {}\n", v.detail);
    if (v.elements_checked > 0)
      fmt::print(
          "  {} of {} elements and {} rows are out of bounds; the worst by {:.3g} times its bound ({})\n",
          v.elements_failed, v.elements_checked, v.rows_failed, v.used_budget, v.lane);
  }
  if (alternative)
    fmt::print(
        "\nwhat it is instead\n  the model \"{}\": {} of {} elements of {} failing rows agree with it {}; {} "
        "agree with the "
        "reference\n",
        alternative->model, alternative->with_alternative, alternative->elements, alternative->rows,
        alternative->bit_for_bit ? "bit for bit" : "within its bound", alternative->with_reference);
  print_worst(s, inputs, v);
  if (!v.mismatch.empty()) {
    fmt::print("\nwhere\n");
    for (const std::string& line : heat_map(v.mismatch)) fmt::print("  {}\n", line);
    for (const oracle::Mismatch& other : v.mismatch.others) {
      fmt::print("\nby {}, as far as the result tells\n  {}\n", other.axis, other.says);
      for (const std::string& line : heat_map(other)) fmt::print("  {}\n", line);
    }
  }
  print_hazards(e.observed);
  if (!signature.empty()) fmt::print("\nsignature  {}\n", signature);
  if (!v.mismatch.empty())
    fmt::print("trace      attest trace {}{}{}\n", s.word, options.subject.original ? " --original" : "",
               options.subject.kernel.empty() ? "" : " --kernel " + s.kernel->name());
  return exit_code(v);
}

}  // namespace attest::fuzz
