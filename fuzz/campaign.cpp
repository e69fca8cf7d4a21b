// SPDX-License-Identifier: MIT
#include "fuzz/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "fuzz/build_info.h"
#include "fuzz/interrupt.h"
#include "fuzz/neighbours.h"

namespace attest::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t fresh_per_neighbour = 3;

struct Item {
  std::uint64_t index = 0, number = 0;
  std::string source, file, kernel;
  cases::Case c;
  std::string detectors{}, schedule{};  ///< of a failure file
  std::uint64_t of = 0;                 ///< of a neighbour
  std::vector<std::string> changed{};   ///< of a neighbour

  [[nodiscard]] Json event(const char* what) const {
    Json json = {{"event", what}, {"item", index}, {"source", source}};
    if (file.empty())
      json["number"] = number;
    else
      json["file"] = file;
    if (source == "neighbour") {
      json["of"] = of;
      json["changed"] = changed;
    }
    json["kernel"] = kernel;
    json["id"] = cases::case_id(c);
    if (!detectors.empty()) json["detectors"] = detectors;
    if (!schedule.empty()) json["schedule"] = schedule;
    return json;
  }
};

class Campaign {
 public:
  Campaign(const CampaignOptions& options, Pool& pool, RunFolder& folder, Progress& progress)
      : options_(options), pool_(pool), folder_(folder), progress_(progress), cases_(*this) {}

  void begin() {
    emit({{"event", "run"},
          {"schema", record_schema},
          {"attest", build_info()},
          {"device", pool_.device()},
          {"jobs", pool_.jobs()},
          {"options", to_json(options_)}});
    folder_.flush();
  }

  void take_up() {
    Json last;
    std::map<std::uint64_t, Json> started;
    read_events(folder_.path(), [&](const Json& event) {
      summary_.apply(event);
      if (options_.branch_steering && event.at("event") == "start")
        started[event.at("item").get<std::uint64_t>()] = event.at("case");
      if (event.at("event") != "verdict") return;
      if (event.at("source") == "fresh") last = event;
      if (!options_.branch_steering) return;
      const auto at = started.find(event.at("item").get<std::uint64_t>());
      note_branches(at->first, event.at("kernel").get<std::string>(), cases::parse_case(at->second.dump()),
                    event.at("evaluation").value("branches", BranchWays()));
      started.erase(started.begin(), std::next(at));
    });
    if (summary_.complete) {  // killed while it wrote the summary, perhaps
      for (const Finding& f : summary_.findings) write_failure(f);
      folder_.write("summary.json", summary_.json(folder_.path()));
      return;
    }
    if (!last.is_null()) {
      const auto kernel = last.at("kernel").get<std::string>();
      const auto number = last.at("number").get<std::uint64_t>();
      if (cases::case_id(campaign_case(kernel, options_.seed, number)) != last.at("id").get<std::string>())
        throw RunFolderError(
            fmt::format("{}: was made by a build that makes another case {} of seed {}; start a new run",
                        folder_.path(), number, options_.seed),
            2);
    }
    before_ = summary_.seconds;
    emit({{"event", "resume"}, {"t", now()}, {"attest", build_info()}, {"jobs", pool_.jobs()}});
    // Killed between a verdict and what follows from it.
    if (const auto missed = summary_.unmade_finding()) make_finding(*missed);
    for (Finding& f : summary_.findings) {
      if (options_.stop_on_finding) stopped_.insert(f.kernel);
      write_failure(f);
      if (!f.done) pursue(f);
    }
  }

  Summary run() {
    if (summary_.complete) return std::move(summary_);
    streams_.insert(streams_.begin(), &cases_);
    pool_.on_incident([this](const Json& incident) {
      Json event = {{"event", "worker"}, {"t", now()}};
      event.update(incident);
      emit(event);
    });
    try {
      pool_.run(streams_, [this] { show(); });
    } catch (const PoolError&) {
      end(false);
      throw;
    }
    const bool cut = interrupted() && !(cases_.exhausted() && all_done());
    if (!cut)
      for (const auto& pursuit : pursuits_) pursuit->close();
    end(!cut);
    return std::move(summary_);
  }

