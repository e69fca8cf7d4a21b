// SPDX-License-Identifier: MIT
#include "fuzz/record.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "device/hip/device.h"

namespace attest::fuzz {
namespace {

double number_from_json(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

oracle::VerdictKind kind_from_name(const std::string& text) {
  using oracle::VerdictKind;
  for (const auto kind :
       {VerdictKind::pass, VerdictKind::fail, VerdictKind::crash, VerdictKind::timeout, VerdictKind::hazard,
        VerdictKind::flaky, VerdictKind::unsupported, VerdictKind::mistrusted, VerdictKind::harness_error})
    if (text == oracle::name(kind)) return kind;
  throw std::invalid_argument("unknown verdict kind " + text);
}

}  // namespace

Json number_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json to_json(const oracle::Verdict& verdict) {
  Json json = {{"kind", oracle::name(verdict.kind)},
               {"stage", verdict.stage},
               {"diagnosis", verdict.diagnosis},
               {"detail", verdict.detail},
               {"used_budget", number_json(verdict.used_budget)},
               {"lane", verdict.lane},
               {"elements_checked", verdict.elements_checked},
               {"elements_failed", verdict.elements_failed},
               {"rows_failed", verdict.rows_failed}};
  Json worst = Json::array();
  for (const auto& e : verdict.worst)
    worst.push_back({{"request", e.request},
                     {"position", e.position},
                     {"head", e.head},
                     {"column", e.column},
                     {"expected", number_json(e.expected)},
                     {"got", number_json(e.got)},
                     {"bound", number_json(e.bound)},
                     {"term", e.term}});
  json["worst"] = std::move(worst);
  return json;
}

Json to_json(const oracle::Mismatch& map) {
  if (map.empty()) return nullptr;
  Json rows = Json::array(), used = Json::array();
  for (const auto& row : map.rows) rows.push_back({{"request", row.request}, {"position", row.position}});
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    Json line = Json::array();
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const double value = map.at(r, c);
      if (value == oracle::Mismatch::not_checked)
        line.push_back(nullptr);
      else if (std::isfinite(value))
        line.push_back(std::stod(fmt::format("{:.4g}", value)));
      else
        line.push_back(number_json(value));
    }
    used.push_back(std::move(line));
  }
  Json json = {{"rows", std::move(rows)}, {"columns", map.columns}, {"axis", map.axis}};
  if (map.row_block > 1) json["row_block"] = map.row_block;
  if (map.column_block > 1) json["column_block"] = map.column_block;
  json["used"] = std::move(used);
  if (!map.says.empty()) json["says"] = map.says;
  for (const oracle::Mismatch& other : map.others) json["others"].push_back(to_json(other));
  return json;
}

oracle::Mismatch mismatch_from_json(const Json& json) {
  oracle::Mismatch map;
  if (json.is_null()) return map;
  map.axis = json.at("axis").get<std::string>();
  map.columns = json.at("columns").get<std::vector<std::string>>();
  map.row_block = json.value("row_block", 1);
  map.column_block = json.value("column_block", 1);
  for (const Json& row : json.at("rows"))
    map.rows.push_back({row.at("request").get<int>(), row.at("position").get<int>()});
  for (const Json& line : json.at("used"))
    for (const Json& value : line)
      map.used.push_back(value.is_null() ? oracle::Mismatch::not_checked : number_from_json(value));
  if (map.used.size() != map.rows.size() * map.columns.size())
    throw std::invalid_argument("a mismatch map whose \"used\" is not rows by columns");
  map.says = json.value("says", "");
  if (json.contains("others"))
    for (const Json& other : json.at("others")) map.others.push_back(mismatch_from_json(other));
  return map;
}

Json to_json(const Evaluation& evaluation) {
  Json json = {{"verdict", to_json(evaluation.verdict)},
               {"output_digest", evaluation.output_digest},
               {"wave_instructions", evaluation.wave_instructions},
               {"materialise_seconds", evaluation.materialise_seconds},
               {"run_seconds", evaluation.run_seconds},
               {"judge_seconds", evaluation.judge_seconds}};
  if (!evaluation.observed.empty()) json["observed"] = to_json(evaluation.observed);
  if (!evaluation.branches.empty()) json["branches"] = evaluation.branches;
  if (!evaluation.verdict.mismatch.empty()) json["mismatch"] = to_json(evaluation.verdict.mismatch);
  return json;
}

