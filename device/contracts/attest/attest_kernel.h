// SPDX-License-Identifier: MIT
//
// What our own kernels have in common: they are code objects in one directory, each with variants that carry
// a planted fault (device/kernels/faults/).
//
//   class AttestTopK final : public AttestKernel {    // an op adds a class like this, in a file of its own
//     using AttestKernel::AttestKernel;
//     std::optional<std::string> why_not(const cases::Case& c) const override;
//     void run_on(hip::HipDevice&, const cases::Case&, const cases::Inputs&, Outcome&) const override;
//   };
//   void add_topk(KernelList& list) { list.add<AttestTopK>({.op = "topk", .objects = {"topk"}, ...}); }
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/contracts/attest/runaway.h"
#include "device/hip/buffer_set.h"
#include "device/hip/device.h"
#include "device/kernel.h"

namespace attest::device::contracts {

/// A row of device/kernels/faults/.
struct PlantedFault {
  std::string_view name;
  std::string_view op;
  std::string_view object;  ///< the code object that has a variant with this fault
  std::string_view imitates;
  std::string_view what;
};
std::span<const PlantedFault> planted_faults();

/// What is the same for the variants of one op's kernel.
struct KernelFacts {
  std::string op;
  std::vector<std::string> objects;  ///< code objects it launches: "mla_decode", "split_reduce"
  std::string precision;             ///< profile name for the oracle; any when the op's results are exact
  std::string supports;              ///< one line for people
};

class AttestKernel : public Kernel {
 public:
  AttestKernel(const std::filesystem::path& directory, KernelFacts facts, const PlantedFault* fault)
      : directory_(directory), facts_(std::move(facts)), fault_(fault) {}

  [[nodiscard]] const std::vector<std::string>& objects() const { return facts_.objects; }
  /// All its code objects are there.
  [[nodiscard]] bool present() const;

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::string op() const override { return facts_.op; }
  [[nodiscard]] std::string arch() const override;
  [[nodiscard]] std::string contract() const override { return "attest"; }
  [[nodiscard]] std::string fault() const override { return std::string(fault_ ? fault_->name : ""); }
  [[nodiscard]] std::string imitates() const override { return std::string(fault_ ? fault_->imitates : ""); }
  [[nodiscard]] std::string precision() const override { return facts_.precision; }
  [[nodiscard]] std::string supports() const override;
  [[nodiscard]] std::optional<std::string> refuses(const cases::Case& c) const final;
  [[nodiscard]] Outcome run(Device& device, const cases::Case& c, const cases::Inputs& inputs) const final;

 protected:
  /// As refuses, for a case of its op.
  [[nodiscard]] virtual std::optional<std::string> why_not(const cases::Case& c) const = 0;
  /// Uploads, launches, downloads. A HIP call that fails throws hip::CallFailed, which becomes a
  /// harness_error.
  virtual void run_on(hip::HipDevice& gpu, const cases::Case& c, const cases::Inputs& inputs,
                      Outcome& outcome) const = 0;

  /// `symbol` in code object `object`, in its faulty variant where that is this kernel's fault.
  [[nodiscard]] hip::Function function(hip::HipDevice& gpu, std::string_view object,
                                       const std::string& symbol) const;

  /// Launches and notes the result in `outcome`. True when the kernel ended as it should.
  /// @param optimised wave instructions that -O3 code takes at most; how many more make it runaway is runaway.h's
  template <typename Arguments>
  static bool launch(hip::HipDevice& gpu, hip::Function function, std::string stage,
                     const hip::Geometry& geometry, const Arguments& arguments, std::uint64_t optimised,
                     Outcome& outcome) {
    return note(gpu.launch(function, geometry, arguments, runaway_after(optimised)), std::move(stage),
                outcome);
  }

 private:
  static bool note(hip::LaunchReport report, std::string stage, Outcome& outcome);
  [[nodiscard]] std::filesystem::path object_file(std::string_view object) const;

  std::filesystem::path directory_;
  KernelFacts facts_;
  const PlantedFault* fault_;
};

/// Collects what is present in a directory, with every planted fault of the op.
class KernelList {
 public:
  explicit KernelList(std::filesystem::path directory) : directory_(std::move(directory)) {}

  template <typename K>
  void add(const KernelFacts& facts) {
    keep(std::make_unique<K>(directory_, facts, nullptr));
    for (const PlantedFault& fault : planted_faults())
      if (fault.op == facts.op) keep(std::make_unique<K>(directory_, facts, &fault));
  }

  std::vector<std::unique_ptr<const Kernel>> take() { return std::move(kernels_); }

 private:
  void keep(std::unique_ptr<AttestKernel> kernel) {
    if (kernel->present()) kernels_.push_back(std::move(kernel));
  }

  std::filesystem::path directory_;
  std::vector<std::unique_ptr<const Kernel>> kernels_;
};

constexpr unsigned ceil_div(std::int64_t dividend, std::int64_t divisor) {
  return static_cast<unsigned>((dividend + divisor - 1) / divisor);
}

}  // namespace attest::device::contracts
