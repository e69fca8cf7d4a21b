// SPDX-License-Identifier: MIT
#include "device/hip/api.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "device/hip/installation.h"
#include "device/kernel.h"

namespace attest::device::hip {
namespace {

template <typename F>
void look_up(void* library, const char* symbol, F& function) {
  // POSIX: the pointer dlsym gives for a function converts to a function pointer.
  function = reinterpret_cast<F>(dlsym(library, symbol));
}

/// Fills the table; the name of the first symbol that is missing.
std::optional<std::string> fill(void* library, Api& api) {
  std::optional<std::string> missing;
  const auto required = [&](const char* symbol, auto& function) {
    look_up(library, symbol, function);
    if (function == nullptr && !missing) missing = symbol;
  };
  required("hipInit", api.init);
  required("hipGetDeviceCount", api.get_device_count);
  required("hipSetDevice", api.set_device);
  required("hipDeviceGetName", api.device_get_name);
  required("hipMalloc", api.malloc);
  required("hipFree", api.free);
  required("hipMemcpy", api.memcpy);
  required("hipModuleLoadData", api.module_load_data);
  required("hipModuleUnload", api.module_unload);
  required("hipModuleGetFunction", api.module_get_function);
  required("hipModuleLaunchKernel", api.module_launch_kernel);
  required("hipDeviceSynchronize", api.device_synchronize);
  required("hipGetErrorName", api.get_error_name);
  required("hipGetErrorString", api.get_error_string);
  required("hipGetLastError", api.get_last_error);
  look_up(library, "hipRuntimeGetVersion", api.runtime_get_version);
  look_up(library, "hipGetDevicePropertiesR0600", api.get_device_properties);
  if (api.get_device_properties == nullptr) required("hipGetDeviceProperties", api.get_device_properties);

  look_up(library, "attest_sim_last_report", api.sim_last_report);
  look_up(library, "attest_sim_instructions", api.sim_instructions);
  look_up(library, "attest_sim_set_budget", api.sim_set_budget);
  look_up(library, "attest_sim_name_range", api.sim_name_range);
  look_up(library, "attest_sim_set_schedule", api.sim_set_schedule);
  look_up(library, "attest_sim_set_report", api.sim_set_report);
  look_up(library, "attest_sim_set_detectors", api.sim_set_detectors);
  look_up(library, "attest_sim_findings", api.sim_findings);
  look_up(library, "attest_sim_branches", api.sim_branches);
  look_up(library, "attest_sim_mark_unwritten", api.sim_mark_unwritten);
  look_up(library, "attest_sim_follow", api.sim_follow);
  look_up(library, "attest_sim_follow_again", api.sim_follow_again);
  look_up(library, "attest_sim_followed", api.sim_followed);
  return missing;
}

Api load_rocm() {
  // Names first, so that the loader's configuration decides. A simulator loaded earlier in this process
  // answers to the same name; then only a full path reaches the real library.
  constexpr std::array<std::string_view, 4> names{"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                                                  "libamdhip64.so.5"};
  std::vector<std::string> candidates(names.begin(), names.end());
  std::vector<std::string> folders{"/opt/rocm/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"};
  if (const char* rocm = std::getenv("ROCM_PATH"))
    folders.insert(folders.begin(), std::string(rocm) + "/lib");
  for (const std::string& folder : folders) {
    for (const std::string_view name : names) candidates.push_back(fmt::format("{}/{}", folder, name));
  }
  std::string found_but;
  for (const std::string& candidate : candidates) {
    void* library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    Api api;
    api.library = std::filesystem::path(candidate).filename().string();
    const auto missing = fill(library, api);
    if (api.is_simulator()) {
      found_but = fmt::format("; {} is the simulator, use --device sim for it", candidate);
    } else if (missing) {
      found_but = fmt::format("; {} has no symbol {}", candidate, *missing);
    } else {
      return api;
    }
  }
  throw DeviceUnavailable(
      fmt::format("hip: no ROCm runtime here (tried {}){}", fmt::join(names, ", "), found_but));
}

}  // namespace

Api load_simulator(const std::filesystem::path& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw DeviceUnavailable(
        fmt::format("sim: {}; build the target attest_hip_simulator or set ATTEST_SIMULATOR", dlerror()));
  }
  Api api;
  api.library = file.filename().string();
  if (const auto missing = fill(library, api)) {
    throw DeviceUnavailable(fmt::format("sim: {} has no symbol {}", file.string(), *missing));
  }
  if (!api.is_simulator()) {
    throw DeviceUnavailable(fmt::format("sim: {} is a HIP library, but not the simulator", file.string()));
  }
  return api;
}

// A failure to load is not remembered: a static whose initialisation throws is initialised again at the next
// call.
const Api& simulator_api() {
  static const Api api = load_simulator(simulator_library());
  return api;
}

const Api& rocm_api() {
  static const Api api = load_rocm();
  return api;
}

std::string architecture_of(const Api& api, int ordinal) {
  constexpr std::size_t name_bytes = 256;
  std::vector<char> properties(16384, '\0');  // the largest hipDeviceProp_t so far has 1472 bytes
  check(api, api.get_device_properties(properties.data(), ordinal), "hipGetDeviceProperties");
  const std::string_view text(properties.data() + name_bytes, properties.size() - name_bytes);
  const std::size_t begin = text.find("gfx");
  if (begin == std::string_view::npos) return "unknown";
  return std::string(text.substr(begin, text.find_first_of(std::string_view(":\0", 2), begin) - begin));
}

std::string describe(const Api& api, Error error) {
  const char* name = api.get_error_name(error);
  return name != nullptr ? name : fmt::format("hipError {}", error);
}

void check(const Api& api, Error error, const std::string& what) {
  if (error == 0) return;
  api.get_last_error();  // so that it does not show up at an unrelated call
  throw CallFailed(fmt::format("{}: {}", what, describe(api, error)));
}

}  // namespace attest::device::hip