 private:
  /// Files, then fresh cases.
  class Cases final : public Pool::Stream {
   public:
    explicit Cases(Campaign& campaign) : campaign_(campaign) {}
    std::optional<Pool::Task> next() override {
      if (interrupted() || campaign_.out_of_time()) return std::nullopt;
      while (!window_.empty() && campaign_.stopped_.count(window_.front().kernel) != 0) window_.pop_front();
      if (window_.empty()) exhausted_ = !campaign_.open_window(window_, under_way_);
      if (window_.empty()) return std::nullopt;
      under_way_.push_back(std::move(window_.front()));
      window_.pop_front();
      const Item& item = under_way_.back();
      return Pool::Task{item.kernel, item.c, item.detectors, item.schedule};
    }
    void take(std::size_t, Evaluation evaluation) override {
      const Item item = std::move(under_way_.front());
      under_way_.pop_front();
      if (campaign_.stopped_.count(item.kernel) == 0) campaign_.judge(item, evaluation);
    }
    [[nodiscard]] bool exhausted() const { return exhausted_; }

   private:
    Campaign& campaign_;
    std::deque<Item> window_;     ///< on the disk, not launched
    std::deque<Item> under_way_;  ///< launched, in order
    bool exhausted_ = false;
  };

  /// Confirms a finding, then makes it small.
  class Pursuit final : public Pool::Stream {
   public:
    Pursuit(Campaign& campaign, std::string signature)
        : campaign_(campaign), signature_(std::move(signature)) {
      if (finding().confirmed) descend();
    }
    std::optional<Pool::Task> next() override {
      if (interrupted() || campaign_.out_of_shrink_time()) return std::nullopt;
      const Finding& f = finding();
      if (f.done) return std::nullopt;
      if (!f.confirmed) {
        if (asked_ == campaign_.options_.confirmations) return std::nullopt;
        ++asked_;
        return Pool::Task{f.kernel, f.original, f.detectors, f.schedule};
      }
      if (!descent_) return std::nullopt;
      std::optional<Pool::Task> smaller = descent_->next();
      if (smaller) {
        smaller->detectors = f.detectors;
        smaller->schedule = f.schedule;
      }
      return smaller;
    }
    void take(std::size_t index, Evaluation e) override {
      Finding& f = finding();
      if (f.done) return;
      if (!f.confirmed) {
        ++taken_;
        if (signature_of(f.kernel, f.original, e.verdict) == f.signature &&
            e.output_digest == f.best.evaluation.output_digest) {
          ++same_;
          mismatch_ = to_json(e.verdict.mismatch);
        }
        if (taken_ < campaign_.options_.confirmations) return;
        Json event = {
            {"event", "confirmed"}, {"signature", signature_}, {"same", same_ + 1}, {"runs", taken_ + 1}};
        // A resumed campaign has the verdict of the original only, and that without its map.
        if (f.mismatch.empty() && !mismatch_.is_null()) event["mismatch"] = mismatch_;
        campaign_.emit(event);
        confirmed_by_ = index + 1;
        descend();
        return;
      }
      if (descent_ && descent_->take(index - confirmed_by_, std::move(e))) {
        const ShrinkResult& best = descent_->best();
        campaign_.emit({{"event", "smaller"},
                        {"signature", signature_},
                        {"evaluations", best.evaluations},
                        {"steps", best.steps},
                        {"case", to_json(best.c)},
                        {"evaluation", to_json(best.evaluation)}});
        campaign_.write_failure(finding());
      }
      if (descent_ && descent_->finished()) close();
    }
    /// The finding stays as it is.
    void close() {
      const Finding& f = finding();
      if (f.done) return;
      const ShrinkResult& best = descent_ ? descent_->best() : f.best;
      campaign_.emit({{"event", "shrunk"},
                      {"signature", signature_},
                      {"id", cases::case_id(best.c)},
                      {"evaluations", best.evaluations},
                      {"steps", best.steps},
                      {"minimal", best.minimal}});
      campaign_.write_failure(finding());
    }

