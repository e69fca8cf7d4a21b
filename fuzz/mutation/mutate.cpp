// SPDX-License-Identifier: MIT
//
// attest_mutate: how much of a kernel's timing is checked?
//
//   attest_mutate [--kernels DIR] [--cases N] [--seed S] [--list]
//
// Takes the waits, barriers and s_nops of our own kernels away, one at a time (mutants.h), runs a few cases
// with all timing detectors on, and prints a table: what was caught by which detector, what shows in the
// result alone, and why the rest is harmless. A mutant counts for the first of: a hard hazard, a wrong result
// in plain order, a wrong result with poisoned late loads, an advisory. What nothing notices is sorted by
// reason.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cases/inputs.h"
#include "device/contracts/attest/kernels.h"
#include "device/hip/installation.h"
#include "device/kernel.h"
#include "device/simulator/core/code_object.h"
#include "fuzz/generate.h"
#include "fuzz/mutation/mutants.h"
#include "oracle/judge.h"
#include "oracle/precision.h"

namespace attest::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr const char* timing_detectors = "lds-race,global-race,waits,lds-dma,wait-states,barrier";

std::vector<std::byte> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(fmt::format("{}: cannot be read", path.string()));
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

void write_file(const fs::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!out) throw std::runtime_error(fmt::format("{}: cannot be written", path.string()));
}

/// What a case exercises: one kernel per pair of formats, split_reduce with more than one split.
std::string class_of(const cases::Case& c) {
  const auto& p = std::get<cases::MlaDecode>(c.problem);
  return fmt::format("{} {} {}", static_cast<int>(p.q_format), static_cast<int>(p.kv_format),
                     p.num_splits > 1);
}

struct Problem {
  cases::Case c;
  cases::Inputs inputs;
};

struct Seen {
  std::set<std::string> hard, advisory;  ///< detectors
  bool wrong = false, poisoned_wrong = false, fault = false;
};

class Laboratory {
 public:
  Laboratory(fs::path kernels, fs::path work) : kernels_(std::move(kernels)), work_(std::move(work)) {
    device_ = device::open_device("sim", 0);
  }

  std::vector<std::byte> object(const std::string& name) const {
    return read_file(kernels_ / (name + ".co"));
  }

  void add_problem(const cases::Case& c) { problems_.push_back({c, cases::materialise(c)}); }
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }

  /// The kernels of a folder in which `object` holds `bytes`; its own, so that no cache mixes them up.
  std::unique_ptr<const device::Kernel> kernel(const std::string& object, std::span<const std::byte> bytes) {
    const fs::path folder = work_ / std::to_string(folders_++);
    fs::create_directories(folder);
    for (const char* name : {"mla_decode", "split_reduce"})
      if (object != name)
        fs::copy_file(kernels_ / fmt::format("{}.co", name), folder / fmt::format("{}.co", name));
    write_file(folder / (object + ".co"), bytes);
    auto list = device::contracts::attest_kernels(folder);
    for (auto& k : list)
      if (k->name() == "attest/mla_decode") return std::move(k);
    throw std::runtime_error("attest/mla_decode is not among the kernels");
  }

  device::Outcome run(const device::Kernel& k, const Problem& p, const char* detectors,
                      const char* schedule) {
    device_->choose_detectors(detectors);
    device_->choose_schedule(schedule);
    return k.run(*device_, p.c, p.inputs);
  }
  device::Observations observed() { return device_->take_observations(); }

  static bool right(const device::Kernel& k, const Problem& p, const device::Outcome& outcome) {
    return outcome.status == device::Status::ok &&
           oracle::judge(p.c, p.inputs, outcome.outputs, oracle::profile(k.precision())).kind ==
               oracle::VerdictKind::pass;
  }

  Seen look(const device::Kernel& k, const std::vector<std::size_t>& which) {
    Seen seen;
    for (const std::size_t n : which) {
      const Problem& p = problems_[n];
      const device::Outcome outcome = run(k, p, timing_detectors, "");
      for (const device::Hazard& h : observed().hazards)
        (h.hard ? seen.hard : seen.advisory).insert(h.detector);
      seen.fault =
          seen.fault || outcome.status == device::Status::crash || outcome.status == device::Status::timeout;
      seen.wrong = seen.wrong || !right(k, p, outcome);
      if (!seen.hard.empty()) return seen;
    }
    for (const std::size_t n : which) {
      if (seen.wrong) return seen;
      seen.poisoned_wrong =
          seen.poisoned_wrong || !right(k, problems_[n], run(k, problems_[n], "none", "delivery=poison"));
    }
    return seen;
  }

  /// Cases in which some wave executes the place.
  std::vector<std::size_t> reaching(const std::string& object, std::span<const std::byte> bytes) {
    const auto k = kernel(object, bytes);
    std::vector<std::size_t> list;
    for (std::size_t n = 0; n < problems_.size(); ++n)
      if (run(*k, problems_[n], "none", "").status == device::Status::crash) list.push_back(n);
    return list;
  }

 private:
  fs::path kernels_, work_;
  std::unique_ptr<device::Device> device_;
  std::vector<Problem> problems_;
  std::size_t folders_ = 0;
};

