// SPDX-License-Identifier: MIT
//
// attest_mutate: how much of a kernel's timing is checked?
//
//   attest_mutate [--op OP...] [--kernels DIR] [--cases N] [--seed S] [--list]
//
// Takes the waits, barriers and s_nops of our own kernels away, one at a time (mutants.h), runs small cases
// that together execute what a few hundred generated ones execute, with all timing detectors on, and prints a
// table: what was caught by which detector, what shows in the result alone, and why the rest is harmless. A
// mutant counts for the first of: a hard hazard, a wrong result in plain order, a wrong result with poisoned
// late loads, an advisory. What nothing notices is sorted by reason. Mutants that only a wrong result gives
// away are listed always: each is a detector's miss.
#include <fmt/format.h>
#include <fmt/ranges.h>
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
#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/kernels.h"
#include "device/hip/device.h"
#include "device/hip/installation.h"
#include "device/kernel.h"
#include "device/simulator/core/code_object.h"
#include "fuzz/branches.h"
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

struct Problem {
  cases::Case c;
  cases::Inputs inputs;
};

struct Seen {
  std::set<std::string> hard, advisory;  ///< detectors
  bool wrong = false, poisoned_wrong = false, fault = false;
};

/// One op's kernel, and variants of its code objects.
class Laboratory {
 public:
  Laboratory(std::string op, fs::path kernels, fs::path work)
      : op_(std::move(op)), kernels_(std::move(kernels)), work_(std::move(work)) {
    device_ = device::open_device("sim", 0);
  }

  std::vector<std::byte> object(const std::string& name) const {
    return read_file(kernels_ / (name + ".co"));
  }

  /// Small cases that go, each, a way at some branch that none before it went, and that the kernel as it is
  /// passes (where nothing can be proved, as with nothing but NaN, a wrong result would not show).
  void find_problems(const device::Kernel& original, std::uint64_t seed, std::size_t most) {
    BranchCoverage coverage;
    for (std::uint64_t number = 0; number < 1000 && problems_.size() < most; ++number) {
      const cases::Case c = generate(op_, seed, number);
      if (original.refuses(c) || work(c) > 2500) continue;
      Problem p{c, cases::materialise(c)};
      if (!right(original, p, run(original, p, "none", ""))) continue;
      const auto ways = dynamic_cast<device::hip::HipDevice&>(*device_).take_branches();
      if (coverage.add(ways) != 0 || problems_.empty()) problems_.push_back(std::move(p));
    }
  }
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }

  /// The op's kernel, of a folder in which `object` holds `bytes`; its own, so that no cache mixes them up.
  std::unique_ptr<const device::Kernel> kernel(const std::string& object, std::span<const std::byte> bytes) {
    const fs::path folder = work_ / std::to_string(folders_++);
    fs::create_directories(folder);
    for (const std::string& name : objects_)
      if (object != name) fs::copy_file(kernels_ / (name + ".co"), folder / (name + ".co"));
    write_file(folder / (object + ".co"), bytes);
    return of_op(folder);
  }
  std::unique_ptr<const device::Kernel> original() {
    auto found = of_op(kernels_);
    objects_ = dynamic_cast<const device::contracts::AttestKernel&>(*found).objects();
    return found;
  }
  /// Of the original.
  [[nodiscard]] const std::vector<std::string>& objects() const { return objects_; }

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

  void forget_variants() const { fs::remove_all(work_); }

  /// Cases in which some wave executes the place.
  std::vector<std::size_t> reaching(const std::string& object, std::span<const std::byte> bytes) {
    const auto k = kernel(object, bytes);
    std::vector<std::size_t> list;
    for (std::size_t n = 0; n < problems_.size(); ++n)
      if (run(*k, problems_[n], "none", "").status == device::Status::crash) list.push_back(n);
    return list;
  }

 private:
  std::unique_ptr<const device::Kernel> of_op(const fs::path& folder) const {
    for (auto& k : device::contracts::attest_kernels(folder))
      if (k->op() == op_ && k->fault().empty()) return std::move(k);
    throw std::runtime_error(fmt::format("{} has no kernel of {}", folder.string(), op_));
  }

  std::string op_;
  fs::path kernels_, work_;
  std::vector<std::string> objects_;
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
  // That no detector speaks is what each of these says: they look at every register, every dword and every
  // gap of all instructions that the cases execute.
  switch (m.kind) {
    case Mutant::Kind::wait:
      return "harmless: what it waits for is waited for again, or done, before it is touched";
    case Mutant::Kind::barrier:
      return "harmless: nothing that one wave leaves is touched by another before the next barrier";
    case Mutant::Kind::nop:
      return "harmless: no rule is about the gap, or it is long enough without";
  }
  return "";
}

/// By verdict, then by kind of mutant.
using Table = std::map<std::string, std::map<std::string, int>>;