   private:
    Finding& finding() { return *campaign_.summary_.find(signature_); }
    void descend() {
      const Finding& f = finding();
      if (!f.flaky() && campaign_.may_shrink(f))
        descent_.emplace(f.kernel, signature_, f.best, campaign_.options_.shrink_budget);
      if (!descent_ || descent_->finished()) close();
    }

    Campaign& campaign_;
    std::string signature_;
    int asked_ = 0, taken_ = 0, same_ = 0;
    Json mismatch_;                 ///< of a confirmation
    std::size_t confirmed_by_ = 0;  ///< tasks that were confirmations
    std::optional<Descent> descent_;
  };

  [[nodiscard]] double now() const {
    const double since = std::chrono::duration<double>(Clock::now() - start_).count();
    return static_cast<double>(static_cast<std::int64_t>((before_ + since) * 1e3)) / 1e3;
  }
  [[nodiscard]] bool out_of_time() const {
    return options_.seconds && now() >= static_cast<double>(options_.seconds->count());
  }
  [[nodiscard]] bool out_of_shrink_time() const {
    return options_.seconds &&
           now() >= static_cast<double>((*options_.seconds + options_.shrink_seconds).count());
  }
  [[nodiscard]] bool all_done() const {
    return std::all_of(summary_.findings.begin(), summary_.findings.end(),
                       [](const Finding& f) { return f.done; });
  }

  void emit(const Json& event) {
    folder_.append(event);
    summary_.apply(event);
  }

  /// Among the first `max_shrunk` findings of its kernel.
  [[nodiscard]] bool may_shrink(const Finding& f) const {
    const auto earlier =
        std::count_if(summary_.findings.begin(), summary_.findings.end(),
                      [&](const Finding& g) { return g.kernel == f.kernel && g.item < f.item; });
    return static_cast<std::size_t>(earlier) < options_.max_shrunk;
  }

  [[nodiscard]] bool all_stopped() const {
    return std::all_of(options_.kernels.begin(), options_.kernels.end(),
                       [&](const std::string& kernel) { return stopped_.count(kernel) != 0; });
  }
  /// What comes at an item behind those of the files.
  struct Place {
    std::uint64_t round = 0;  ///< of all kernels
    std::size_t kernel = 0;
    bool neighbour = false;
    std::uint64_t number = 0;  ///< of a fresh case, or of a neighbour
    std::uint64_t spare = 0;   ///< the fresh case that comes where there is no neighbour
  };
  [[nodiscard]] Place place_of(std::uint64_t behind_files) const {
    const std::uint64_t kernels = options_.kernels.size();
    Place place;
    place.round = behind_files / kernels;
    place.kernel = static_cast<std::size_t>(behind_files % kernels);
    place.number = place.round;
    if (!options_.branch_steering || place.round < rounds_without_neighbours()) return place;
    const std::uint64_t since = place.round - rounds_without_neighbours(), turn = fresh_per_neighbour + 1;
    place.neighbour = since % turn == fresh_per_neighbour;
    place.number = place.neighbour ? since / turn : place.round - since / turn;
    place.spare = options_.cases - neighbours() + place.number;
    return place;
  }
  /// Until the first verdicts are old enough.
  [[nodiscard]] std::uint64_t rounds_without_neighbours() const {
    const std::uint64_t kernels = options_.kernels.size();
    return (neighbour_lag * options_.shard.count + kernels - 1) / kernels;
  }
  /// Places for them, of all cases of a kernel.
  [[nodiscard]] std::uint64_t neighbours() const {
    if (!options_.branch_steering || options_.cases <= rounds_without_neighbours()) return 0;
    return (options_.cases - rounds_without_neighbours()) / (fresh_per_neighbour + 1);
  }

