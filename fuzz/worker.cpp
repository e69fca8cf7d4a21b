// SPDX-License-Identifier: MIT
#include "fuzz/worker.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <span>

#include "device/hip/device.h"
#include "device/kernel.h"
#include "fuzz/exchange/capture.h"
#include "fuzz/exchange/worker_device.h"
#include "fuzz/record.h"
#include "fuzz/socket_lines.h"

namespace attest::fuzz {
namespace {

/// Out of memory, the worker goes and the supervisor stays.
void offer_to_the_oom_killer() {
  if (std::FILE* file = std::fopen("/proc/self/oom_score_adj", "we")) {
    std::fputs("1000", file);
    std::fclose(file);
  }
}

/// Bytes to the device and back: after a fault, a GPU may open and yet be of no use. Throws when it is not
/// healthy.
void probe(device::Device& device) {
  auto& hip = device::hip::hip_device(device);
  std::array<std::byte, 4096> sent{}, got{};
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 37 + 11);
  void* memory = hip.allocate(sent.size(), "health probe");
  hip.copy_to_device(memory, sent, "health probe");
  hip.copy_from_device(got, memory, "health probe");
  hip.release(memory);
  if (sent != got) throw device::DeviceUnavailable("the health probe reads back other bytes than it wrote");
}

}  // namespace

Evaluation lost(oracle::VerdictKind kind, std::string diagnosis, std::string detail) {
  Evaluation e;
  e.verdict.kind = kind;
  e.verdict.stage = "worker";
  e.verdict.diagnosis = std::move(diagnosis);
  e.verdict.detail = std::move(detail);
  return e;
}

int serve(int socket, const std::string& device_kind, int ordinal) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  offer_to_the_oom_killer();
  std::unique_ptr<device::Device> device;
  try {
    if (device_kind == exchange::worker_device) {
      device = exchange::open_worker_device();
    } else {
      device = device::open_device(device_kind, ordinal);
      probe(*device);
    }
  } catch (const device::DeviceUnavailable& error) {
    send_line(socket, Json{{"hello", record_schema}, {"error", error.what()}, {"exit", 3}}.dump());
    return 3;
  } catch (const std::exception& error) {
    send_line(socket, Json{{"hello", record_schema}, {"error", error.what()}, {"exit", 2}}.dump());
    return 2;
  }
  Json greeting = {{"hello", record_schema},
                   {"device", {{"kind", device->name()}, {"arch", device->arch()}}}};
  if (device_kind != exchange::worker_device)
    greeting["device"]["runtime"] = device::hip::hip_device(*device).runtime();
  if (!send_line(socket, greeting.dump())) return 4;

  std::string inbox;
  while (const auto line = receive_line(socket, inbox)) {
    Evaluation evaluation;
    try {
      const Json request = Json::parse(*line);
      const auto kernel_name = request.at("kernel").get<std::string>();
      const device::Kernel* kernel = device::find_kernel(kernel_name);
      if (kernel == nullptr) throw std::runtime_error("no kernel " + kernel_name);
      std::optional<cases::Inputs> captured;
      if (request.contains("capture"))
        captured = exchange::read_capture(request.at("capture").get<std::string>()).inputs;
      evaluation = evaluate(*device, *kernel, cases::parse_case(request.at("case").dump()),
                            request.value("detectors", "none"), request.value("schedule", "plain"),
                            captured ? &*captured : nullptr);
      if (device_kind != exchange::worker_device)
        evaluation.branches = device::hip::hip_device(*device).take_branches();
    } catch (const device::DeviceError& error) {
      send_line(socket, Json{{"fatal", error.what()}, {"exit", 2}}.dump());
      return 2;
    } catch (const std::exception& error) {
      evaluation = lost(oracle::VerdictKind::harness_error, "bad request", error.what());
    }
    if (!send_line(socket, to_json(evaluation).dump())) return 4;
  }
  return 0;
}

}  // namespace attest::fuzz
