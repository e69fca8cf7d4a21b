// SPDX-License-Identifier: MIT
//
// Where this program's companions lie: code objects and the simulator's library. Both are found beside the
// running executable, so that a build tree can be moved and an installation needs no configuration.
//
//   <root>/bin/<executable>
//   <root>/kernels/<name>.co                            or $ATTEST_KERNELS/<name>.co
//   <root>/lib/hip-simulator/libamdhip64.so.5           or $ATTEST_SIMULATOR, the file itself
#pragma once

#include <filesystem>

namespace attest::device::hip {

std::filesystem::path kernel_directory();
std::filesystem::path simulator_library();

}  // namespace attest::device::hip
