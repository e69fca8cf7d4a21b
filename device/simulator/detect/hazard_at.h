// SPDX-License-Identifier: MIT
//
// A Hazard with everything that the instruction where it shows tells: kernel, pc, workgroup, wave, trip.
//
//   if (is_new(launch, Detector::waits, step, pending.index)) {
//     Hazard h = hazard_at(launch, Detector::waits, step, pending.index);
//     h.message = ...;
//     launch.findings.report.add(h);
//   }
#pragma once

#include <cstdint>
#include <string>

#include "device/simulator/detect/session.h"

namespace attest::device::sim::detect {

inline constexpr std::uint32_t no_index = 0xffffffff;

/// Whether the pair (step, instruction `with`) was not reported yet; counts it when it was.
bool is_new(const LaunchContext& launch, Detector detector, const Step& step, std::uint32_t with);
Hazard hazard_at(const LaunchContext& launch, Detector detector, const Step& step, std::uint32_t with);

/// "v3", "a0": a row of Wave::vgpr as the assembler names it.
std::string vector_name(const Wave& wave, unsigned row);
/// "s3", "vcc_lo", "m0", "exec_hi", "scc".
std::string scalar_name(unsigned code);

}  // namespace attest::device::sim::detect
