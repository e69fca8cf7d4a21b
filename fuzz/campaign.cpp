// SPDX-License-Identifier: MIT
#include "fuzz/campaign.h"

#include <fmt/format.h>

#include <algorithm>

#include "fuzz/build_info.h"
#include "fuzz/generate.h"
#include "fuzz/shrink.h"

namespace attest::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

/// How often a finding repeats, and what it says of itself when it does.
struct Confirmation {
  int same = 1, runs = 1;
};

Confirmation confirm(Pool& pool, const std::string& kernel, const cases::Case& c,
                     const std::string& signature, const Evaluation& first, int times) {
  Confirmation result;
  int asked = 0;
  pool.run(
      [&]() -> std::optional<Pool::Task> {
        if (asked == times) return std::nullopt;
        ++asked;
        return Pool::Task{kernel, c};
      },
      [&](std::size_t, const Evaluation& e) {
        ++result.runs;
        if (signature_of(kernel, c, e.verdict) == signature && e.output_digest == first.output_digest)
          ++result.same;
        return true;
      });
  return result;
}

class KernelCampaign {
 public:
  KernelCampaign(const CampaignOptions& options, std::string kernel, Pool& pool, RunFolder& folder,
                 Progress& progress, Summary& summary, Clock::time_point start)
      : options_(options),
        kernel_(std::move(kernel)),
        pool_(pool),
        folder_(folder),
        progress_(progress),
        summary_(summary),
        start_(start) {}

  void run() {
    std::uint64_t number = 0;
    while (number < options_.cases && !out_of_time()) {
      const std::uint64_t first = number;
      std::uint64_t asked = first;
      std::optional<Fresh> fresh;
      pool_.run([&]() { return ask(asked); },
                [&](std::size_t index, Evaluation e) {
                  number = first + index + 1;
                  fresh = take(first + index, std::move(e));
                  return !fresh;
                },
                [&] { show(number); });
      if (!fresh) continue;
      pursue(*fresh);
      if (options_.stop_on_finding) break;
    }
  }

 private:
  struct Fresh {
    std::uint64_t number;
    cases::Case c;
    Evaluation evaluation;
    std::string signature;
  };

  [[nodiscard]] bool out_of_time() const {
    return options_.seconds && Clock::now() - start_ >= *options_.seconds;
  }

  std::optional<Pool::Task> ask(std::uint64_t& number) {
    if (number >= options_.cases || out_of_time()) return std::nullopt;
    cases::Case c = case_for(kernel_, options_.seed, number);
    folder_.append({{"event", "start"}, {"number", number}, {"kernel", kernel_}, {"id", cases::case_id(c)}});
    ++number;
    return Pool::Task{kernel_, std::move(c)};
  }

  std::optional<Fresh> take(std::uint64_t number, Evaluation e) {
    ++summary_.cases;
    ++summary_.verdicts[oracle::name(e.verdict.kind)];
    cases::Case c = case_for(kernel_, options_.seed, number);
    const std::string signature = signature_of(kernel_, c, e.verdict);
    Json event = {{"event", "verdict"},
                  {"number", number},
                  {"kernel", kernel_},
                  {"id", cases::case_id(c)},
                  {"evaluation", to_json(e)}};
    if (!signature.empty()) event["signature"] = signature;
    folder_.append(event);
    if (signature.empty()) return std::nullopt;
    for (Finding& known : summary_.findings)
      if (known.signature == signature) {
        ++known.count;
        return std::nullopt;
      }
    return Fresh{number, std::move(c), std::move(e), signature};
  }

