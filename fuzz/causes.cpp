// SPDX-License-Identifier: MIT
#include "fuzz/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include "fuzz/case_fields.h"
#include "fuzz/strict_json.h"
#include "fuzz/usage_error.h"

namespace attest::fuzz {
namespace {

std::vector<std::string> texts(const Json& json, const std::string& where, const char* name) {
  std::vector<std::string> found;
  if (!json.contains(name)) return found;
  const Json& list = json.at(name);
  if (!list.is_array() || list.empty())
    throw UsageError(fmt::format("{}: {}: must be a list that is not empty", where, name));
  for (const Json& one : list) {
    if (!one.is_string()) throw UsageError(fmt::format("{}: {}: must hold strings", where, name));
    found.push_back(one.get<std::string>());
  }
  return found;
}

Sign read_sign(const Json& json, const std::string& where, const std::set<std::string>& fields) {
  check_members(json, where, {"kernel", "diagnosis"}, {"where", "detail", "schedule"});
  Sign sign;
  sign.kernels = texts(json, where, "kernel");
  sign.diagnoses = texts(json, where, "diagnosis");
  sign.details = texts(json, where, "detail");
  sign.schedules = texts(json, where, "schedule");
  if (sign.schedules.empty()) sign.schedules = {"plain"};
  if (!json.contains("where")) return sign;
  if (!json.at("where").is_object()) throw UsageError(fmt::format("{}: where: must be an object", where));
  for (const auto& [field, condition] : json.at("where").items()) {
    if (fields.count(field) == 0)
      throw UsageError(fmt::format("{}: where: no case of its files has a field '{}'", where, field));
    check_condition(condition, fmt::format("{}: where.{}", where, field));
    sign.where[field] = condition;
  }
  return sign;
}

bool any(const std::vector<std::string>& globs, const std::string& text) {
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& g) { return matches(g, text); });
}

}  // namespace

std::map<std::string, Json> features_of(const cases::Case& c) {
  const Json json = to_json(c);
  std::map<std::string, Json> features = fields_of(json);
  const Json& shape = json.at("shape");
  if (!shape.contains("requests")) return features;
  int without_context = 0, without_query = 0, longer = 0, empty = 0, behind = 0;
  int tokens_per_split = std::numeric_limits<int>::max();
  const int splits = std::max(1, shape.value("num_splits", 1));
  std::set<int> q_lens;
  for (const Json& request : shape.at("requests")) {
    const int q_len = request.value("q_len", 0), kv_len = request.value("kv_len", 0);
    empty += kv_len == 0 ? 1 : 0;
    behind += empty > 0 && q_len > 0 && kv_len > 0 ? 1 : 0;
    if (kv_len > 0) tokens_per_split = std::min(tokens_per_split, kv_len / splits);
    without_context += q_len > 0 && kv_len == 0 ? 1 : 0;
    without_query += q_len == 0 ? 1 : 0;
    longer += kv_len > 0 && kv_len < q_len ? 1 : 0;
    if (q_len > 0) q_lens.insert(q_len);
  }
  features["requests.without_context"] = without_context;
  features["requests.without_query"] = without_query;
  features["requests.query_longer_than_context"] = longer;
  features["requests.behind_an_empty_one"] = behind;
  features["requests.tokens_per_split"] = tokens_per_split;
  features["requests.ragged"] = q_lens.size() > 1;
  return features;
}

Causes Causes::read(const std::string& path) {
  const Json json = read_json_object(path);
  check_members(json, path, {"schema", "causes"});
  if (!json.at("causes").is_array()) throw UsageError(fmt::format("{}: causes: must be a list", path));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  Causes causes;
  std::set<std::string> ids;
  for (const Json& entry : json.at("causes")) {
    Cause cause;
    std::string where = fmt::format("{}: cause {}", path, causes.causes_.size());
    check_members(entry, where, {"id", "cause", "files", "signs"});
    cause.id = string_member(entry, where, "id");
    where = fmt::format("{}: cause {}", path, cause.id);
    if (!ids.insert(cause.id).second) throw UsageError(where + ": the id is given twice");
    cause.text = string_member(entry, where, "cause");
    std::set<std::string> fields;
    for (const std::string& file : texts(entry, where, "files")) {
      cause.files.push_back((folder / file).string());
      try {
        for (const auto& [field, value] : features_of(read_reproduction(cause.files.back()).c))
          fields.insert(field);
      } catch (const cases::CaseError& error) {
        throw UsageError(fmt::format("{}: files: {}", where, error.what()));
      }
    }
    if (!entry.at("signs").is_array() || entry.at("signs").empty())
      throw UsageError(where + ": signs: must be a list that is not empty");
    for (const Json& sign : entry.at("signs"))
      cause.signs.push_back(read_sign(sign, fmt::format("{}: sign {}", where, cause.signs.size()), fields));
    causes.causes_.push_back(std::move(cause));
  }
  return causes;
}

Sighting Sighting::read(const std::string& path) {
  const Json json = read_json_object(path);
  const Reproduction r = read_reproduction(path);
  if (r.kernel.empty()) throw UsageError(path + ": a case, not a failure file");
  return {.kernel = r.kernel,
          .c = r.c,
          .diagnosis = string_member(json, path, "diagnosis"),
          .detail = json.contains("verdict") ? json.at("verdict").value("detail", "") : "",
          .schedule = r.schedule};
}

const Cause* Causes::of(const Sighting& finding) const {
  const auto features = features_of(finding.c);
  const auto among = [](const std::vector<std::string>& texts, const std::string& text) {
    return std::find(texts.begin(), texts.end(), text) != texts.end();
  };
  const auto shows = [&](const Sign& sign) {
    return any(sign.kernels, finding.kernel) && any(sign.diagnoses, finding.diagnosis) &&
           among(sign.schedules, finding.schedule) &&
           (sign.details.empty() || any(sign.details, finding.detail)) && meets_all(sign.where, features);
  };
  for (const Cause& cause : causes_)
    if (std::any_of(cause.signs.begin(), cause.signs.end(), shows)) return &cause;
  return nullptr;
}

}  // namespace attest::fuzz
