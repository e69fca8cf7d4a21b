// SPDX-License-Identifier: MIT
//
// Two detectors over one shadow of all registers and memory (taint.h):
//
//   uninitialised   data nobody wrote (memory since hipMalloc, LDS and scratch since the workgroup's start,
//                   registers since the wave's) becomes an address, decides a branch, decides whether a store
//                   happens, or is stored to memory that outlives the kernel. Moving it about is no hazard:
//                   compilers do. What went through LDS or scratch is reported with the instruction and the
//                   buffer (or the register) that it came from first.
//   fidelity        a result that is not bit-exact (exec/fidelity.h) becomes an address or decides a branch.
//                   What it decides may go the other way on hardware, so the run says little about it. That
//                   it is stored is the oracle's business.
//
// A comparison of two floats decides by more than their last bits when one of them is 0, infinite or NaN, or
// when they differ by more than one part in 1024; then its outcome counts as exact. (Sums that cancel defy
// this: the difference of two close not-exact values may have any sign.)
//
// v_rcp_iflag_f32 is left out: LLVM emits it to divide integers, followed by the steps that make the quotient
// exact whatever the last bit was (AMDGPUCodeGenPrepare.cpp, expandDivRem32).
#pragma once

#include <memory>

#include "device/simulator/detect/session.h"

namespace attest::device::sim::detect {

struct Colours {
  bool undefined = false, inexact = false;
};
std::unique_ptr<LaunchObserver> follow_data(const LaunchContext& launch, Colours colours);

}  // namespace attest::device::sim::detect
