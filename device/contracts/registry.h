// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <vector>

#include "device/kernel.h"

namespace attest::device {

/// Adds kernels that no contract of this build finds, to be listed by kernels() from now on. For the start of
/// a program, before kernels() is in use. Throws std::logic_error when a name is taken.
void add_kernels(std::vector<std::unique_ptr<const Kernel>> more);

}  // namespace attest::device
