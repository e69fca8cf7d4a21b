// SPDX-License-Identifier: MIT
//
// Kernels that live in another program, as kernels like any other: "worker:<name>/<op>" on the device
// "worker", whose architecture is "external". All that fuzz/ does for a kernel (generation in its domain,
// isolation, shrinking, de-duplication, resume) comes from that.
//
// Kernels are found once per process (device::kernels()). So the supervisor asks the program for its greeting
// before anything else, and so does every worker of the pool; both know the command from the environment.
#pragma once

#include <memory>
#include <string>

#include "device/kernel.h"
#include "fuzz/exchange/worker_process.h"

namespace attest::fuzz::exchange {

inline constexpr const char* worker_device = "worker";
inline constexpr const char* worker_arch = "external";
/// Holds the command; workers inherit it.
inline constexpr const char* worker_variable = "ATTEST_WORKER_COMMAND";

/// Asks the program behind `command` what it offers, adds its kernels to those of this process, and tells the
/// processes that this one starts. The program is ended again. Throws device::DeviceUnavailable,
/// device::DeviceError.
Hello add_worker_kernels(const std::string& command);

/// The device that runs them, for the command of the environment; the program stays. Adds its kernels.
std::unique_ptr<device::Device> open_worker_device();

}  // namespace attest::fuzz::exchange
