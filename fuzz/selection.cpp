// SPDX-License-Identifier: MIT
#include "fuzz/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "device/simulator/detect/detectors.h"
#include "device/simulator/detect/schedule.h"
#include "fuzz/coverage.h"
#include "fuzz/exchange/exported_case.h"
#include "fuzz/exchange/worker_device.h"
#include "fuzz/run_folder.h"

namespace attest::fuzz {
namespace {

std::optional<std::uint64_t> parse_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Shared leading characters: kernels are named by paths, so a slip is at the end.
std::size_t likeness(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

bool any_of_contract(std::string_view contract) {
  const auto& all = device::kernels();
  return std::any_of(all.begin(), all.end(),
                     [&](const device::Kernel* k) { return k->contract() == contract; });
}

std::string not_run(const std::string& what) {
  return fmt::format("{} was not run: AITER's objects are not here; name their folder with --aiter-hsa DIR",
                     what);
}

/// The case that a run wrote down for an item, on its kernel.
Reproduction case_of_run(const std::string& folder, std::uint64_t item) {
  Reproduction r;
  read_events(folder, [&](const Json& event) {
    if (event.at("event") != "start" || event.at("item") != item) return;
    r.c = cases::parse_case(event.at("case").dump());
    r.kernel = event.at("kernel").get<std::string>();
  });
  if (r.kernel.empty()) throw UsageError(fmt::format("{}: has no item {}", folder, item));
  return r;
}

}  // namespace

const device::Kernel& select_kernel(const std::string& name, const Common& common) {
  const device::Kernel* kernel = device::find_kernel(name);
  if (kernel == nullptr && name.starts_with("aiter/") && !any_of_contract("aiter"))
    throw device::DeviceUnavailable(not_run(name));
  if (kernel == nullptr && name.starts_with("worker:") && common.worker.empty())
    throw UsageError(
        fmt::format("'{}' is a kernel of another program; start that with --worker 'CMD' (a failure file has "
                    "it as \"worker\")",
                    name));
  if (kernel == nullptr) {
    std::vector<std::string> known;
    for (const device::Kernel* k : device::kernels()) known.push_back(k->name());
    std::sort(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
      const std::size_t like_a = likeness(a, name), like_b = likeness(b, name);
      return like_a != like_b ? like_a > like_b : a < b;
    });
    if (known.size() > 3) known.resize(3);
    throw UsageError(fmt::format("no kernel '{}'; the closest are {} (attest kernels lists all)", name,
                                 fmt::join(known, ", ")));
  }
  if (kernel->arch() != common.arch)
    throw UsageError(
        fmt::format("kernel '{}' is for {}, not for --arch {}", name, kernel->arch(), common.arch));
  return *kernel;
}

std::vector<std::string> kernels_of_op(const std::string& op, const Common& common) {
  std::vector<std::string> names, ops;
  for (const device::Kernel* k : device::kernels()) {
    if (std::find(ops.begin(), ops.end(), k->op()) == ops.end()) ops.push_back(k->op());
    if (k->op() == op && k->fault().empty() && !k->by_hand() && k->arch() == common.arch)
      names.push_back(k->name());
  }
  if (names.empty())
    throw UsageError(fmt::format("no kernel for op '{}' on {}; there are kernels for {}", op, common.arch,
                                 fmt::join(ops, ", ")));
  return names;
}

std::vector<std::string> kernels_of_word(const std::string& word, const Common& common) {
  const bool sound = word == "aiter@sound";
  if (word != "aiter" && !sound) return {};
  std::vector<std::string> names;
  for (const device::Kernel* k : device::kernels()) {
    if (k->contract() != "aiter" || k->arch() != common.arch) continue;
    if (sound ? k->name().ends_with("@sound") : k->fault().empty() && !k->by_hand())
      names.push_back(k->name());
  }
  if (names.empty()) throw device::DeviceUnavailable(not_run(word));
  return names;
}

Reproduction select_case(const std::string& word, const std::string& kernel) {
  if (const auto colon = word.find(':'); colon != std::string::npos && !std::filesystem::exists(word)) {
    const std::string run = word.substr(0, word.rfind(':'));
    const auto item = parse_number(std::string_view(word).substr(run.size() + 1));
    if (item && std::filesystem::exists(run + "/events.jsonl")) return case_of_run(run, *item);
    const auto seed = parse_number(std::string_view(word).substr(0, colon));
    const auto number = parse_number(std::string_view(word).substr(colon + 1));
    if (!seed || !number)
      throw UsageError(fmt::format(
          "'{}' is neither a file nor SEED:NUMBER (as in 7:12 or 0x7:12) nor RUN:ITEM (as in night:12)",
          word));
    if (kernel.empty())
      throw UsageError(fmt::format("'{}': cases are drawn for a kernel; name it with --kernel", word));
    Reproduction r;
    r.c = campaign_case(kernel, *seed, *number);
    return r;
  }
  if (word.ends_with(".safetensors")) {
    Reproduction r;
    r.c = exchange::exported_case(word);
    return r;
  }
  return read_reproduction(word);
}

std::string kernel_of(const Reproduction& r, const Common& common) {
  const std::string op = cases::op_name(r.c.problem);
  if (common.worker.empty()) return r.kernel.empty() ? "attest/" + op : r.kernel;
  if (const device::Kernel* recorded = device::find_kernel(r.kernel);
      recorded != nullptr && recorded->arch() == common.arch)
    return r.kernel;
  return kernels_of_op(op, common).front();
}

std::string only_worker_kernel(const Common& common) {
  std::vector<std::string> names;
  for (const device::Kernel* k : device::kernels())
    if (k->contract() == "worker") names.push_back(k->name());
  return names.size() == 1 && !common.worker.empty() ? names.front() : "";
}

int count_gpus(const std::string& topology) {
  int gpus = 0;
  std::error_code error;
  for (const auto& node : std::filesystem::directory_iterator(topology, error)) {
    std::ifstream properties(node.path() / "properties");
    for (std::string name, value; properties >> name >> value;)
      if (name == "simd_count" && value != "0") ++gpus;
  }
  return gpus;
}

std::string select_detectors(const std::string& list, const Common& common) {
  using device::sim::detect::DetectorSet;
  const auto set = DetectorSet::parse(list);
  if (!set)
    throw UsageError(fmt::format("no detector is called '{}'; there are {}", DetectorSet::unknown(list),
                                 DetectorSet::known()));
  if (!set->empty() && common.device != "sim")
    throw UsageError(fmt::format("detectors ({}) are the simulator's, use --device sim", list));
  return set->text();
}

std::string select_schedule(const std::string& word, const Common& common) {
  using device::sim::detect::Schedule;
  const auto schedule = Schedule::parse(word);
  if (!schedule) throw UsageError(fmt::format("'{}' is no schedule; one is {}", word, Schedule::known()));
  if (*schedule == Schedule{}) return "plain";
  if (common.device != "sim")
    throw UsageError(fmt::format("the schedule ({}) is the simulator's to choose, use --device sim", word));
  return schedule->text();
}

void use_worker(Common& common, const std::string& command) {
  if (command.empty()) return;
  common.worker = command;
  exchange::add_worker_kernels(command);
  common.device = exchange::worker_device;
  common.arch = exchange::worker_arch;
}

PoolOptions pool_options(const Common& common, int jobs, std::uint64_t deadline_seconds,
                         std::uint64_t memory_mib) {
  const bool external = common.device == exchange::worker_device && !common.worker.empty();
  if (common.device != "sim" && common.device != "hip" && !external)
    throw UsageError(fmt::format("no device '{}'; there are sim and hip", common.device));
  PoolOptions options;
  options.device = common.device;
  // Of a worker nobody knows what it computes on: one at a time unless told otherwise.
  const int here = external                 ? 1
                   : common.device == "sim" ? static_cast<int>(std::thread::hardware_concurrency())
                                            : count_gpus("/sys/class/kfd/kfd/topology/nodes");
  options.jobs = jobs > 0 ? jobs : std::max(1, here);
  options.deadline = std::chrono::seconds(deadline_seconds);
  options.memory_bytes = memory_mib << 20U;
  options.command = {common.self, "worker"};
  return options;
}

Shard select_shard(const std::string& words, std::string& from) {
  from.clear();
  if (!words.empty()) return parse_shard(words);
  return shard_of_environment([](const char* name) { return std::getenv(name); }, from).value_or(Shard{});
}

}  // namespace attest::fuzz
