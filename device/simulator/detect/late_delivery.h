// SPDX-License-Identifier: MIT
//
// Loads that bring their data as late as the hardware may.
//
// In the plain run a load is done when it is executed. Under `stale` its destination keeps the old value
// until the s_waitcnt that guarantees the new one, under `poison` it holds a NaN pattern until then; LDS that
// an LDS-DMA load fills likewise. Both are runs the hardware may give, so a result that is wrong under one of
// them is wrong. Where detect/waits.h names the instruction that uses a register too early, this shows what
// comes of it.
//
// The read of memory itself stays where the load stands; only the arrival is late. Memory that changes in
// between is the race detectors' affair.
#pragma once

#include <memory>

#include "device/simulator/detect/observer.h"
#include "device/simulator/detect/schedule.h"

namespace attest::device::sim::detect {

/// Not for Delivery::immediate.
std::unique_ptr<LaunchObserver> deliver_late(Delivery delivery);

}  // namespace attest::device::sim::detect
