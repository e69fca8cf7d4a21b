// SPDX-License-Identifier: MIT
#include "fuzz/build_info.h"

#include <fmt/format.h>

#include <CLI/Version.hpp>
#include <Eigen/Core>

namespace attest::fuzz {

Json build_info() {
#if defined(__clang__)
  const std::string compiler = fmt::format("clang {}", __clang_version__);
#else
  const std::string compiler = fmt::format("g++ {}", __VERSION__);
#endif
  return {{"version", ATTEST_VERSION},
          {"compiler", compiler},
          {"eigen", fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)},
          {"nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                        NLOHMANN_JSON_VERSION_PATCH)},
          {"fmt", FMT_VERSION},
          {"cli11", CLI11_VERSION},
          {"kernels", ATTEST_DEVICE_CODE_BY},
          {"kernels_arch", ATTEST_DEVICE_ARCH},
          {"case_schema", cases::schema_version}};
}

}  // namespace attest::fuzz
