// SPDX-License-Identifier: MIT
#include "device/simulator/detect/schedule.h"

#include <charconv>
#include <limits>

namespace attest::device::sim::detect {
namespace {

constexpr Delivery deliveries[] = {Delivery::immediate, Delivery::stale, Delivery::poison};

template <typename T>
bool read_number(std::string_view text, T most, T& value) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty() && value <= most;
}

}  // namespace

std::string_view name(Delivery delivery) {
  switch (delivery) {
    case Delivery::immediate:
      return "immediate";
    case Delivery::stale:
      return "stale";
    case Delivery::poison:
      return "poison";
  }
  return "";
}

std::optional<Schedule> Schedule::parse(std::string_view text) {
  Schedule schedule;
  if (text.empty() || text == "plain") return schedule;
  unsigned seen = 0;
  while (true) {
    const std::string_view item = text.substr(0, text.find(','));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view what = item.substr(0, equals), value = item.substr(equals + 1);
    unsigned bit = 0;
    bool good = false;
    if (what == "quantum") {
      bit = 1;
      good = read_number(value, std::numeric_limits<std::uint32_t>::max(), schedule.quantum) &&
             schedule.quantum != 0;
    } else if (what == "seed") {
      bit = 2;
      good = read_number(value, std::numeric_limits<std::uint64_t>::max(), schedule.seed);
    } else if (what == "skew") {
      bit = 4;
      good = read_number(value, std::uint32_t{1'000'000}, schedule.skew);
    } else if (what == "delivery") {
      bit = 8;
      for (const Delivery d : deliveries) {
        if (value != name(d)) continue;
        schedule.delivery = d;
        good = true;
      }
    }
    if (!good || (seen & bit) != 0) return std::nullopt;
    seen |= bit;
    if (item.size() == text.size()) return schedule;
    text.remove_prefix(item.size() + 1);
  }
}

std::string Schedule::text() const {
  std::string all;
  const auto add = [&all](const std::string& item) { all += (all.empty() ? "" : ",") + item; };
  if (quantum != 1) add("quantum=" + std::to_string(quantum));
  if (seed != 0) add("seed=" + std::to_string(seed));
  if (skew != 0) add("skew=" + std::to_string(skew));
  if (delivery != Delivery::immediate) add("delivery=" + std::string(name(delivery)));
  return all;
}

std::string Schedule::known() {
  return "quantum=N,seed=N,skew=N,delivery=immediate|stale|poison, any of them, or plain";
}

const std::vector<Schedule>& Schedule::probes() {
  static const std::vector<Schedule> list = {
      {.seed = 0, .quantum = 1000, .skew = 0},
      {.seed = 1, .quantum = 1, .skew = 0},
      {.seed = 2, .quantum = 7, .skew = 200},
      {.seed = 3, .quantum = 64, .skew = 1000, .delivery = Delivery::stale},
      {.seed = 0, .quantum = 1, .skew = 0, .delivery = Delivery::poison},
  };
  return list;
}

}  // namespace attest::device::sim::detect
