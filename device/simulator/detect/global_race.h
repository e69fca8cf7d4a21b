// SPDX-License-Identifier: MIT
//
// Two waves that touch the same byte of memory in one launch, one of them writing, with nothing that orders
// them.
//
// Waves of one workgroup are ordered by s_barrier, as in LDS (detect/lds_race.h). Workgroups of a launch are
// ordered by nothing: on a GPU they run at once or one after the other, in any order. So a byte that one
// workgroup writes and another reads or writes is a race, unless the kernel orders them itself. It does so
// through atomics, or loads and stores with sc1 (which is what atomic loads and stores of agent scope compile
// to; LLVM, "User Guide for AMDGPU Backend", Memory Model gfx942). Each such access to an address is taken as
// release and acquire at once: a workgroup knows what those knew that used the address before it. That is
// generous (a missing fence or a wrong scope passes), so what is reported is certain.
//
// Atomics do not race with each other. Writers that write what is already there are advisory: a value that
// all workgroups agree on.
#pragma once

#include <memory>

#include "device/simulator/detect/session.h"

namespace attest::device::sim::detect {

/// Where it keeps what it remembers; emptied after each launch.
std::shared_ptr<GlobalPages> make_global_pages();
std::unique_ptr<LaunchObserver> check_global(const LaunchContext& launch, GlobalPages& pages);

}  // namespace attest::device::sim::detect
