// SPDX-License-Identifier: MIT
//
// Counts accesses that buffer descriptors clip. Kernels rely on clipping for their tails, so it is no hazard;
// but a count that surprises the author says that an extent is wrong.
#pragma once

#include <memory>

#include "device/simulator/detect/session.h"

namespace attest::device::sim::detect {

std::unique_ptr<LaunchObserver> count_clipped(const LaunchContext& launch);

}  // namespace attest::device::sim::detect