  void pursue(const Fresh& fresh) {
    folder_.append({{"event", "finding"},
                    {"number", fresh.number},
                    {"signature", fresh.signature},
                    {"id", cases::case_id(fresh.c)}});
    progress_.say(fmt::format("case {}: {}", fresh.number, fresh.signature));

    ShrinkResult small{.c = fresh.c, .evaluation = fresh.evaluation};
    const Confirmation repeat =
        confirm(pool_, kernel_, fresh.c, fresh.signature, fresh.evaluation, options_.confirmations);
    Finding finding{.signature = fresh.signature,
                    .kernel = kernel_,
                    .diagnosis = fresh.evaluation.verdict.diagnosis,
                    .file = {},
                    .reproduce = {},
                    .verdict = {},
                    .minimised = {},
                    .first_number = fresh.number,
                    .count = 1};
    if (repeat.same < repeat.runs) {
      small.evaluation.verdict.kind = oracle::VerdictKind::flaky;
      small.evaluation.verdict.detail = fmt::format("{} of {} runs agree; first: {}", repeat.same,
                                                    repeat.runs, small.evaluation.verdict.detail);
    } else if (shrunk_ < options_.max_shrunk) {
      ++shrunk_;
      small = shrink(pool_, kernel_, fresh.signature, fresh.c, fresh.evaluation, options_.shrink_budget,
                     [&](const ShrinkResult& best) {
                       progress_.update(fmt::format("{}: shrinking, {} tried, {} taken", kernel_,
                                                    best.evaluations, best.steps));
                     });
      finding.shrunk = true;
    }
    finding.verdict = small.evaluation.verdict;
    finding.minimised = small.c;
    finding.file = fmt::format("failures/{}.json", cases::case_id(small.c));
    finding.reproduce = fmt::format("attest replay {}/{}", folder_.path(), finding.file);
    folder_.append({{"event", "shrunk"},
                    {"signature", fresh.signature},
                    {"id", cases::case_id(small.c)},
                    {"evaluations", small.evaluations},
                    {"steps", small.steps},
                    {"minimal", small.minimal}});
    folder_.write(finding.file, {{"schema", record_schema},
                                 {"signature", fresh.signature},
                                 {"kernel", kernel_},
                                 {"device", options_.device},
                                 {"arch", options_.arch},
                                 {"diagnosis", finding.diagnosis},
                                 {"reproduce", finding.reproduce},
                                 {"found", {{"seed", options_.seed}, {"number", fresh.number}}},
                                 {"repeats", {{"same", repeat.same}, {"runs", repeat.runs}}},
                                 {"original", to_json(fresh.c)},
                                 {"minimised", to_json(small.c)},
                                 {"verdict", to_json(small.evaluation.verdict)},
                                 {"output_digest", small.evaluation.output_digest}});
    summary_.findings.push_back(std::move(finding));
  }

  void show(std::uint64_t number) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    std::string left;
    if (options_.seconds)
      left = fmt::format(", {:.0f} s left",
                         std::max(0.0, static_cast<double>(options_.seconds->count()) - seconds));
    progress_.update(fmt::format(
        "{}: {}/{} cases, {:.0f} cases/s, {} findings{}", kernel_, number, options_.cases,
        static_cast<double>(summary_.cases) / std::max(seconds, 1e-3), summary_.findings.size(), left));
  }

  const CampaignOptions& options_;
  std::string kernel_;
  Pool& pool_;
  RunFolder& folder_;
  Progress& progress_;
  Summary& summary_;
  Clock::time_point start_;
  std::size_t shrunk_ = 0;
};

}  // namespace

std::uint64_t Summary::tested() const {
  std::uint64_t sum = cases;
  for (const auto kind : {oracle::VerdictKind::unsupported, oracle::VerdictKind::mistrusted,
                          oracle::VerdictKind::harness_error})
    if (const auto it = verdicts.find(oracle::name(kind)); it != verdicts.end()) sum -= it->second;
  return sum;
}

Json to_json(const Summary& summary, const CampaignOptions& options) {
  Json findings = Json::array();
  for (const Finding& f : summary.findings)
    findings.push_back({{"signature", f.signature},
                        {"kernel", f.kernel},
                        {"diagnosis", f.diagnosis},
                        {"case", f.file},
                        {"reproduce", f.reproduce},
                        {"detail", f.verdict.detail},
                        {"first_number", f.first_number},
                        {"count", f.count},
                        {"shrunk", f.shrunk}});
  Json verdicts = Json::object();
  for (const auto& [kind, count] : summary.verdicts) verdicts[kind] = count;
  return {{"schema", record_schema},    {"kernels", options.kernels},
          {"device", options.device},   {"arch", options.arch},
          {"seed", options.seed},       {"cases", summary.cases},
          {"tested", summary.tested()}, {"verdicts", std::move(verdicts)},
          {"seconds", summary.seconds}, {"findings", std::move(findings)}};
}

Summary run_campaign(const CampaignOptions& options, Pool& pool, RunFolder& folder, Progress& progress) {
  const auto start = Clock::now();
  Summary summary;
  folder.append({{"event", "run"},
                 {"schema", record_schema},
                 {"attest", build_info()},
                 {"kernels", options.kernels},
                 {"device", options.device},
                 {"arch", options.arch},
                 {"seed", options.seed},
                 {"cases", options.cases},
                 {"jobs", pool.jobs()}});
  for (const std::string& kernel : options.kernels)
    KernelCampaign(options, kernel, pool, folder, progress, summary, start).run();
  summary.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const Json json = to_json(summary, options);
  folder.append({{"event", "end"}, {"summary", json}});
  folder.write("summary.json", json);
  return summary;
}

}  // namespace attest::fuzz