void print(const Table& table) {
  fmt::print("\n| what became of it | s_waitcnt | s_barrier | s_nop |\n|---|---|---|---|\n");
  std::map<std::string, int> totals;
  for (const auto& [verdict, kinds] : table) {
    const auto of = [&kinds](const char* kind) {
      const auto found = kinds.find(kind);
      return found == kinds.end() ? 0 : found->second;
    };
    for (const auto& [kind, count] : kinds) totals[kind] += count;
    fmt::print("| {} | {} | {} | {} |\n", verdict, of("s_waitcnt"), of("s_barrier"), of("s_nop"));
  }
  fmt::print("| all | {} | {} | {} |\n", totals["s_waitcnt"], totals["s_barrier"], totals["s_nop"]);
}

/// Whether the mutants of a code object are another op's affair: it has the name of that op, or `done` has it.
bool is_anothers(const std::string& object, const std::string& op, std::set<std::string>& done) {
  const std::vector<std::string> ops = cases::op_names();
  if (object != op && std::find(ops.begin(), ops.end(), object) != ops.end()) return true;
  return !done.insert(object).second;
}

/// @return false: the kernel as it is was not silent
bool mutate(const std::string& op, const fs::path& kernels, const fs::path& folder, std::uint64_t seed,
            std::size_t cases, bool list, std::set<std::string>& done, Table& table) {
  Laboratory laboratory(op, kernels, folder / op);
  const auto original = laboratory.original();
  laboratory.find_problems(*original, seed, cases);
  std::vector<std::size_t> all(laboratory.problems().size());
  for (std::size_t n = 0; n < all.size(); ++n) all[n] = n;
  const Seen quiet = laboratory.look(*original, all);
  if (!quiet.hard.empty() || !quiet.advisory.empty() || quiet.wrong || quiet.poisoned_wrong) {
    fmt::print(stderr, "the unchanged kernel of {} is not silent:{}{}{} {}\n", op,
               quiet.wrong ? " wrong" : "", quiet.poisoned_wrong ? " wrong with late loads" : "",
               fmt::join(quiet.hard, " "), fmt::join(quiet.advisory, " "));
    return false;
  }
  for (const std::string& object : laboratory.objects()) {
    if (is_anothers(object, op, done)) continue;
    const std::vector<std::byte> bytes = laboratory.object(object);
    for (const auto& k : device::sim::read_code_object(bytes).kernels) {
      const std::vector<std::size_t> cases_of_kernel =
          laboratory.reaching(object, trapped(bytes, entry_of(bytes, k.name)));
      for (const Mutant& m : timing_mutants(bytes, k.name)) {
        const Seen seen = laboratory.look(*laboratory.kernel(object, mutated(bytes, m)), cases_of_kernel);
        const bool caught = !seen.hard.empty() || seen.wrong || seen.poisoned_wrong || !seen.advisory.empty();
        const bool reached = caught || !laboratory.reaching(object, trapped(bytes, m)).empty();
        const std::string verdict = verdict_of(seen, m, reached);
        ++table[verdict][kind_name(m.kind)];
        if (list || verdict == "faults" || verdict.starts_with("wrong"))
          fmt::print("{} {:#x}: {}: {}: {}{}\n", k.name, m.pc, m.instruction, m.change, verdict,
                     m.covered_by.empty() ? "" : "; " + m.covered_by);
      }
    }
    laboratory.forget_variants();
  }
  return true;
}

int mutate(const std::vector<std::string>& ops, const fs::path& kernels, std::uint64_t seed,
           std::size_t cases, bool list) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("attest_mutate_{}", ::getpid());
  Table table;
  std::set<std::string> done;
  bool silent = true;
  for (const std::string& op : ops) {
    Table of_op;
    silent = mutate(op, kernels, folder, seed, cases, list, done, of_op) && silent;
    int count = 0;
    for (const auto& [verdict, kinds] : of_op)
      for (const auto& [kind, times] : kinds) {
        table[verdict][kind] += times;
        count += times;
      }
    fmt::print(stderr, "{}: {} mutants\n", op, count);
  }
  fs::remove_all(folder);
  print(table);
  return silent ? 0 : 1;
}

}  // namespace
}  // namespace attest::fuzz

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): a tool of ours, run by hand
  CLI::App app("Takes waits, barriers and s_nops out of our kernels and tells what notices");
  std::string kernels = attest::device::hip::kernel_directory().string();
  std::uint64_t seed = 1;
  std::size_t cases = 40;
  bool list = false;
  std::vector<std::string> ops = attest::cases::op_names();
  app.add_option("--op", ops, "whose kernels (repeatable) [all]")->check(CLI::IsMember(ops));
  app.add_option("--kernels", kernels, "folder of our code objects");
  app.add_option("--seed", seed, "of the cases");
  app.add_option("--cases", cases, "of an op, at most");
  app.add_flag("--list", list, "every mutant, not only those that no detector caught");
  CLI11_PARSE(app, argc, argv);
  try {
    return attest::fuzz::mutate(ops, kernels, seed, cases, list);
  } catch (const std::exception& error) {
    fmt::print(stderr, "attest_mutate: {}\n", error.what());
    return 2;
  }
}
