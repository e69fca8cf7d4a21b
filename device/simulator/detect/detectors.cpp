// SPDX-License-Identifier: MIT
#include "device/simulator/detect/detectors.h"

#include <array>

namespace attest::device::sim::detect {
namespace {

struct Row {
  std::string_view name, line;
};

constexpr std::array<Row, static_cast<std::size_t>(Detector::count)> rows{{
    {"uninitialised", "never-written data that reaches an address, a branch or stored results"},
    {"lds-race", "waves that touch the same LDS byte with no barrier between"},
    {"global-race", "waves that touch the same byte of memory unsynchronised"},
    {"waits", "registers used before the s_waitcnt that guarantees them"},
    {"lds-dma", "LDS that is used before the load that fills it must have arrived"},
    {"wait-states", "instructions closer together than the pipeline allows"},
    {"barrier", "waves that do not meet at the same barriers"},
    {"schedule", "results that depend on the order of the waves"},
    {"clipped", "counts of accesses clipped by buffer descriptors"},
    {"fidelity", "the ledger of instructions, and not-exact results that decide addresses or branches"},
}};

/// Calls f(name) for every name of a list until it returns false.
template <typename F>
void for_each_name(std::string_view list, F&& f) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (!f(list.substr(0, comma))) return;
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
}

}  // namespace

std::string_view name(Detector detector) {
  return rows[static_cast<std::size_t>(detector)].name;
}

std::string_view describe(Detector detector) {
  return rows[static_cast<std::size_t>(detector)].line;
}

std::optional<Detector> find_detector(std::string_view name) {
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (rows[k].name == name) return static_cast<Detector>(k);
  }
  return std::nullopt;
}

std::optional<DetectorSet> DetectorSet::parse(std::string_view list) {
  if (list == "all") return all();
  if (list == "none" || list.empty()) return DetectorSet();
  DetectorSet set;
  bool good = true;
  for_each_name(list, [&](std::string_view name) {
    const auto found = find_detector(name);
    if (found) set.add(*found);
    return good = found.has_value();
  });
  if (!good) return std::nullopt;
  return set;
}

std::string DetectorSet::unknown(std::string_view list) {
  if (parse(list)) return {};
  std::string first;
  for_each_name(list, [&](std::string_view name) {
    if (find_detector(name)) return true;
    first = name;
    return false;
  });
  return first;
}

std::string DetectorSet::known() {
  std::string text = "all, none";
  for (const Row& row : rows) text.append(", ").append(row.name);
  return text;
}

std::string DetectorSet::text() const {
  if (empty()) return "none";
  if (*this == all()) return "all";
  std::string text;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (!has(static_cast<Detector>(k))) continue;
    if (!text.empty()) text += ',';
    text += rows[k].name;
  }
  return text;
}

}  // namespace attest::device::sim::detect
