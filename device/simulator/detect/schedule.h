// SPDX-License-Identifier: MIT
//
// The order of events the simulator chooses where the hardware is free to choose, as one word that command
// lines and failure files hold:
//
//   Schedule::parse("quantum=7,seed=3,skew=40,delivery=stale")     nullopt: not a schedule
//   schedule.text()                                                 "" for the plain one
//
//   quantum    instructions of a wave's turn (1: all waves in step)
//   seed       0: waves take turns in order; else the order of each round is drawn from it
//   skew       at its start each wave runs up to so many instructions ahead of the others, drawn from the
//   seed delivery   when loads arrive: immediate, stale or poison (detect/late_delivery.h)
//
// Any of them is a run that a GPU may give. A kernel whose result differs between two has a race, a missing
// wait, or atomics that do not commute.
//
// This header and its source depend on nothing, so that the command line can check a schedule without the
// simulator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attest::device::sim::detect {

enum class Delivery : std::uint8_t { immediate, stale, poison };
std::string_view name(Delivery delivery);

struct Schedule {
  std::uint64_t seed = 0;
  std::uint32_t quantum = 1;
  std::uint32_t skew = 0;
  Delivery delivery = Delivery::immediate;

  /// "" or "plain": the plain one. Each name at most once, in any order.
  static std::optional<Schedule> parse(std::string_view text);
  /// What parse() reads, in one form per schedule.
  [[nodiscard]] std::string text() const;
  /// What parse() wants, in words.
  static std::string known();
  /// The schedules under which results are compared (Detector::schedule), with none repeated and the plain
  /// one left out: long turns, drawn orders, skewed starts, late loads.
  static const std::vector<Schedule>& probes();

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

}  // namespace attest::device::sim::detect
