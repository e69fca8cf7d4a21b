// SPDX-License-Identifier: MIT
#include "device/simulator/detect/hazard_at.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/simulator/core/dispatch.h"

namespace attest::device::sim::detect {
namespace {

std::uint64_t pc_of(const LaunchContext& launch, std::uint32_t index) {
  const Program& program = launch.view.program;
  return index < program.size() ? program.address_of(index) - launch.view.kernel.image_base : 0;
}

}  // namespace

bool is_new(const LaunchContext& launch, Detector detector, const Step& step, std::uint32_t with) {
  return launch.findings.report.fresh(launch.view.kernel.kernel.name, detector, pc_of(launch, step.index),
                                      pc_of(launch, with));
}

Hazard hazard_at(const LaunchContext& launch, Detector detector, const Step& step, std::uint32_t with) {
  Hazard h;
  h.detector = detector;
  h.kernel = launch.view.kernel.kernel.name;
  h.at = site(launch.view, step.index);
  h.with = site(launch.view, with);
  std::copy_n(step.wave.group->id, 3, h.workgroup);
  h.wave = static_cast<int>(step.wave.id_in_group);
  h.trip = step.trip;
  return h;
}

std::string vector_name(const Wave& wave, unsigned row) {
  return row < wave.accum_offset ? fmt::format("v{}", row) : fmt::format("a{}", row - wave.accum_offset);
}

std::string scalar_name(unsigned code) {
  static constexpr const char* special[] = {"flat_scratch_lo", "flat_scratch_hi", "xnack_mask_lo",
                                            "xnack_mask_hi",   "vcc_lo",          "vcc_hi"};
  if (code < 102) return fmt::format("s{}", code);
  if (code < 108) return special[code - 102];
  if (code < 124) return fmt::format("ttmp{}", code - 108);
  if (code == operand::m0) return "m0";
  if (code == operand::exec) return "exec_lo";
  if (code == operand::exec + 1) return "exec_hi";
  return code == scalar::scc ? "scc" : "mode";
}

}  // namespace attest::device::sim::detect