  void note_branches(std::uint64_t item, const std::string& kernel, const cases::Case& c,
                     const BranchWays& ways) {
    judged_.push_back({item, kernel, c, ways});
    absorb_before(lagging(item + 1));
  }
  [[nodiscard]] std::uint64_t lagging(std::uint64_t item) const {
    return item - std::min(item, neighbour_lag * options_.shard.count);
  }
  void absorb_before(std::uint64_t item) {
    for (; !judged_.empty() && judged_.front().item < item; judged_.pop_front()) {
      const Judged& j = judged_.front();
      neighbourhood_.absorb(j.item, j.kernel, j.c, j.ways);
    }
  }

  /// The next cases of this shard, written down before any of them is launched. Fewer, or none, when a
  /// neighbour has to wait for what is under way. False when no case is left.
  bool open_window(std::deque<Item>& window, const std::deque<Item>& under_way) {
    const std::size_t size = options_.device == "sim" ? 64 : 1;
    const std::uint64_t files = options_.files.size(), kernels = options_.kernels.size();
    bool left = true;
    next_ = std::max(next_, summary_.next_item);
    std::vector<Json> starts;
    for (; window.size() < size; ++next_) {
      Item item;
      item.index = next_;
      if (next_ < files) {
        if (!options_.shard.has(next_)) continue;
        const FileCase& f = options_.files[next_];
        item.source = f.source;
        item.file = f.file;
        item.kernel = f.kernel;
        item.c = f.c;
        item.detectors = f.detectors;
        item.schedule = f.schedule;
      } else {
        const Place place = kernels == 0 ? Place{} : place_of(next_ - files);
        if (kernels == 0 || place.round >= options_.cases || all_stopped()) {
          left = false;
          break;
        }
        item.number = place.number;
        if (!options_.shard.has(item.number)) continue;
        item.source = place.neighbour ? "neighbour" : "fresh";
        item.kernel = options_.kernels[place.kernel];
        if (stopped_.count(item.kernel) != 0) continue;
        if (!place.neighbour) {
          item.c = campaign_case(item.kernel, options_.seed, item.number);
        } else {
          const std::uint64_t horizon = lagging(next_);
          const auto waits = [&](const std::deque<Item>& items) {
            return !items.empty() && items.front().index < horizon;
          };
          if (waits(under_way) || waits(window)) break;
          absorb_before(horizon);
          auto neighbour = neighbourhood_.next(item.kernel, options_.seed, item.number);
          if (neighbour) {
            item.c = std::move(neighbour->c);
            item.of = neighbour->of;
            item.changed = std::move(neighbour->changed);
          } else if (options_.cases != unlimited) {
            item.source = "fresh";
            item.number = place.spare;
            item.c = campaign_case(item.kernel, options_.seed, item.number);
          } else {
            continue;
          }
        }
      }
      if (options_.quarantine) {
        if (const auto why = options_.quarantine(item.kernel, item.c)) {
          Json event = item.event("quarantined");
          event["entry"] = *why;
          emit(event);
          continue;
        }
      }
      Json start = item.event("start");
      start["case"] = to_json(item.c);
      starts.push_back(std::move(start));
      window.push_back(std::move(item));
    }
    if (starts.empty()) return left;
    folder_.append(starts);
    folder_.flush();
    for (const Json& start : starts) summary_.apply(start);
    return true;
  }

  void judge(const Item& item, const Evaluation& e) {
    const std::string signature = signature_of(item.kernel, item.c, e.verdict);
    Json event = item.event("verdict");
    event["t"] = now();
    event["evaluation"] = to_json(e);
    event["evaluation"].erase("mismatch");
    bool fresh = false;
    if (!signature.empty()) {
      event["signature"] = signature;
      std::optional<std::string> excuse;
      if (options_.excuse) excuse = options_.excuse(item.source, item.file, item.kernel, item.c, signature);
      if (excuse) event["excuse"] = *excuse;
      fresh = !excuse && !summary_.has_seen(signature);
    }
    emit(event);
    if (options_.branch_steering) note_branches(item.index, item.kernel, item.c, e.branches);
    if (options_.observe) options_.observe(event);
    if (fresh) make_finding(event, to_json(e.verdict.mismatch));
  }

