// SPDX-License-Identifier: MIT
#include "fuzz/ledger.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <set>

#include "fuzz/case_fields.h"
#include "fuzz/generate.h"
#include "fuzz/strict_json.h"
#include "fuzz/usage_error.h"

namespace attest::fuzz {
namespace {

bool applies(const KnownFailure& entry, const std::string& kernel, const std::string& arch,
             const std::string& device, const cases::Case& c) {
  if (!concerns(entry, kernel, arch, device) || entry.op != cases::op_name(c.problem)) return false;
  if (entry.where.empty()) return true;
  return meets_all(entry.where, fields_of(to_json(c)));
}

bool is_date(const std::string& text) {
  if (text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (i == 4 || i == 7 ? text[i] != '-' : text[i] < '0' || text[i] > '9') return false;
  const int month = std::stoi(text.substr(5, 2)), day = std::stoi(text.substr(8, 2));
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/// The fields that generated cases of an op have. Throws UsageError when there is no such op.
std::set<std::string> fields_of_op(const std::string& op, const std::string& where) {
  std::set<std::string> names;
  try {
    for (std::uint64_t number = 0; number < 64; ++number)
      for (const auto& [name, value] : fields_of(to_json(generate(op, 0, number)))) names.insert(name);
  } catch (const std::invalid_argument&) {
    throw UsageError(fmt::format("{}: op: there is no op '{}'", where, op));
  }
  return names;
}

KnownFailure read_entry(const Json& json, const std::string& where) {
  check_members(json, where, {"id", "op", "kernel", "arch", "signature", "expires", "mode"},
                {"device", "where", "issue", "probe"});
  KnownFailure entry;
  entry.id = string_member(json, where, "id");
  entry.op = string_member(json, where, "op");
  entry.kernel = string_member(json, where, "kernel");
  entry.arch = string_member(json, where, "arch");
  entry.device = string_member(json, where, "device", "*");
  entry.signature = string_member(json, where, "signature");
  entry.issue = string_member(json, where, "issue");
  entry.expires = string_member(json, where, "expires");
  entry.probe = string_member(json, where, "probe");
  const std::string mode = string_member(json, where, "mode");
  if (mode != "tolerated" && mode != "quarantined")
    throw UsageError(fmt::format("{}: mode: must be tolerated or quarantined, not '{}'", where, mode));
  entry.quarantined = mode == "quarantined";
  if (!entry.quarantined && entry.probe.empty())
    throw UsageError(
        fmt::format("{}: a tolerated entry needs a 'probe', the failure file that shows it", where));
  if (!is_date(entry.expires))
    throw UsageError(fmt::format("{}: expires: '{}' is no date (YYYY-MM-DD)", where, entry.expires));
  const auto known = fields_of_op(entry.op, where);
  if (!json.contains("where")) return entry;
  if (!json.at("where").is_object()) throw UsageError(fmt::format("{}: where: must be an object", where));
  for (const auto& [field, condition] : json.at("where").items()) {
    if (known.count(field) == 0)
      throw UsageError(fmt::format("{}: where: no case of {} has a field '{}'", where, entry.op, field));
    check_condition(condition, fmt::format("{}: where.{}", where, field));
    entry.where[field] = condition;
  }
  return entry;
}

}  // namespace

Ledger Ledger::read(const std::string& path) {
  const Json json = read_json_object(path);
  check_members(json, path, {"schema", "entries"});
  if (!json.at("entries").is_array()) throw UsageError(fmt::format("{}: entries: must be a list", path));
  Ledger ledger;
  std::set<std::string> ids;
  for (std::size_t i = 0; i < json.at("entries").size(); ++i) {
    const Json& entry = json.at("entries")[i];
    const bool named = entry.is_object() && entry.contains("id") && entry.at("id").is_string();
    ledger.entries_.push_back(read_entry(
        entry,
        fmt::format("{}: entry {}", path, named ? entry.at("id").get<std::string>() : std::to_string(i))));
    if (!ids.insert(ledger.entries_.back().id).second)
      throw UsageError(fmt::format("{}: entry {}: the id is given twice", path, ledger.entries_.back().id));
  }
  return ledger;
}

const KnownFailure* Ledger::tolerates(const std::string& kernel, const std::string& arch,
                                      const std::string& device, const cases::Case& c,
                                      const std::string& signature) const {
  const auto it = std::find_if(entries_.begin(), entries_.end(), [&](const KnownFailure& entry) {
    return !entry.quarantined && matches(entry.signature, signature) &&
           applies(entry, kernel, arch, device, c);
  });
  return it == entries_.end() ? nullptr : &*it;
}

const KnownFailure* Ledger::quarantines(const std::string& kernel, const std::string& arch,
                                        const std::string& device, const cases::Case& c) const {
  const auto it = std::find_if(entries_.begin(), entries_.end(), [&](const KnownFailure& entry) {
    return entry.quarantined && applies(entry, kernel, arch, device, c);
  });
  return it == entries_.end() ? nullptr : &*it;
}

std::optional<std::string> fault_of(const KnownFailure& entry, const std::string& today) {
  if (!entry.issue.starts_with("https://")) return "has no issue link";
  if (entry.expires < today) return "expired on " + entry.expires;
  return std::nullopt;
}

std::string today() {
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  const std::time_t now = epoch != nullptr ? static_cast<std::time_t>(std::atoll(epoch)) : std::time(nullptr);
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

bool concerns(const KnownFailure& entry, const std::string& kernel, const std::string& arch,
              const std::string& device) {
  return matches(entry.kernel, kernel) && matches(entry.arch, arch) && matches(entry.device, device);
}

}  // namespace attest::fuzz
