// SPDX-License-Identifier: MIT
#include "fuzz/merge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>

#include "fuzz/build_info.h"
#include "fuzz/usage_error.h"

namespace attest::fuzz {
namespace {

struct Shards {
  Json options;  ///< of the whole
  Json device;   ///< of the first
  std::vector<std::string> folders;
};

/// One shard, read twice: what became of its findings, then its verdicts one by one.
class ShardReader {
 public:
  explicit ShardReader(const std::string& folder) : file_(folder + "/events.jsonl", std::ios::binary) {
    read_events(folder, [&](const Json& event) {
      const auto what = event.at("event").get<std::string>();
      if (what == "finding" || what == "confirmed" || what == "smaller" || what == "shrunk")
        of_findings_[event.at("signature").get<std::string>()].push_back(event);
      if (what == "worker" || what == "quarantined") beside.push_back(event);
      if (event.contains("t")) seconds = std::max(seconds, event.at("t").get<double>());
    });
    advance();
  }

  void advance() {
    verdict_.reset();
    for (std::string line; !verdict_ && std::getline(file_, line) && !file_.eof();) {
      Json event = Json::parse(line);
      if (event.at("event") == "start") {
        const auto item = event.at("item").get<std::uint64_t>();
        starts_.insert_or_assign(item, std::move(event));
      } else if (event.at("event") == "verdict") {
        verdict_ = std::move(event);
      }
    }
  }
  [[nodiscard]] bool has_verdict() const { return verdict_.has_value(); }
  [[nodiscard]] std::uint64_t item() const { return verdict_->at("item").get<std::uint64_t>(); }
  [[nodiscard]] const Json& verdict() const { return *verdict_; }
  [[nodiscard]] Json start() {
    const auto it = starts_.find(item());
    Json event = std::move(it->second);
    starts_.erase(starts_.begin(), std::next(it));
    return event;
  }
  [[nodiscard]] const std::vector<Json>& of_finding(const std::string& signature) {
    return of_findings_[signature];
  }

  std::vector<Json> beside;  ///< lost workers, quarantined cases
  double seconds = 0;

 private:
  std::ifstream file_;
  std::map<std::uint64_t, Json> starts_;
  std::optional<Json> verdict_;
  std::map<std::string, std::vector<Json>> of_findings_;
};

Shards all_shards(const std::vector<std::string>& folders) {
  Shards shards;
  std::map<std::uint64_t, std::string> by_index;
  std::uint64_t count = 0;
  for (const std::string& folder : folders) {
    Json options;
    bool complete = false;
    read_events(folder, [&](const Json& event) {
      const auto what = event.at("event").get<std::string>();
      if (what == "run") options = event.at("options");
      if (what == "run" && shards.device.is_null()) shards.device = event.value("device", Json());
      if (what == "resume") complete = false;
      if (what == "end") complete = event.at("complete").get<bool>();
    });
    if (options.is_null())
      throw UsageError(fmt::format("{}: does not begin with a run of this version", folder));
    const auto index = options.at("shard").at("index").get<std::uint64_t>();
    const auto of = options.at("shard").at("count").get<std::uint64_t>();
    if (!complete)
      throw UsageError(fmt::format("{}: shard {}/{} has not ended; attest fuzz --resume {} ends it", folder,
                                   index, of, folder));
    options["shard"] = {{"index", 0}, {"count", 1}};
    if (shards.options.is_null()) {
      shards.options = options;
      count = of;
    }
    if (options != shards.options || of != count)
      throw UsageError(
          fmt::format("{} and {} are of different campaigns: their options differ", folders[0], folder));
    if (const auto [it, fresh] = by_index.try_emplace(index, folder); !fresh)
      throw UsageError(fmt::format("{} and {} are both shard {}/{}", it->second, folder, index, of));
  }
  std::vector<std::uint64_t> missing;
  for (std::uint64_t i = 0; i < count; ++i)
    if (by_index.find(i) == by_index.end()) missing.push_back(i);
  if (!missing.empty() || by_index.empty())
    throw UsageError(fmt::format("of {} shards these are missing: {}", count, fmt::join(missing, ", ")));
  for (const auto& [index, folder] : by_index) shards.folders.push_back(folder);
  return shards;
}

}  // namespace

void check_shards(const std::vector<std::string>& folders) {
  all_shards(folders);
}

Summary merge_runs(const std::vector<std::string>& folders, RunFolder& out) {
  const Shards shards = all_shards(folders);
  Summary summary;
  const auto emit = [&](const Json& event) {
    out.append(event);
    summary.apply(event);
  };
  emit({{"event", "run"},
        {"schema", record_schema},
        {"attest", build_info()},
        {"device", shards.device},
        {"merged", shards.folders},
        {"options", shards.options}});
  std::vector<ShardReader> readers;
  for (const std::string& folder : shards.folders) readers.emplace_back(folder);
  for (;;) {
    const auto first = std::min_element(readers.begin(), readers.end(), [](const auto& a, const auto& b) {
      return a.has_verdict() && (!b.has_verdict() || a.item() < b.item());
    });
    if (!first->has_verdict()) break;
    const Json& verdict = first->verdict();
    const bool finding = verdict.contains("signature") && !verdict.contains("excuse") &&
                         !summary.has_seen(verdict.at("signature").get<std::string>());
    emit(first->start());
    emit(verdict);
    if (finding)
      for (const Json& event : first->of_finding(verdict.at("signature").get<std::string>())) emit(event);
    first->advance();
  }
  double seconds = 0;
  for (const ShardReader& reader : readers) {
    seconds = std::max(seconds, reader.seconds);
    for (const Json& event : reader.beside) emit(event);
  }
  summary.complete = true;
  summary.seconds = seconds;
  for (const Finding& f : summary.findings) out.write(f.file(), summary.failure_file(f, out.path()));
  const Json json = summary.json(out.path());
  emit({{"event", "end"}, {"t", seconds}, {"complete", true}, {"summary", json}});
  out.flush();
  out.write("summary.json", json);
  return summary;
}

}  // namespace attest::fuzz
