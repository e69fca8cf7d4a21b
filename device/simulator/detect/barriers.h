// SPDX-License-Identifier: MIT
//
// Waves of a workgroup that do not meet at the same barriers.
//
// s_barrier counts waves that have ended as arrived, so a mismatch does not hang: it silently pairs barriers
// that do not belong together. HIP leaves a __syncthreads() that not all threads reach undefined.
//
//   hard      a wave that has met the others at a barrier ends while others go on to meet at more: their
//             loops do not agree
//   advisory  waves meet at different s_barrier instructions; a wave ends before any barrier while others use
//             them (an early exit, which this hardware allows); a barrier with fewer lanes than the wave began
//             with
#pragma once

#include <memory>

#include "device/simulator/detect/session.h"

namespace attest::device::sim::detect {

std::unique_ptr<LaunchObserver> check_barriers(const LaunchContext& launch);

}  // namespace attest::device::sim::detect
