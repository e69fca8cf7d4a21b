// SPDX-License-Identifier: MIT
//
// What the simulator can look for beside the faults that stop a kernel, and how people choose it.
//
//   const auto set = DetectorSet::parse("uninitialised,lds-race");   // also "all", "none"
//   if (!set) say DetectorSet::unknown(text) and DetectorSet::known()
//
// Faults need no choice: an access outside every buffer or inside a freed one, a runaway kernel, a jump
// outside the code stop the kernel whatever is chosen (core/fault.h).
//
// This header and its source depend on nothing, so that the command line can check a list without the
// simulator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace attest::device::sim::detect {

enum class Detector : std::uint8_t {
  uninitialised,  ///< data nobody wrote reaches an address, a branch, or memory that outlives the kernel
  lds_race,       ///< two waves touch a byte of LDS, one writes, no barrier lies between
  global_race,    ///< the same in memory, within a workgroup or across workgroups
  waits,          ///< a register or LDS byte is used before the s_waitcnt that guarantees it
  lds_dma,        ///< LDS that a load to LDS fills is used before it must have arrived
  wait_states,    ///< instructions closer together than the hardware's software-visible pipeline allows
  barrier,        ///< waves of a workgroup that do not meet at the same barriers
  schedule,       ///< the result depends on the order in which waves take turns
  clipped,        ///< counts accesses that buffer descriptors clip; never a hazard
  fidelity,       ///< what was executed and how exactly; not-exact results that decide an address or a branch
  count,
};

/// "lds-race"
std::string_view name(Detector detector);
/// One line for people.
std::string_view describe(Detector detector);
std::optional<Detector> find_detector(std::string_view name);

class DetectorSet {
 public:
  constexpr DetectorSet() = default;
  static constexpr DetectorSet all() {
    DetectorSet set;
    set.bits_ = (std::uint32_t{1} << static_cast<unsigned>(Detector::count)) - 1;
    return set;
  }
  /// "all", "none" (or ""), or names separated by commas. nullopt: unknown() says which is not one.
  static std::optional<DetectorSet> parse(std::string_view list);
  /// The first name in the list that is none; empty when all are.
  static std::string unknown(std::string_view list);
  /// "all, none, uninitialised, lds-race, ..."
  static std::string known();

  [[nodiscard]] constexpr bool has(Detector d) const { return (bits_ >> static_cast<unsigned>(d) & 1) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr std::uint32_t bits() const { return bits_; }
  constexpr void add(Detector d) { bits_ |= std::uint32_t{1} << static_cast<unsigned>(d); }
  constexpr void remove(Detector d) { bits_ &= ~(std::uint32_t{1} << static_cast<unsigned>(d)); }
  /// What parse() reads back: "all", "none", or the names in order.
  [[nodiscard]] std::string text() const;
  friend constexpr bool operator==(const DetectorSet&, const DetectorSet&) = default;

 private:
  std::uint32_t bits_ = 0;
};

}  // namespace attest::device::sim::detect
