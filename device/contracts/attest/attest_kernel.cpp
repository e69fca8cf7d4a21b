// SPDX-License-Identifier: MIT
#include "device/contracts/attest/attest_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>

namespace attest::device::contracts {

std::span<const PlantedFault> planted_faults() {
  static constexpr auto all = std::to_array<PlantedFault>({
#include "planted_faults.inc"
  });
  return all;
}

bool AttestKernel::present() const {
  return std::all_of(facts_.objects.begin(), facts_.objects.end(), [&](const std::string& object) {
    std::error_code error;
    return std::filesystem::exists(object_file(object), error);
  });
}

std::string AttestKernel::name() const {
  return fault_ == nullptr ? fmt::format("attest/{}", facts_.op)
                           : fmt::format("attest/{}+{}", facts_.op, fault_->name);
}

std::string AttestKernel::arch() const {
  return ATTEST_KERNEL_ARCH;
}

std::string AttestKernel::supports() const {
  return fault_ == nullptr ? facts_.supports : fmt::format("{}; planted: {}", facts_.supports, fault_->what);
}

std::optional<std::string> AttestKernel::refuses(const cases::Case& c) const {
  if (cases::op_name(c.problem) != facts_.op)
    return fmt::format("does {}, not {}", facts_.op, cases::op_name(c.problem));
  return why_not(c);
}

Outcome AttestKernel::run(Device& device, const cases::Case& c, const cases::Inputs& inputs) const {
  hip::HipDevice& gpu = hip::hip_device(device);
  if (gpu.arch() != arch()) {
    throw DeviceError(
        fmt::format("{} is compiled for {}; device {} is {}", name(), arch(), gpu.name(), gpu.arch()));
  }
  if (const auto why = refuses(c)) throw DeviceError(fmt::format("{}: {}", name(), *why));
  Outcome outcome;
  try {
    run_on(gpu, c, inputs, outcome);
  } catch (const hip::CallFailed& failure) {
    outcome.status = Status::harness_error;
    outcome.diagnosis = "a HIP call failed outside of the kernel";
    outcome.detail = failure.what();
  }
  return outcome;
}

hip::Function AttestKernel::function(hip::HipDevice& gpu, std::string_view object,
                                     const std::string& symbol) const {
  return gpu.function(object_file(object), symbol);
}

bool AttestKernel::note(hip::LaunchReport report, std::string stage, Outcome& outcome) {
  outcome.stage = std::move(stage);
  outcome.status = report.status;
  outcome.diagnosis = std::move(report.diagnosis);
  outcome.detail = std::move(report.detail);
  outcome.wave_instructions += report.wave_instructions;
  outcome.seconds += report.seconds;
  return outcome.status == Status::ok;
}

std::filesystem::path AttestKernel::object_file(std::string_view object) const {
  if (fault_ == nullptr || fault_->object != object) return directory_ / fmt::format("{}.co", object);
  return directory_ / fmt::format("{}+{}.co", object, fault_->name);
}

}  // namespace attest::device::contracts
