// SPDX-License-Identifier: MIT
#include "fuzz/schedule_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "device/simulator/detect/schedule.h"

namespace attest::fuzz {
namespace {

using device::sim::detect::Schedule;

/// "out byte 4096: 3f instead of bf (12 bytes differ)"; empty: the same.
std::string difference(const cases::Outputs& one, const cases::Outputs& other) {
  for (std::size_t t = 0; t < one.tensors.size(); ++t) {
    const auto& a = one.tensors[t];
    if (t >= other.tensors.size() || other.tensors[t].bytes.size() != a.bytes.size())
      return fmt::format("{} has another size", a.name);
    const auto& b = other.tensors[t];
    std::size_t first = a.bytes.size(), count = 0;
    for (std::size_t k = 0; k < a.bytes.size(); ++k) {
      if (a.bytes[k] == b.bytes[k]) continue;
      first = std::min(first, k);
      ++count;
    }
    if (count == 0) continue;
    return fmt::format("{} byte {}: {:02x} instead of {:02x}, {} of {} bytes differ", a.name, first,
                       std::to_integer<unsigned>(b.bytes[first]), std::to_integer<unsigned>(a.bytes[first]),
                       count, a.bytes.size());
  }
  return {};
}

}  // namespace

std::optional<oracle::Verdict> schedule_dependence(device::Device& device, const device::Kernel& kernel,
                                                   const cases::Case& c, const cases::Inputs& inputs,
                                                   const std::string& schedule,
                                                   const device::Outcome& outcome) {
  device.choose_detectors("none");
  std::optional<oracle::Verdict> found;
  for (const Schedule& probe : Schedule::probes()) {
    const std::string text = probe.text();
    if (text == schedule) continue;
    device.choose_schedule(text);
    const device::Outcome other = kernel.run(device, c, inputs);
    std::string detail;
    if (other.status != device::Status::ok)
      detail = fmt::format("{}, {}", other.diagnosis, other.detail);
    else
      detail = difference(outcome.outputs, other.outputs);
    if (detail.empty()) continue;
    found.emplace();
    found->kind = oracle::VerdictKind::hazard;
    found->stage = "schedule";
    found->diagnosis = "result depends on the schedule";
    found->detail = fmt::format("under {} against {}: {}", text, schedule, detail);
    break;
  }
  device.choose_schedule(schedule);
  return found;
}

}  // namespace attest::fuzz