Json to_json(const device::Observations& observed) {
  Json hazards = Json::array();
  for (const auto& h : observed.hazards) hazards.push_back(Json::parse(h.json));
  Json ledger = Json::array();
  for (const auto& row : observed.ledger)
    ledger.push_back({{"op", row.op},
                      {"count", row.count},
                      {"exactness", row.exactness},
                      {"ulp", row.ulp},
                      {"reason", row.reason}});
  return {{"hazards", std::move(hazards)},
          {"clipped",
           {{"loads", observed.clipped_loads},
            {"stores", observed.clipped_stores},
            {"atomics", observed.clipped_atomics}}},
          {"fidelity", std::move(ledger)}};
}

Evaluation evaluation_from_json(const Json& json) {
  Evaluation result;
  const Json& v = json.at("verdict");
  auto& verdict = result.verdict;
  verdict.kind = kind_from_name(v.at("kind").get<std::string>());
  verdict.stage = v.at("stage").get<std::string>();
  verdict.diagnosis = v.at("diagnosis").get<std::string>();
  verdict.detail = v.at("detail").get<std::string>();
  verdict.used_budget = number_from_json(v.at("used_budget"));
  verdict.lane = v.at("lane").get<std::string>();
  verdict.elements_checked = v.at("elements_checked").get<std::int64_t>();
  verdict.elements_failed = v.at("elements_failed").get<std::int64_t>();
  verdict.rows_failed = v.at("rows_failed").get<std::int64_t>();
  for (const Json& e : v.at("worst"))
    verdict.worst.push_back({.request = e.at("request").get<int>(),
                             .position = e.at("position").get<int>(),
                             .head = e.at("head").get<int>(),
                             .column = e.at("column").get<int>(),
                             .expected = number_from_json(e.at("expected")),
                             .got = number_from_json(e.at("got")),
                             .bound = number_from_json(e.at("bound")),
                             .term = e.at("term").get<std::string>()});
  if (json.contains("mismatch")) verdict.mismatch = mismatch_from_json(json.at("mismatch"));
  result.output_digest = json.at("output_digest").get<std::string>();
  result.wave_instructions = json.at("wave_instructions").get<std::uint64_t>();
  result.materialise_seconds = json.at("materialise_seconds").get<double>();
  result.run_seconds = json.at("run_seconds").get<double>();
  result.judge_seconds = json.at("judge_seconds").get<double>();
  if (json.contains("branches"))
    result.branches = json.at("branches").get<std::map<std::string, std::string>>();
  if (json.contains("observed")) result.observed = device::hip::read_findings(json.at("observed").dump());
  return result;
}

Json to_json(const cases::Case& c) {
  return Json::parse(cases::canonical_json(c));
}

Reproduction read_reproduction(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw cases::CaseError(fmt::format("{}: cannot be opened; name a case or failure file", path));
  std::ostringstream text;
  text << file.rdbuf();
  const std::string bytes = std::move(text).str();
  try {
    const Json json = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("minimised")) {
      if (json.value("schema", 0) != record_schema)
        throw cases::CaseError(fmt::format("schema: only {} is known", record_schema));
      Reproduction r;
      r.c = cases::parse_case(json.at("minimised").dump());
      r.original = cases::parse_case(json.at("original").dump());
      r.kernel = json.at("kernel").get<std::string>();
      r.signature = json.at("signature").get<std::string>();
      r.output_digest = json.value("output_digest", "");
      r.detectors = json.value("detectors", "none");
      r.schedule = json.value("schedule", "plain");
      return r;
    }
    Reproduction r;
    r.c = cases::parse_case(bytes);
    return r;
  } catch (const cases::CaseError& error) {
    throw cases::CaseError(fmt::format("{}: {}", path, error.what()));
  } catch (const Json::exception& error) {
    throw cases::CaseError(fmt::format("{}: not a failure file: {}", path, error.what()));
  }
}

}  // namespace attest::fuzz
