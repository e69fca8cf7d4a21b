// SPDX-License-Identifier: MIT
//
// Launches, from whichever HIP call they come.
#pragma once

#include <hip/hip_runtime_api.h>

#include <string>

#include "device/simulator/hip_api/runtime.h"

namespace attest::device::sim::hip {

struct LaunchShape {
  dim3 blocks, threads;
  std::size_t dynamic_lds_bytes = 0;
  bool cooperative = false;
};

/// Runs the kernel to its end. Arguments as hipModuleLaunchKernel takes them. When the kernel is stopped, the
/// error is returned here and by the next synchronisation, so that programs which look in either place find
/// it, and the fault goes where the device's `report` says.
hipError_t launch(Function& function, const LaunchShape& shape, void** parameters, void** extra);

/// Bytes from a pointer the caller vouches for, as far as they are readable: a header that claims more than
/// there is must not bring the process down.
std::vector<std::byte> copy_readable(const void* from, std::size_t bytes);

/// The code object or bundle at `image`, whose size its header says. Empty: too large.
std::vector<std::byte> image_at(const void* image);

/// The HIP code for a code object that could not be used; notes the reason for attest_sim_last_report.
hipError_t refuse_image(SimDevice& device, const CodeObjectError& error);

/// The kernel behind the host stub that <<<...>>> names; nullptr when there is none (hip_api/program.cpp).
const LoadedKernel* kernel_of_stub(const void* stub);

}  // namespace attest::device::sim::hip
