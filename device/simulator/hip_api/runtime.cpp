// SPDX-License-Identifier: MIT
#include "device/simulator/hip_api/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device/simulator/matrix/model.h"

namespace attest::device::sim::hip {
namespace {

thread_local int thread_device = 0;
thread_local hipError_t thread_error = hipSuccess;

std::uint64_t from_environment(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 0);
  return *end == '\0' ? value : otherwise;
}

}  // namespace

Function* Module::function(const std::string& name) {
  if (const auto known = functions_.find(name); known != functions_.end()) return known->second.get();
  const LoadedKernel* kernel = code.kernel(name);
  if (kernel == nullptr) return nullptr;
  return functions_.emplace(name, std::make_unique<Function>(Function{this, kernel})).first->second.get();
}

void SimDevice::choose(const detect::Schedule& schedule) {
  settings.seed = schedule.seed;
  settings.quantum = schedule.quantum;
  settings.skew = schedule.skew;
  detectors.deliver(schedule.delivery);
  settings.watch = detectors.wanted() ? &detectors : nullptr;
}

void SimDevice::tell(const std::string& line) const {
  if (report.empty() || report == "none") return;
  std::FILE* file = report == "stderr" ? stderr : std::fopen(report.c_str(), "a");
  if (file == nullptr) file = stderr;
  fmt::print(file, "attest simulator: {}\n", line);
  if (file != stderr) std::fclose(file);
}

void SimDevice::choose(detect::DetectorSet set) {
  detectors.choose(set);
  settings.watch = detectors.wanted() ? &detectors : nullptr;
  memory.keep_notes(set.has(detect::Detector::uninitialised) || set.has(detect::Detector::fidelity));
}

Runtime::Runtime() {
  const std::uint64_t count = std::clamp<std::uint64_t>(from_environment("ATTEST_SIM_DEVICES", 8), 1, 16);
  Settings settings;
  settings.threads = static_cast<std::uint32_t>(from_environment("ATTEST_SIM_THREADS", 0));
  settings.instruction_budget = from_environment("ATTEST_SIM_BUDGET", settings.instruction_budget);
  const char* order = std::getenv("ATTEST_SIM_SCHEDULE");
  const auto schedule = detect::Schedule::parse(order != nullptr ? order : "");
  if (!schedule) {
    fmt::print(stderr, "ATTEST_SIM_SCHEDULE: {} is no schedule; one is {}\n", order,
               detect::Schedule::known());
    std::exit(2);
  }
  const char* rule = std::getenv("ATTEST_SIM_MFMA");
  if (rule != nullptr && *rule != '\0' && !matrix::sum_rule_named(rule)) {
    fmt::print(stderr, "ATTEST_SIM_MFMA: no rule of sums is called {}; there are renormalised, aligned\n",
               rule);
    std::exit(2);
  }
  const char* list = std::getenv("ATTEST_SIM_DETECT");
  const auto detectors = detect::DetectorSet::parse(list != nullptr ? list : "");
  if (!detectors) {
    fmt::print(stderr, "ATTEST_SIM_DETECT: no detector is called {}; there are {}\n",
               detect::DetectorSet::unknown(list), detect::DetectorSet::known());
    std::exit(2);
  }
  for (std::uint64_t d = 0; d < count; ++d) {
    devices_.push_back(std::make_unique<SimDevice>(static_cast<std::uint32_t>(d)));
    devices_.back()->settings = settings;
    devices_.back()->choose(*schedule);
    if (detectors) devices_.back()->choose(*detectors);
    devices_.back()->print_hazards = true;
    if (const char* report = std::getenv("ATTEST_SIM_REPORT"); report != nullptr)
      devices_.back()->report = report;
  }
}

Runtime& Runtime::get() {
  // Never destroyed: programs free device memory from destructors that run after ours would.
  static Runtime& runtime = *new Runtime;
  return runtime;
}

SimDevice* Runtime::owner(const void* pointer) {
  for (const auto& d : devices_) {
    if (d->memory.owns(reinterpret_cast<std::uint64_t>(pointer))) return d.get();
  }
  return nullptr;
}

hipModule_t Runtime::add(std::unique_ptr<Module> module) {
  const std::scoped_lock lock(mutex_);
  const auto handle = reinterpret_cast<hipModule_t>(module.get());
  modules_.emplace(handle, std::move(module));
  return handle;
}

Module* Runtime::find(hipModule_t handle) {
  const std::scoped_lock lock(mutex_);
  const auto found = modules_.find(handle);
  return found != modules_.end() ? found->second.get() : nullptr;
}

bool Runtime::remove(hipModule_t handle) {
  std::unique_ptr<Module> module;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = modules_.find(handle);
    if (found == modules_.end()) return false;
    module = std::move(found->second);
    modules_.erase(found);
    std::erase_if(functions_,
                  [&](const void* f) { return static_cast<const Function*>(f)->module == module.get(); });
  }
  const std::scoped_lock lock(module->device.mutex);
  module.reset();
  return true;
}

void Runtime::publish(Function* function) {
  const std::scoped_lock lock(mutex_);
  functions_.insert(function);
}

Function* Runtime::find(hipFunction_t handle) {
  const std::scoped_lock lock(mutex_);
  return functions_.contains(handle) ? reinterpret_cast<Function*>(handle) : nullptr;
}

hipStream_t Runtime::create_stream(unsigned int flags, int priority) {
  const std::scoped_lock lock(mutex_);
  auto stream = std::make_unique<Stream>(Stream{flags, priority});
  const auto handle = reinterpret_cast<hipStream_t>(stream.get());
  streams_.emplace(handle, std::move(stream));
  return handle;
}

const Stream* Runtime::find(hipStream_t stream) {
  const std::scoped_lock lock(mutex_);
  const auto found = streams_.find(stream);
  return found != streams_.end() ? found->second.get() : nullptr;
}

bool Runtime::is_stream(hipStream_t stream) {
  if (stream == nullptr || stream == hipStreamPerThread) return true;
  const std::scoped_lock lock(mutex_);
  return streams_.contains(stream);
}

bool Runtime::remove_stream(hipStream_t stream) {
  const std::scoped_lock lock(mutex_);
  return streams_.erase(stream) != 0;
}

int current_device() {
  return thread_device;
}
void set_current_device(int ordinal) {
  thread_device = ordinal;
}
SimDevice& device() {
  return Runtime::get().device(thread_device);
}

hipError_t remember(hipError_t error) {
  if (error != hipSuccess) thread_error = error;
  return error;
}

hipError_t last_error(bool clear) {
  const hipError_t error = thread_error;
  if (clear) {
    thread_error = hipSuccess;
    // What a launch left behind has been seen now.
    SimDevice& d = device();
    const std::scoped_lock lock(d.mutex);
    d.pending = hipSuccess;
  }
  return error;
}

}  // namespace attest::device::sim::hip
