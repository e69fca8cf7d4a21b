// SPDX-License-Identifier: MIT
//
// Two waves of a workgroup that touch the same byte of LDS with no barrier between them, one of them writing.
//
// The only thing that orders the waves of a workgroup is s_barrier, so time in LDS is a count of barriers,
// the epoch. Each dword remembers who wrote and who read it last and in which epoch; a second wave in the
// same epoch is a race, whatever order this run happened to take. One wave's own LDS instructions are served
// in order and never race. Two atomics do not race. Writers that write what is already there are advisory.
//
// LDS-DMA (a load from memory straight into LDS) takes another path into LDS than DS instructions and counts
// in vmcnt. Its bytes are nobody's from issue until the issuing wave's s_waitcnt vmcnt says that it is done:
// anyone who touches them meanwhile, the wave itself included, does so too early; other waves also need a
// barrier behind that wait.
//
// An s_barrier waits for no counter. A DS instruction that entered the barrier without s_waitcnt lgkmcnt(0)
// is not ordered with other waves' behind it by any rule in the manual, although one LDS serves the
// workgroup: advisory.
//
// Not seen: of two waves that write different bytes of one dword in one epoch, the first is forgotten.
#pragma once

#include <memory>

#include "device/simulator/detect/session.h"

namespace attest::device::sim::detect {

/// `races`: Detector::lds_race; `dma`: Detector::lds_dma. They share what they remember.
std::unique_ptr<LaunchObserver> check_lds(const LaunchContext& launch, bool races, bool dma);

}  // namespace attest::device::sim::detect
