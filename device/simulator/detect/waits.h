// SPDX-License-Identifier: MIT
//
// Registers that are used before the s_waitcnt that guarantees what a load brings.
//
// A load's destination is pending from issue until a wait covers it (detect/outstanding.h). Two things may
// not happen meanwhile:
//
//   read       by anything: it gets the old value on a slow day
//   overwrite  by another unit: the load may arrive later and destroy the new value. Loads of the same
//              in-order queue are exempt
//
// Lane by lane: lanes that EXEC switched off when the load was issued are not pending. Nothing here is a
// heuristic and nothing depends on how long a load takes in this run, so a kernel that passes has its waits
// right on the paths taken.
//
// Ranks: vector memory, then scalar memory, then LDS, whose latency is short enough that hand-written code
// sometimes counts on it.
#pragma once

#include <memory>

#include "device/simulator/detect/session.h"

namespace attest::device::sim::detect {

std::unique_ptr<LaunchObserver> check_waits(const LaunchContext& launch);

}  // namespace attest::device::sim::detect
