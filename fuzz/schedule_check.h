// SPDX-License-Identifier: MIT
//
// Does the result depend on the order in which waves take turns, or on when loads arrive? (The detector
// `schedule`.)
//
// A case that has run in one order is run again in a few others (Schedule::probes(): long turns, drawn
// orders, skewed starts, late loads) and its output bytes are compared. Each is an order a GPU may choose, so
// a kernel that means to be deterministic gives the same bytes in all of them. Our oracle accepts many
// outputs; this asks for one.
#pragma once

#include <optional>
#include <string>

#include "cases/inputs.h"
#include "device/kernel.h"
#include "oracle/verdict.h"

namespace attest::fuzz {

/// A verdict `hazard` that names the schedule and the first element that differs, or the failure that a
/// schedule brought about; nullopt: the same bytes in every order. Leaves the device with `schedule` and no
/// detectors chosen.
/// @param outcome of the run under `schedule`
std::optional<oracle::Verdict> schedule_dependence(device::Device& device, const device::Kernel& kernel,
                                                   const cases::Case& c, const cases::Inputs& inputs,
                                                   const std::string& schedule,
                                                   const device::Outcome& outcome);

}  // namespace attest::fuzz
