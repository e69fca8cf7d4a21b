// SPDX-License-Identifier: MIT
#include "device/simulator/detect/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "device/simulator/core/dispatch.h"
#include "device/simulator/detect/observer.h"

namespace attest::device::sim::detect {

Site site(const LaunchView& launch, std::uint32_t index) {
  if (index >= launch.program.size()) return {};
  return {launch.program.address_of(index) - launch.kernel.image_base, launch.program.disassembly(index)};
}

std::string Hazard::signature() const {
  return fmt::format("{} {} {:#x} {:#x}", kernel, name(detector), at.pc, with.pc);
}

std::string Hazard::line() const {
  std::string text =
      fmt::format("{}{}: {}; at {:#x}: {}", name(detector),
                  severity == Severity::advisory ? " (advisory)" : "", message, at.pc, at.disassembly);
  if (!with.none()) {
    text += fmt::format("; from {:#x}: {}", with.pc, with.disassembly);
    if (other_wave >= 0) text += fmt::format(" in wave {}", other_wave);
  }
  if (distance >= 0) text += fmt::format(", {} instruction{} earlier", distance, distance == 1 ? "" : "s");
  if (!buffer.empty()) text += fmt::format("; {} byte {}", buffer, offset);
  text += fmt::format("; {} workgroup {},{},{}", kernel, workgroup[0], workgroup[1], workgroup[2]);
  if (wave >= 0) text += fmt::format(" wave {}", wave);
  if (lane >= 0) text += fmt::format(" lane {}", lane);
  if (trip >= 0) text += fmt::format(" trip {}", trip);
  if (count > 1) text += fmt::format("; {} times", count);
  return text;
}

void to_json(nlohmann::json& json, const Hazard& h) {
  const auto site_json = [](const Site& s) {
    return s.none() ? nlohmann::json(nullptr) : nlohmann::json{{"pc", s.pc}, {"disassembly", s.disassembly}};
  };
  json = {{"detector", name(h.detector)},
          {"severity", h.severity == Severity::hard ? "hard" : "advisory"},
          {"kernel", h.kernel},
          {"at", site_json(h.at)},
          {"with", site_json(h.with)},
          {"message", h.message},
          {"workgroup", h.workgroup},
          {"wave", h.wave},
          {"other_wave", h.other_wave},
          {"lane", h.lane},
          {"buffer", h.buffer},
          {"offset", h.offset},
          {"trip", h.trip},
          {"distance", h.distance},
          {"count", h.count},
          {"signature", h.signature()},
          {"line", h.line()}};
}

bool Report::fresh(const std::string& kernel, Detector detector, std::uint64_t at_pc, std::uint64_t with_pc) {
  const auto found = known_.find({kernel, detector, at_pc, with_pc});
  if (found == known_.end()) return true;
  ++hazards_[found->second].count;
  return false;
}

void Report::add(Hazard hazard) {
  const auto [place, fresh] =
      known_.try_emplace({hazard.kernel, hazard.detector, hazard.at.pc, hazard.with.pc}, hazards_.size());
  if (fresh) {
    hazards_.push_back(std::move(hazard));
  } else {
    hazards_[place->second].count += hazard.count;
  }
}

std::vector<Hazard> Report::ranked() const {
  std::vector<std::tuple<Severity, std::uint32_t, std::size_t>> order;
  for (std::size_t k = 0; k < hazards_.size(); ++k)
    order.emplace_back(hazards_[k].severity, hazards_[k].rank, k);
  std::sort(order.begin(), order.end());
  std::vector<Hazard> sorted;
  for (const auto& [severity, rank, k] : order) sorted.push_back(hazards_[k]);
  return sorted;
}

}  // namespace attest::device::sim::detect
