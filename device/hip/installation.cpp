// SPDX-License-Identifier: MIT
#include "device/hip/installation.h"

#include <cstdlib>
#include <system_error>

namespace attest::device::hip {
namespace {

std::filesystem::path root() {
  std::error_code error;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path("..") : executable.parent_path().parent_path();
}

std::filesystem::path from_environment(const char* variable, const std::filesystem::path& otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? std::filesystem::path(value) : otherwise;
}

}  // namespace

std::filesystem::path kernel_directory() {
  return from_environment("ATTEST_KERNELS", root() / "kernels");
}

std::filesystem::path simulator_library() {
  return from_environment("ATTEST_SIMULATOR", root() / "lib" / "hip-simulator" / "libamdhip64.so.5");
}

}  // namespace attest::device::hip
