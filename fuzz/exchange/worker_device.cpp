// SPDX-License-Identifier: MIT
#include "fuzz/exchange/worker_device.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "device/contracts/registry.h"
#include "fuzz/exchange/description.h"
#include "fuzz/exchange/scratch_folder.h"
#include "fuzz/exchange/settled_by_worker.h"

namespace attest::fuzz::exchange {
namespace {

using oracle::VerdictKind;

[[noreturn]] void settle(VerdictKind kind, std::string stage, std::string diagnosis, std::string detail) {
  oracle::Verdict verdict;
  verdict.kind = kind;
  verdict.stage = std::move(stage);
  verdict.diagnosis = std::move(diagnosis);
  verdict.detail = std::move(detail);
  throw SettledByWorker(std::move(verdict));
}

class WorkerDevice final : public device::Device {
 public:
  explicit WorkerDevice(const std::string& command) : process_(command) {}

  [[nodiscard]] std::string name() const override { return worker_device; }
  [[nodiscard]] std::string arch() const override { return worker_arch; }
  void choose_detectors(const std::string& list) override {
    if (!list.empty() && list != "none")
      throw device::DeviceError(fmt::format("detectors ({}) are the simulator's, not a worker's", list));
  }
  void choose_schedule(const std::string& schedule) override {
    if (!schedule.empty() && schedule != "plain")
      throw device::DeviceError(fmt::format("the schedule ({}) is the simulator's to choose", schedule));
  }
  device::Observations take_observations() override { return {}; }

  const Hello& hello() { return process_.hello(); }

  /// Throws SettledByWorker.
  cases::Outputs run(const std::string& op, const Description& d) {
    const std::string inputs = folder_.file("in.safetensors"), outputs = folder_.file("out.safetensors");
    write_safetensors(inputs, d.metadata, d.inputs);
    std::filesystem::remove(outputs);
    const WorkerProcess::Answer answer = process_.run(op, inputs, outputs);
    using Kind = WorkerProcess::Answer::Kind;
    switch (answer.kind) {
      case Kind::ok:
        break;
      case Kind::unsupported:
        settle(VerdictKind::unsupported, "", "", answer.detail);
      case Kind::error:
      case Kind::died:
        settle(VerdictKind::crash, "worker", answer.diagnosis, answer.detail);
      case Kind::nonsense:
        settle(VerdictKind::harness_error, "worker", "the worker does not keep to the protocol",
               "instead of an answer it wrote: " + answer.detail);
    }
    try {
      return outputs_of(d, SafetensorsFile(outputs));
    } catch (const UsageError& error) {
      std::string detail = error.what();
      if (detail.starts_with(outputs)) detail = "its outputs" + detail.substr(outputs.size());
      settle(VerdictKind::fail, "output", "outputs are not those that the case asks for", detail);
    }
  }

 private:
  ScratchFolder folder_;
  WorkerProcess process_;
};

class WorkerKernel final : public device::Kernel {
 public:
  WorkerKernel(const Hello& hello, Hello::Op op)
      : name_(fmt::format("worker:{}/{}", hello.name, op.op)), about_(hello.about), op_(std::move(op)) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string op() const override { return op_.op; }
  [[nodiscard]] std::string arch() const override { return worker_arch; }
  [[nodiscard]] std::string contract() const override { return "worker"; }
  [[nodiscard]] std::string fault() const override { return {}; }
  [[nodiscard]] std::string imitates() const override { return {}; }
  [[nodiscard]] std::string precision() const override { return op_.precision; }
  [[nodiscard]] std::string supports() const override { return about_; }
  [[nodiscard]] std::optional<std::string> refuses(const cases::Case& c) const override {
    if (op_.op != cases::op_name(c.problem))
      return fmt::format("it does {}, the case is one of {}", op_.op, cases::op_name(c.problem));
    return why_not_exchanged(c.problem);
  }
  [[nodiscard]] std::optional<cases::MlaDecodeDomain> domain() const override { return op_.domain; }

  [[nodiscard]] device::Outcome run(device::Device& device, const cases::Case& c,
                                    const cases::Inputs& inputs) const override {
    const Description d = describe(c, inputs);
    std::uint64_t bytes = 0;
    for (const TensorSource& t : d.inputs) bytes += t.sparse != nullptr ? t.sparse->size : t.bytes.size();
    if (bytes > op_.most_input_bytes)
      settle(VerdictKind::unsupported, "", "",
             fmt::format("its inputs have {} bytes; it takes {}", bytes, op_.most_input_bytes));
    device::Outcome outcome;
    outcome.outputs = dynamic_cast<WorkerDevice&>(device).run(op_.op, d);
    return outcome;
  }

 private:
  std::string name_, about_;
  Hello::Op op_;
};

void add_kernels(const Hello& hello) {
  std::vector<std::unique_ptr<const device::Kernel>> kernels;
  for (const Hello::Op& op : hello.ops) kernels.push_back(std::make_unique<WorkerKernel>(hello, op));
  device::add_kernels(std::move(kernels));
}

}  // namespace

Hello add_worker_kernels(const std::string& command) {
  ::setenv(worker_variable, command.c_str(), 1);
  WorkerProcess process(command);
  const Hello hello = process.hello();
  add_kernels(hello);
  return hello;
}

std::unique_ptr<device::Device> open_worker_device() {
  const char* command = std::getenv(worker_variable);
  if (command == nullptr || *command == '\0') throw device::DeviceError("no --worker was given");
  auto device = std::make_unique<WorkerDevice>(command);
  add_kernels(device->hello());
  return device;
}

}  // namespace attest::fuzz::exchange