  /// @param verdict the event of the first case of its signature, the last one applied
  /// @param mismatch its map, null where there is none
  void make_finding(const Json& verdict, const Json& mismatch = nullptr) {
    Json event = {{"event", "finding"}};
    for (const char* key : {"item", "source", "number", "of", "changed", "file", "kernel", "signature", "id",
                            "detectors", "schedule", "t"})
      if (verdict.contains(key)) event[key] = verdict.at(key);
    if (!mismatch.is_null()) event["mismatch"] = mismatch;
    emit(event);
    folder_.flush();
    Finding& f = summary_.findings.back();
    if (options_.stop_on_finding) stopped_.insert(f.kernel);
    write_failure(f);
    progress_.say(fmt::format("{}: {}", f.first_seen(), f.signature));
    pursue(f);
  }

  void pursue(const Finding& f) {
    pursuits_.push_back(std::make_unique<Pursuit>(*this, f.signature));
    streams_.push_back(pursuits_.back().get());
  }

  void write_failure(const Finding& f) { folder_.write(f.file(), summary_.failure_file(f, folder_.path())); }

  void end(bool complete) {
    summary_.complete = complete;
    summary_.seconds = now();
    const Json json = summary_.json(folder_.path());
    emit({{"event", "end"}, {"t", summary_.seconds}, {"complete", complete}, {"summary", json}});
    folder_.flush();
    folder_.write("summary.json", json);
  }

  void show() {
    const double seconds = now();
    const double rate =
        static_cast<double>(summary_.cases - cases_before()) / std::max(seconds - before_, 1e-3);
    const std::uint64_t in_all = in_shard();
    std::string left = "?";
    if (options_.seconds)
      left = fmt::format("{:.0f} s", std::max(0.0, static_cast<double>(options_.seconds->count()) - seconds));
    else if (rate > 0)
      left = fmt::format("{:.0f} s", static_cast<double>(in_all - std::min(in_all, summary_.cases)) / rate);
    const auto shrinking = std::count_if(summary_.findings.begin(), summary_.findings.end(),
                                         [](const Finding& f) { return !f.done; });
    const auto percent = [](std::pair<std::size_t, std::size_t> of) {
      return of.second == 0 ? 0.0 : 100.0 * static_cast<double>(of.first) / static_cast<double>(of.second);
    };
    const auto branches = summary_.branches();
    progress_.update(fmt::format(
        "{}{} cases, {:.0f} cases/s, {:.0f} % of pairs{}, {} findings{}, {} left", summary_.cases,
        options_.cases == unlimited ? "" : fmt::format("/{}", in_all), rate, percent(summary_.pairs()),
        branches.second == 0 ? "" : fmt::format(", {:.0f} % of branches", percent(branches)),
        summary_.findings.size(), shrinking == 0 ? "" : fmt::format(" ({} being shrunk)", shrinking), left));
  }
  std::uint64_t cases_before() {
    if (!cases_before_) cases_before_ = summary_.cases;
    return *cases_before_;
  }
  [[nodiscard]] std::uint64_t in_shard() const {
    const auto part = [&](std::uint64_t n) {
      return n / options_.shard.count + (n % options_.shard.count > options_.shard.index ? 1 : 0);
    };
    if (options_.kernels.empty()) return part(options_.files.size());
    return part(options_.files.size()) +
           (part(options_.cases - neighbours()) + part(neighbours())) * options_.kernels.size();
  }

  const CampaignOptions& options_;
  Pool& pool_;
  RunFolder& folder_;
  Progress& progress_;
  Summary summary_;
  Clock::time_point start_ = Clock::now();
  double before_ = 0;  ///< seconds spent before this process
  std::optional<std::uint64_t> cases_before_;
  std::uint64_t next_ = 0;         ///< item
  std::set<std::string> stopped_;  ///< kernels
  struct Judged {
    std::uint64_t item = 0;
    std::string kernel;
    cases::Case c;
    BranchWays ways;
  };
  std::deque<Judged> judged_;  ///< in order, too late for the neighbours that come next
  Neighbourhood neighbourhood_;
  Cases cases_;
  std::vector<std::unique_ptr<Pursuit>> pursuits_;
  std::vector<Pool::Stream*> streams_;
};

}  // namespace

