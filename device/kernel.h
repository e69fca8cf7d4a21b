// SPDX-License-Identifier: MIT
//
// Kernels and how to run one on a case, the same way on a GPU and on the simulator.
//
//   auto device = open_device("sim", 0);                       // DeviceUnavailable when there is none
//   const Kernel* k = find_kernel("attest/mla_decode");
//   if (auto why = k->refuses(c)) ...                          // unsupported, in words
//   Outcome o = k->run(*device, c, inputs);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cases/case.h"
#include "cases/domain.h"
#include "cases/inputs.h"

namespace attest::device {

/// There is no such device here: what() is one clear line. Exit code 3.
struct DeviceUnavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A code object, option or installation that cannot be used: what() is one line. Exit code 2.
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Status : std::uint8_t {
  ok,
  crash,          ///< memory fault, illegal or unknown instruction, launch failure
  timeout,        ///< instruction budget or deadline
  hazard,         ///< a detector reported
  harness_error,  ///< a HIP call of ours failed where the kernel is not to blame
};

struct Outcome {
  Status status = Status::ok;
  std::string stage;                    ///< which launch: "mla_decode", "split_reduce"
  std::string diagnosis;                ///< short and stable: "memory fault: read outside every buffer"
  std::string detail;                   ///< one line with pc, instruction, wave, lane, address
  cases::Outputs outputs;               ///< when status is ok
  std::uint64_t wave_instructions = 0;  ///< simulator only
  double seconds = 0;                   ///< launches only
};

/// A detector of the simulator reported. Identity is `signature`; device/simulator/detect/report.h has the
/// rest.
struct Hazard {
  bool hard = true;       ///< else advisory: not a finding by itself
  std::string detector;   ///< "uninitialised"
  std::string signature;  ///< kernel symbol, detector, pc pair
  std::string line;       ///< for people
  std::string json;       ///< everything
};

/// One line of the fidelity ledger (device/simulator/exec/fidelity.h).
struct LedgerRow {
  std::string op;
  std::uint64_t count = 0;  ///< wave instructions
  std::string exactness;    ///< "exact", "approximate", "unverified", "not modelled"
  double ulp = 0;           ///< approximate: the bound
  std::string reason;       ///< of anything but exact
};

/// What detectors saw in the launches of a run, besides making them fail.
struct Observations {
  std::vector<Hazard> hazards;                                               ///< worst first
  std::uint64_t clipped_loads = 0, clipped_stores = 0, clipped_atomics = 0;  ///< lanes
  [[nodiscard]] bool empty() const {
    return hazards.empty() && ledger.empty() && clipped_loads + clipped_stores + clipped_atomics == 0;
  }

  std::vector<LedgerRow> ledger;  ///< with the detector "fidelity": least trusted first, then by count
};

/// An open device: a HIP library, one of its devices, and the code objects loaded into it.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual std::string name() const = 0;  ///< "sim" or "hip"
  [[nodiscard]] virtual std::string arch() const = 0;  ///< "gfx942"

  /// Chooses what the simulator looks for from now on: "all", "none", or names separated by commas
  /// (device/simulator/detect/detectors.h). Buffers made before are not looked after. Throws DeviceError: no
  /// such detector, or a device that has none.
  virtual void choose_detectors(const std::string& list) = 0;
  /// The order of events in the launches from now on, "" or "plain" for the plain one
  /// (device/simulator/detect/schedule.h). Throws DeviceError: no schedule, or a device that takes none.
  virtual void choose_schedule(const std::string& schedule) = 0;
  /// What the launches since the last call showed.
  virtual Observations take_observations() = 0;
};

/// @param kind "sim" or "hip"; @param ordinal which of its devices.
std::unique_ptr<Device> open_device(std::string_view kind, int ordinal);

class Kernel {
 public:
  virtual ~Kernel() = default;
  [[nodiscard]] virtual std::string name() const = 0;      ///< "attest/mla_decode+qlen_mask"
  [[nodiscard]] virtual std::string op() const = 0;        ///< "mla_decode"
  [[nodiscard]] virtual std::string arch() const = 0;      ///< "gfx942"
  [[nodiscard]] virtual std::string contract() const = 0;  ///< "attest" or "aiter"
  [[nodiscard]] virtual std::string fault() const = 0;     ///< planted fault, or empty
  [[nodiscard]] virtual std::string imitates() const = 0;  ///< link to the public report, or empty
  /// Only for who names it: no part of "all kernels" of an op or a contract. So are kernels with a fault.
  [[nodiscard]] virtual bool by_hand() const { return false; }
  [[nodiscard]] virtual std::string precision() const = 0;  ///< profile name for the oracle
  [[nodiscard]] virtual std::string supports() const = 0;   ///< one line for people
  /// Why this kernel does not do this case, in words; nullopt when it does.
  [[nodiscard]] virtual std::optional<std::string> refuses(const cases::Case& c) const = 0;
  /// The cases a narrow kernel wants to be drawn; nullopt: all of them.
  [[nodiscard]] virtual std::optional<cases::MlaDecodeDomain> domain() const { return std::nullopt; }
  [[nodiscard]] virtual Outcome run(Device& device, const cases::Case& c,
                                    const cases::Inputs& inputs) const = 0;
};

/// All kernels of this build, ordered by name; the objects live as long as the program.
const std::vector<const Kernel*>& kernels();

/// nullptr when there is none of that name.
const Kernel* find_kernel(std::string_view name);

}  // namespace attest::device
