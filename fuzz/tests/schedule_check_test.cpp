// SPDX-License-Identifier: MIT
//
// A kernel that gives different bytes under some schedule, and one that does not.
#include "fuzz/schedule_check.h"

#include <catch2/catch.hpp>
#include <functional>
#include <utility>
#include <vector>

namespace attest::fuzz {
namespace {

struct FakeDevice final : device::Device {
  [[nodiscard]] std::string name() const override { return "sim"; }
  [[nodiscard]] std::string arch() const override { return "gfx942"; }
  void choose_detectors(const std::string& list) override { detectors = list; }
  void choose_schedule(const std::string& word) override { schedule = word; }
  device::Observations take_observations() override { return {}; }
  std::string detectors = "none", schedule = "plain";
};

struct FakeKernel final : device::Kernel {
  explicit FakeKernel(std::function<device::Outcome(const std::string&)> does) : run_under(std::move(does)) {}
  [[nodiscard]] std::string name() const override { return "attest/fake"; }
  [[nodiscard]] std::string op() const override { return "mla_decode"; }
  [[nodiscard]] std::string arch() const override { return "gfx942"; }
  [[nodiscard]] std::string contract() const override { return "attest"; }
  [[nodiscard]] std::string fault() const override { return ""; }
  [[nodiscard]] std::string imitates() const override { return ""; }
  [[nodiscard]] std::string precision() const override { return ""; }
  [[nodiscard]] std::string supports() const override { return ""; }
  [[nodiscard]] std::optional<std::string> refuses(const cases::Case&) const override { return {}; }
  [[nodiscard]] device::Outcome run(device::Device& device, const cases::Case&,
                                    const cases::Inputs&) const override {
    schedules.push_back(dynamic_cast<FakeDevice&>(device).schedule);
    return run_under(schedules.back());
  }
  std::function<device::Outcome(const std::string&)> run_under;
  mutable std::vector<std::string> schedules;
};

device::Outcome bytes(std::vector<std::byte> values) {
  device::Outcome outcome;
  outcome.outputs.tensors.push_back({"out", std::move(values)});
  return outcome;
}

std::optional<oracle::Verdict> check(const FakeKernel& kernel, FakeDevice& device) {
  const cases::Case c{};
  const cases::Inputs inputs{};
  return schedule_dependence(device, kernel, c, inputs, "plain", kernel.run_under("plain"));
}

}  // namespace

TEST_CASE("the same bytes under every schedule are no finding") {
  const FakeKernel kernel([](const std::string&) { return bytes({std::byte{1}, std::byte{2}}); });
  FakeDevice device;
  device.choose_detectors("all");
  CHECK_FALSE(check(kernel, device));
  CHECK(kernel.schedules.size() >= 4);
  CHECK(device.schedule == "plain");
  CHECK(device.detectors == "none");
}

TEST_CASE("other bytes under one schedule are a hazard that names it and the byte") {
  const FakeKernel kernel([](const std::string& schedule) {
    return bytes(
        {std::byte{1}, schedule.find("delivery=poison") == std::string::npos ? std::byte{2} : std::byte{3}});
  });
  FakeDevice device;
  const auto verdict = check(kernel, device);
  REQUIRE(verdict);
  CHECK(verdict->kind == oracle::VerdictKind::hazard);
  CHECK(verdict->stage == "schedule");
  CHECK(verdict->detail ==
        "under delivery=poison against plain: out byte 1: 03 instead of 02, 1 of 2 bytes differ");
  CHECK(device.schedule == "plain");
}

TEST_CASE("a fault that only one schedule brings about is a hazard too") {
  const FakeKernel kernel([](const std::string& schedule) {
    device::Outcome outcome = bytes({std::byte{1}});
    if (schedule == "quantum=1000") {
      outcome.status = device::Status::crash;
      outcome.diagnosis = "memory fault";
      outcome.detail = "far away";
    }
    return outcome;
  });
  FakeDevice device;
  const auto verdict = check(kernel, device);
  REQUIRE(verdict);
  CHECK(verdict->detail == "under quantum=1000 against plain: memory fault, far away");
}

}  // namespace attest::fuzz
