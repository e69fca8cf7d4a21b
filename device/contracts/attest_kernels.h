// SPDX-License-Identifier: MIT
//
// The `attest` contract: our own kernels, launched as attest_mla_decode.h says.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "device/kernel.h"

namespace attest::device::contracts {

/// attest/mla_decode and its planted faults, as far as their code objects lie in `directory`.
std::vector<std::unique_ptr<const Kernel>> attest_kernels(const std::filesystem::path& directory);

}  // namespace attest::device::contracts
