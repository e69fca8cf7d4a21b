// SPDX-License-Identifier: MIT
#include "device/hip/device.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "device/hip/code_object.h"

namespace attest::device {

std::unique_ptr<Device> open_device(std::string_view kind, int ordinal) {
  if (kind == "sim") return std::make_unique<hip::HipDevice>(hip::simulator_api(), "sim", ordinal);
  if (kind == "hip") return std::make_unique<hip::HipDevice>(hip::rocm_api(), "hip", ordinal);
  throw DeviceError(fmt::format("no device is called \"{}\"; there are sim and hip", kind));
}

namespace hip {
namespace {

struct Reading {
  std::string_view kind;
  Status status;
  std::string_view diagnosis;
};

// The kinds of the simulator's reports. What it cannot execute is its own shortcoming, not the kernel's.
constexpr std::array<Reading, 11> readings{{
    {"memory_read", Status::crash, "memory fault: read outside every buffer"},
    {"memory_write", Status::crash, "memory fault: write outside every buffer"},
    {"misaligned", Status::crash, "memory fault: misaligned access"},
    {"illegal_instruction", Status::crash, "illegal instruction"},
    {"register_range", Status::crash, "register outside the kernel's allocation"},
    {"bad_jump", Status::crash, "jump outside the code"},
    {"trap", Status::crash, "trap"},
    {"launch", Status::crash, "launch failure"},
    {"instruction_budget", Status::timeout, "runaway kernel"},
    {"barrier_deadlock", Status::timeout, "barrier deadlock"},
    {"unsupported", Status::harness_error, "instruction that the simulator does not execute"},
}};

}  // namespace

LaunchReport read_fault_report(const std::string& json, const std::string& error) {
  LaunchReport report;
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_object()) {
    report.status = Status::crash;
    report.diagnosis = "launch failure: " + error;
    report.detail = error;
    return report;
  }
  // Numbers that stand for a place are printed as llvm-objdump prints them; -1 is "none".
  const auto text = [&](const char* key, bool hexadecimal = false) {
    const auto field = parsed.find(key);
    if (field == parsed.end() || (field->is_number_integer() && *field == -1)) return std::string();
    if (field->is_string()) return field->get<std::string>();
    if (hexadecimal && field->is_number_integer()) return fmt::format("{:#x}", field->get<std::uint64_t>());
    return field->dump();
  };
  const std::string kind = text("kind");
  report.status = Status::crash;
  report.diagnosis = kind;
  for (const Reading& reading : readings) {
    if (reading.kind != kind) continue;
    report.status = reading.status;
    report.diagnosis = reading.diagnosis;
  }
  report.detail = text("message");
  const auto add = [&](const char* label, const std::string& value) {
    if (!value.empty()) report.detail += label + value;
  };
  add("; in ", text("kernel"));
  add(" at pc ", text("pc", true));
  add(": ", text("disassembly"));
  add(", workgroup ", text("workgroup"));
  add(", wave ", text("wave"));
  add(", lane ", text("lane"));
  return report;
}

Observations read_findings(const std::string& json) {
  Observations seen;
  if (json.empty()) return seen;
  try {
    const auto findings = nlohmann::json::parse(json);
    for (const auto& h : findings.at("hazards")) {
      seen.hazards.push_back({.hard = h.at("severity") == "hard",
                              .detector = h.at("detector"),
                              .signature = h.at("signature"),
                              .line = h.at("line"),
                              .json = h.dump()});
    }
    for (const auto& row : findings.at("fidelity")) {
      seen.ledger.push_back({.op = row.at("op"),
                             .count = row.at("count"),
                             .exactness = row.at("exactness"),
                             .ulp = row.value("ulp", 0.0),
                             .reason = row.value("reason", "")});
    }
    const auto& clipped = findings.at("clipped");
    seen.clipped_loads = clipped.at("loads");
    seen.clipped_stores = clipped.at("stores");
    seen.clipped_atomics = clipped.at("atomics");
  } catch (const nlohmann::json::exception& error) {
    throw DeviceError(fmt::format("the simulator's findings cannot be read: {}", error.what()));
  }
  return seen;
}

HipDevice::HipDevice(const Api& api, std::string kind, int ordinal)
    : api_(api), kind_(std::move(kind)), ordinal_(ordinal) {
  // hipInit's own error is less telling than the count's: on a machine without a GPU it is
  // hipErrorInvalidDevice.
  api_.init(0);
  int count = 0;
  const Error error = api_.get_device_count(&count);
  if (error != 0 || count <= 0) {
    throw DeviceUnavailable(fmt::format("{}: {} loaded, but it reports no device ({})", kind_, api_.library,
                                        error != 0 ? describe(api_, error) : "a count of 0"));
  }
  if (ordinal < 0 || ordinal >= count) {
    throw DeviceUnavailable(fmt::format("{}: device {} asked for, but there {} {}", kind_, ordinal,
                                        count == 1 ? "is only" : "are", count));
  }
  // Faults come back as reports; nobody else needs to be told.
  if (api_.sim_set_report != nullptr) api_.sim_set_report("");
  try {
    make_current();
    arch_ = architecture_of(api_, ordinal);
  } catch (const CallFailed& failure) {
    throw DeviceUnavailable(
        fmt::format("{}: device {} does not answer ({})", kind_, ordinal, failure.what()));
  }
}

HipDevice::~HipDevice() {
  api_.set_device(ordinal_);
  for (const auto& [file, module] : modules_) api_.module_unload(module);
}

void HipDevice::choose_detectors(const std::string& list) {
  if (!detects_ && (list.empty() || list == "none")) return;
  make_current();
  if (api_.sim_set_detectors == nullptr)
    throw DeviceError(fmt::format("{}: detectors ({}) are the simulator's, use --device sim", kind_, list));
  if (api_.sim_set_detectors(list.c_str()) != 0) {
    const auto report = nlohmann::json::parse(api_.sim_last_report(), nullptr, false);
    throw DeviceError(report.is_object() ? report.value("message", "no such detector") : "no such detector");
  }
  detects_ = !list.empty() && list != "none";
}

void HipDevice::choose_schedule(const std::string& word) {
  const std::string schedule = word == "plain" ? "" : word;
  if (schedule == schedule_) return;
  make_current();
  if (api_.sim_set_schedule == nullptr)
    throw DeviceError(
        fmt::format("{}: a schedule ({}) is the simulator's to choose, use --device sim", kind_, schedule));
  if (api_.sim_set_schedule(schedule.c_str()) != 0) {
    const auto report = nlohmann::json::parse(api_.sim_last_report(), nullptr, false);
    throw DeviceError(report.is_object() ? report.value("message", "no schedule") : "no schedule");
  }
  schedule_ = schedule;
}

Observations HipDevice::take_observations() {
  if (!detects_) return {};
  make_current();
  return read_findings(api_.sim_findings());
}

std::string HipDevice::runtime() const {
  const std::string library = api_.is_simulator() ? "simulator" : api_.library;
  int version = 0;  // major * 10^7 + minor * 10^5 + patch, hip_version.h
  if (api_.runtime_get_version == nullptr || api_.runtime_get_version(&version) != 0 || version <= 0)
    return library + ", HIP of unknown version";
  return fmt::format("{}, HIP {}.{}.{}", library, version / 10'000'000, version / 100'000 % 100,
                     version % 100'000);
}

std::map<std::string, std::string> HipDevice::take_branches() {
  if (api_.sim_branches == nullptr) return {};
  make_current();
  return nlohmann::json::parse(api_.sim_branches()).get<std::map<std::string, std::string>>();
}

std::string HipDevice::follow(const BufferBytes& bytes, std::uint32_t window,
                              const std::function<void()>& run) {
  if (api_.sim_follow == nullptr || api_.sim_follow_again == nullptr || api_.sim_followed == nullptr)
    throw DeviceError(
        fmt::format("{}: only the simulator sees how a value comes about, use --device sim", kind_));
  make_current();
  const auto stop = [this](const char* name) { api_.sim_follow(name, 0, 0, 0, 0); };
  const std::unique_ptr<const char, decltype(stop)> asked("", stop);
  api_.sim_follow(bytes.buffer.c_str(), bytes.offset, bytes.bytes, bytes.before, window);
  do {
    run();
    make_current();
  } while (api_.sim_follow_again() != 0);
  return api_.sim_followed();
}

void HipDevice::make_current() {
  check(api_, api_.set_device(ordinal_), "hipSetDevice");
}

void* HipDevice::allocate(std::size_t bytes, const std::string& label) {
  make_current();
  void* pointer = nullptr;
  check(api_, api_.malloc(&pointer, bytes), fmt::format("hipMalloc ({}, {} bytes)", label, bytes));
  return pointer;
}

void HipDevice::release(void* pointer) noexcept {
  api_.free(pointer);
}

void HipDevice::copy_to_device(void* to, std::span<const std::byte> from, const std::string& label) {
  if (from.empty()) return;
  check(api_, api_.memcpy(to, from.data(), from.size(), static_cast<int>(CopyKind::host_to_device)),
        fmt::format("hipMemcpy (to {}, {} bytes)", label, from.size()));
}

void HipDevice::copy_from_device(std::span<std::byte> to, const void* from, const std::string& label) {
  if (to.empty()) return;
  check(api_, api_.memcpy(to.data(), from, to.size(), static_cast<int>(CopyKind::device_to_host)),
        fmt::format("hipMemcpy (from {}, {} bytes)", label, to.size()));
}

Function HipDevice::function(const std::filesystem::path& file, const std::string& kernel) {
  const auto key = std::make_pair(file, kernel);
  if (const auto known = functions_.find(key); known != functions_.end()) return known->second;
  make_current();
  auto loaded = modules_.find(file);
  if (loaded == modules_.end()) {
    const std::vector<std::byte> bytes = read_code_object(file, arch_);
    Module module = nullptr;
    if (const Error error = api_.module_load_data(&module, bytes.data()); error != 0) {
      api_.get_last_error();
      throw DeviceError(
          fmt::format("{}: {} does not load it ({})", file.string(), kind_, describe(api_, error)));
    }
    loaded = modules_.emplace(file, module).first;
  }
  Function function = nullptr;
  if (const Error error = api_.module_get_function(&function, loaded->second, kernel.c_str()); error != 0) {
    api_.get_last_error();
    throw DeviceError(fmt::format("{}: has no kernel {} ({})", file.string(), kernel, describe(api_, error)));
  }
  functions_.emplace(key, function);
  return function;
}

LaunchReport HipDevice::launch(Function function, const Geometry& geometry,
                               std::span<const std::byte> arguments, std::uint64_t budget) {
  make_current();
  if (api_.sim_set_budget != nullptr) api_.sim_set_budget(budget);
  std::vector<std::byte> block(arguments.begin(), arguments.end());
  std::size_t size = block.size();
  std::array<void*, 5> extra{launch_param_buffer_pointer, block.data(), launch_param_buffer_size, &size,
                             launch_param_end};
  const auto begin = std::chrono::steady_clock::now();
  Error error = api_.module_launch_kernel(function, geometry.grid[0], geometry.grid[1], geometry.grid[2],
                                          geometry.threads, 1, 1, 0, nullptr, nullptr, extra.data());
  // Both may report a fault, and the second then has to be asked so that it does not report it to a later
  // launch.
  const Error waiting = api_.device_synchronize();
  if (error == 0) error = waiting;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;

  LaunchReport report;
  if (error != 0) {
    api_.get_last_error();
    report = read_fault_report(api_.sim_last_report != nullptr ? api_.sim_last_report() : "",
                               describe(api_, error));
  }
  report.seconds = elapsed.count();
  if (api_.sim_instructions != nullptr) report.wave_instructions = api_.sim_instructions();
  return report;
}

HipDevice& hip_device(Device& device) {
  auto* found = dynamic_cast<HipDevice*>(&device);
  if (found == nullptr) throw DeviceError(device.name() + " is not a HIP device");
  return *found;
}

}  // namespace hip
}  // namespace attest::device