const char* kind_name(Mutant::Kind kind) {
  switch (kind) {
    case Mutant::Kind::wait:
      return "s_waitcnt";
    case Mutant::Kind::barrier:
      return "s_barrier";
    case Mutant::Kind::nop:
      return "s_nop";
  }
  return "";
}

/// What became of a mutant, in one phrase: a row of the table.
std::string verdict_of(const Seen& seen, const Mutant& m, bool reached) {
  if (!reached) return "not executed in these cases";
  if (!seen.hard.empty()) return fmt::format("caught by {}", *seen.hard.begin());
  if (seen.fault) return "faults";
  if (seen.wrong) return "wrong result only";
  if (seen.poisoned_wrong) return "wrong result with late loads only";
  if (!seen.advisory.empty()) return fmt::format("advisory of {}", *seen.advisory.begin());
  if (!m.covered_by.empty()) return "harmless: a later wait covers it";
  return "unnoticed";
}

int mutate(const fs::path& kernels, std::uint64_t seed, int cases, bool list) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("attest_mutate_{}", ::getpid());
  Laboratory laboratory(kernels, folder);

  // Small cases, of different formats, that the unchanged kernel does without a word.
  const auto original = laboratory.kernel("mla_decode", laboratory.object("mla_decode"));
  std::map<std::string, int> taken;
  for (std::uint64_t number = 0; number < 2000 && static_cast<int>(laboratory.problems().size()) < 6 * cases;
       ++number) {
    const cases::Case c = generate("mla_decode", seed, number);
    if (original->refuses(c) || work(c) < 300 || work(c) > 1500) continue;
    int& of_class = taken[class_of(c)];
    if (of_class == cases) continue;
    ++of_class;
    laboratory.add_problem(c);
  }
  std::vector<std::size_t> all(laboratory.problems().size());
  for (std::size_t n = 0; n < all.size(); ++n) all[n] = n;
  const Seen quiet = laboratory.look(*original, all);
  if (!quiet.hard.empty() || !quiet.advisory.empty() || quiet.wrong || quiet.poisoned_wrong) {
    fmt::print(stderr, "the unchanged kernels are not silent\n");
    return 1;
  }

  std::map<std::string, std::map<std::string, int>> table;  // verdict, kind
  std::map<std::string, int> totals;
  for (const char* object : {"mla_decode", "split_reduce"}) {
    const std::vector<std::byte> bytes = laboratory.object(object);
    for (const auto& k : device::sim::read_code_object(bytes).kernels) {
      const std::vector<std::size_t> cases_of_kernel =
          laboratory.reaching(object, trapped(bytes, entry_of(bytes, k.name)));
      for (const Mutant& m : timing_mutants(bytes, k.name)) {
        const auto mutant = laboratory.kernel(object, mutated(bytes, m));
        const Seen seen = laboratory.look(*mutant, cases_of_kernel);
        const bool caught = !seen.hard.empty() || seen.wrong || seen.poisoned_wrong || !seen.advisory.empty();
        const bool reached = caught || !laboratory.reaching(object, trapped(bytes, m)).empty();
        const std::string verdict = verdict_of(seen, m, reached);
        ++table[verdict][kind_name(m.kind)];
        ++totals[kind_name(m.kind)];
        if (list || verdict == "unnoticed" || verdict == "wrong result only" ||
            verdict == "wrong result with late loads only")
          fmt::print("{} {:#x}: {}: {}: {}{}\n", k.name, m.pc, m.instruction, m.change, verdict,
                     m.covered_by.empty() ? "" : "; " + m.covered_by);
      }
    }
  }
  fs::remove_all(folder);
  fmt::print("\n| what became of it | s_waitcnt | s_barrier | s_nop |\n|---|---|---|---|\n");
  for (const auto& row : table) {
    const auto of = [&row](const char* kind) {
      const auto found = row.second.find(kind);
      return found == row.second.end() ? 0 : found->second;
    };
    fmt::print("| {} | {} | {} | {} |\n", row.first, of("s_waitcnt"), of("s_barrier"), of("s_nop"));
  }
  fmt::print("| all | {} | {} | {} |\n", totals["s_waitcnt"], totals["s_barrier"], totals["s_nop"]);
  return 0;
}

}  // namespace
}  // namespace attest::fuzz

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): a tool of ours, run by hand
  CLI::App app("Takes waits, barriers and s_nops out of our kernels and tells what notices");
  std::string kernels = attest::device::hip::kernel_directory().string();
  std::uint64_t seed = 1;
  int cases = 1;
  bool list = false;
  app.add_option("--kernels", kernels, "folder of mla_decode.co and split_reduce.co");
  app.add_option("--seed", seed, "of the cases");
  app.add_option("--cases", cases, "per pair of formats, each with one split and with several");
  app.add_flag("--list", list, "every mutant, not only those that no detector caught");
  CLI11_PARSE(app, argc, argv);
  try {
    return attest::fuzz::mutate(kernels, seed, cases, list);
  } catch (const std::exception& error) {
    fmt::print(stderr, "attest_mutate: {}\n", error.what());
    return 2;
  }
}
