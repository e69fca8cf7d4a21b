// SPDX-License-Identifier: MIT
//
// Code objects, and what the simulator offers beyond HIP.
#include <fmt/format.h>
#include <hip/hip_runtime_api.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "device/simulator/hip_api/export.h"
#include "device/simulator/hip_api/launch.h"
#include "device/simulator/hip_api/runtime.h"
#include "device/simulator/hip_api/simulator.h"

using namespace attest::device::sim;
using namespace attest::device::sim::hip;

namespace {

constexpr std::size_t largest_image = std::size_t{4} << 30;

hipError_t load(hipModule_t* module, std::vector<std::byte> bytes) {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  try {
    *module = Runtime::get().add(std::make_unique<Module>(d, std::move(bytes)));
    return hipSuccess;
  } catch (const CodeObjectError& error) {
    return refuse_image(d, error);
  }
}

}  // namespace

ATTEST_HIP hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  return api([&] {
    if (module == nullptr || image == nullptr) return hipErrorInvalidValue;
    *module = nullptr;
    std::vector<std::byte> bytes = image_at(image);
    return bytes.empty() ? hipErrorInvalidImage : load(module, std::move(bytes));
  });
}

ATTEST_HIP hipError_t hipModuleLoadDataEx(hipModule_t* module, const void* image, unsigned int, hipJitOption*,
                                          void**) {
  return hipModuleLoadData(module, image);
}

ATTEST_HIP hipError_t hipModuleLoad(hipModule_t* module, const char* path) {
  return api([&] {
    if (module == nullptr || path == nullptr) return hipErrorInvalidValue;
    *module = nullptr;
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) return hipErrorFileNotFound;
    const std::streamoff size = file.tellg();
    if (size < 0 || static_cast<std::size_t>(size) > largest_image) return hipErrorInvalidImage;
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    file.seekg(0);
    if (!file.read(reinterpret_cast<char*>(bytes.data()), size)) return hipErrorFileNotFound;
    return load(module, std::move(bytes));
  });
}

ATTEST_HIP hipError_t hipModuleUnload(hipModule_t module) {
  return api([&] { return Runtime::get().remove(module) ? hipSuccess : hipErrorInvalidHandle; });
}

ATTEST_HIP hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module,
                                           const char* kernel_name) {
  return api([&] {
    if (function == nullptr || kernel_name == nullptr) return hipErrorInvalidValue;
    *function = nullptr;
    Module* found = Runtime::get().find(module);
    if (found == nullptr) return hipErrorInvalidHandle;
    const std::scoped_lock lock(found->device.mutex);
    Function* f = found->function(kernel_name);
    if (f == nullptr) return hipErrorNotFound;
    Runtime::get().publish(f);
    *function = reinterpret_cast<hipFunction_t>(f);
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipModuleGetGlobal(hipDeviceptr_t* pointer, std::size_t* bytes, hipModule_t module,
                                         const char* variable_name) {
  return api([&] {
    if (variable_name == nullptr) return hipErrorInvalidValue;
    Module* found = Runtime::get().find(module);
    if (found == nullptr) return hipErrorInvalidHandle;
    for (const GlobalVariable& v : found->code.object().variables) {
      if (v.name != variable_name) continue;
      if (pointer != nullptr) *pointer = reinterpret_cast<hipDeviceptr_t>(found->code.base() + v.address);
      if (bytes != nullptr) *bytes = v.bytes;
      return hipSuccess;
    }
    return hipErrorNotFound;
  });
}

ATTEST_HIP hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                            unsigned int block_z, unsigned int shared_bytes,
                                            hipStream_t stream, void** parameters, void** extra) {
  return api([&] {
    Runtime& runtime = Runtime::get();
    Function* f = runtime.find(function);
    if (f == nullptr) return hipErrorInvalidHandle;
    if (!runtime.is_stream(stream)) return hipErrorInvalidHandle;
    return launch(*f, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes}, parameters,
                  extra);
  });
}

ATTEST_HIP const char* attest_sim_last_report() {
  static thread_local std::string copy;
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  copy = d.last_report;
  return copy.c_str();
}

ATTEST_HIP std::uint64_t attest_sim_instructions() {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  return d.instructions;
}

ATTEST_HIP void attest_sim_set_budget(std::uint64_t instructions) {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  d.settings.instruction_budget = instructions;
}

ATTEST_HIP void attest_sim_name_range(void* pointer, std::size_t bytes, const char* name) {
  SimDevice* owner = Runtime::get().owner(pointer);
  if (owner == nullptr || name == nullptr) return;
  const std::scoped_lock lock(owner->mutex);
  owner->memory.name_range(reinterpret_cast<std::uint64_t>(pointer), bytes, name);
}

ATTEST_HIP int attest_sim_set_schedule(const char* text) {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  const auto schedule = detect::Schedule::parse(text != nullptr ? text : "");
  if (!schedule) {
    d.last_report =
        nlohmann::json{
            {"kind", "schedule"},
            {"message", fmt::format("{} is no schedule; one is {}", text, detect::Schedule::known())}}
            .dump();
    return 1;
  }
  d.choose(*schedule);
  return 0;
}

ATTEST_HIP int attest_sim_set_detectors(const char* list) {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  const std::string_view text = list != nullptr ? list : "";
  const auto set = detect::DetectorSet::parse(text);
  if (!set) {
    d.last_report = nlohmann::json{{"kind", "detectors"},
                                   {"message", fmt::format("no detector is called {}; there are {}",
                                                           detect::DetectorSet::unknown(text),
                                                           detect::DetectorSet::known())}}
                        .dump();
    return 1;
  }
  d.print_hazards = false;
  d.choose(*set);
  d.detectors.take();
  return 0;
}

ATTEST_HIP const char* attest_sim_findings() {
  static thread_local std::string copy;
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  copy = d.settings.watch != nullptr ? detect::to_json(d.detectors.take()).dump() : "";
  return copy.c_str();
}

ATTEST_HIP const char* attest_sim_branches() {
  static thread_local std::string copy;
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  std::map<std::string, std::string> by_name;
  for (const auto& [program, name] : d.launched) {
    std::string& known = by_name[name];
    const std::string ways = program->take_branches();
    known.resize(std::max(known.size(), ways.size()), '0');
    for (std::size_t n = 0; n < ways.size(); ++n) known[n] = static_cast<char>(known[n] | ways[n]);
  }
  d.launched.clear();
  copy = nlohmann::json(by_name).dump();
  return copy.c_str();
}

ATTEST_HIP void attest_sim_mark_unwritten(void* pointer, std::size_t bytes) {
  SimDevice* owner = Runtime::get().owner(pointer);
  if (owner == nullptr) return;
  const std::scoped_lock lock(owner->mutex);
  owner->memory.mark(reinterpret_cast<std::uint64_t>(pointer), bytes, false);
}

ATTEST_HIP void attest_sim_set_report(const char* where) {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  d.report = where != nullptr ? where : "";
}

ATTEST_HIP void attest_sim_set_threads(std::uint32_t threads) {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  d.settings.threads = threads;
}
