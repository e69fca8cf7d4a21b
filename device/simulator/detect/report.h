// SPDX-License-Identifier: MIT
//
// What detectors found in a launch.
//
//   Report report;
//   report.add({.detector = Detector::lds_race, .severity = Severity::hard, ...});    // any number of times
//   for (const Hazard& h : report.ranked()) puts(h.line().c_str());
//
// A hazard is between two instructions, `at` (where it shows) and `with` (where it comes from), and its
// identity is (kernel, detector, pc of at, pc of with): the same pair met again in another lane, wave, trip
// or workgroup is counted, and the first one described. Pcs are those that llvm-objdump prints.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "device/simulator/detect/detectors.h"

namespace attest::device::sim {
struct LaunchView;
}

namespace attest::device::sim::detect {

/// hard: a kernel that does this is wrong. advisory: it leans on something no public source promises.
enum class Severity : std::uint8_t { hard, advisory };

/// One of the two instructions. No instruction (memory the host left unwritten, an initial register): pc 0
/// and no disassembly.
struct Site {
  std::uint64_t pc = 0;
  std::string disassembly;

  [[nodiscard]] bool none() const { return disassembly.empty(); }
};
/// Instruction `index` of the launch's program; past its end: none.
Site site(const LaunchView& launch, std::uint32_t index);

struct Hazard {
  Detector detector = Detector::uninitialised;
  Severity severity = Severity::hard;
  /// Orders hazards of one severity, lowest first. Vector memory before scalar memory before LDS, certain
  /// before likely.
  std::uint32_t rank = 0;
  std::string kernel;
  Site at, with;
  std::string message;  ///< what is wrong, without location: "v3 was never written and is an address"

  // Where it was met first; -1 and "": does not apply.
  std::uint32_t workgroup[3] = {};
  int wave = -1, lane = -1;
  int other_wave = -1;         ///< of `with`, when that is another one
  std::string buffer;          ///< "kv_pool", "LDS", "scratch"
  std::uint64_t offset = 0;    ///< in the buffer, bytes
  std::int64_t trip = -1;      ///< earlier executions of `at` by the wave: 0 is the first
  std::int64_t distance = -1;  ///< instructions of the wave from `with` to `at`
  std::uint64_t count = 1;     ///< times this pair was met

  /// "mla_decode_bf16_bf16 lds-race 0x1a40 0x19f8": stable across cases, seeds, thread counts.
  [[nodiscard]] std::string signature() const;
  /// Everything on one line, for people.
  [[nodiscard]] std::string line() const;
};
void to_json(nlohmann::json& json, const Hazard& hazard);

class Report {
 public:
  /// Counts it when its pair is known.
  void add(Hazard hazard);
  /// Whether this pair would be new: spares the description of one that is not. Counts it when it is known.
  bool fresh(const std::string& kernel, Detector detector, std::uint64_t at_pc, std::uint64_t with_pc);
  [[nodiscard]] bool empty() const { return hazards_.empty(); }
  /// Worst first: hard before advisory, then by rank, then in the order met.
  [[nodiscard]] std::vector<Hazard> ranked() const;

 private:
  using Key = std::tuple<std::string, Detector, std::uint64_t, std::uint64_t>;
  std::vector<Hazard> hazards_;
  std::map<Key, std::size_t> known_;
};

}  // namespace attest::device::sim::detect