Json to_json(const CampaignOptions& options) {
  Json files = Json::array();
  for (const FileCase& f : options.files)
    files.push_back(
        {{"source", f.source}, {"file", f.file}, {"kernel", f.kernel}, {"id", cases::case_id(f.c)}});
  return {{"kernels", options.kernels},
          {"device", options.device},
          {"arch", options.arch},
          {"worker", options.worker},
          {"seed", options.seed},
          {"cases", options.cases},
          {"seconds", options.seconds ? Json(options.seconds->count()) : Json(nullptr)},
          {"shrink_seconds", options.shrink_seconds.count()},
          {"shrink_budget", options.shrink_budget},
          {"max_shrunk", options.max_shrunk},
          {"confirmations", options.confirmations},
          {"branch_steering", options.branch_steering},
          {"stop_on_finding", options.stop_on_finding},
          {"detectors", options.detectors},
          {"schedule", options.schedule},
          {"deadline_seconds", options.deadline_seconds},
          {"memory_mib", options.memory_mib},
          {"known", options.known},
          {"shard", {{"index", options.shard.index}, {"count", options.shard.count}}},
          {"files", std::move(files)}};
}

CampaignOptions read_options(const std::string& folder, Json& files) {
  struct Enough {};
  Json first;
  try {
    read_events(folder, [&](const Json& event) {
      first = event;
      throw Enough();
    });
  } catch (const Enough&) {  // only the first line is of interest
  }
  try {
    if (first.at("event") != "run" || first.at("schema") != record_schema)
      throw RunFolderError(fmt::format("{}: does not begin with a run of this version", folder), 2);
    const Json& json = first.at("options");
    CampaignOptions options;
    options.kernels = json.at("kernels").get<std::vector<std::string>>();
    options.device = json.at("device").get<std::string>();
    options.arch = json.at("arch").get<std::string>();
    options.worker = json.value("worker", "");
    options.seed = json.at("seed").get<std::uint64_t>();
    options.cases = json.at("cases").get<std::uint64_t>();
    if (!json.at("seconds").is_null()) options.seconds = std::chrono::seconds(json.at("seconds").get<long>());
    options.shrink_seconds = std::chrono::seconds(json.at("shrink_seconds").get<long>());
    options.shrink_budget = json.at("shrink_budget").get<std::size_t>();
    options.max_shrunk = json.at("max_shrunk").get<std::size_t>();
    options.confirmations = json.at("confirmations").get<int>();
    options.branch_steering = json.value("branch_steering", false);
    options.stop_on_finding = json.at("stop_on_finding").get<bool>();
    options.detectors = json.value("detectors", "none");
    options.schedule = json.value("schedule", "plain");
    options.deadline_seconds = json.at("deadline_seconds").get<std::uint64_t>();
    options.memory_mib = json.at("memory_mib").get<std::uint64_t>();
    options.known = json.at("known").get<std::string>();
    options.shard = {json.at("shard").at("index").get<std::uint64_t>(),
                     json.at("shard").at("count").get<std::uint64_t>()};
    files = json.at("files");
    return options;
  } catch (const Json::exception& error) {
    throw RunFolderError(fmt::format("{}: its run event cannot be understood: {}", folder, error.what()), 2);
  }
}

Summary run_campaign(const CampaignOptions& options, Pool& pool, RunFolder& folder, Progress& progress) {
  Campaign campaign(options, pool, folder, progress);
  campaign.begin();
  return campaign.run();
}

Summary resume_campaign(const CampaignOptions& options, Pool& pool, RunFolder& folder, Progress& progress) {
  Campaign campaign(options, pool, folder, progress);
  campaign.take_up();
  return campaign.run();
}

Summary read_summary(const std::string& folder) {
  Summary summary;
  read_events(folder, [&](const Json& event) { summary.apply(event); });
  return summary;
}

}  // namespace attest::fuzz
