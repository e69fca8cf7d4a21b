// SPDX-License-Identifier: MIT
#include "oracle/precision.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

namespace attest::oracle {
namespace {

PrecisionProfile make(std::string_view name, double p_roundoff, double p_floor, RowSum row_sum,
                      OutputRounding output) {
  PrecisionProfile p;
  p.name = name;
  p.p_roundoff = p_roundoff;
  p.p_floor = p_floor;
  p.row_sum = row_sum;
  p.output = output;
  return p;
}

// The floor of an 8 bit P: half the smallest subnormal, 2^-10 for e4m3fnuz and 2^-9 for e4m3fn.
const std::array<PrecisionProfile, 7>& base_profiles() {
  using enum RowSum;
  using enum OutputRounding;
  static const std::array<PrecisionProfile, 7> profiles = {
      make("bf16", 0x1p-8, 0, from_unrounded, nearest_even),
      make("bf16-trunc", 0x1p-7, 0, from_unrounded, truncate),
      make("bf16-any", 0x1p-7, 0, from_unrounded, either),
      make("bf16-sumrounded", 0x1p-8, 0, from_rounded, nearest_even),
      make("fp8p-fnuz", 0x1p-4, 0x1p-11, from_unrounded, nearest_even),
      make("fp8p-ocp", 0x1p-4, 0x1p-10, from_unrounded, nearest_even),
      make("fp32p", 0x1p-24, 0, from_unrounded, nearest_even),
  };
  return profiles;
}

struct Suffix {
  std::string_view name;
  void (*apply)(PrecisionProfile&);
};
constexpr std::array<Suffix, 5> suffixes = {{
    {"part16", [](PrecisionProfile& p) { p.partial_roundoff = 0x1p-8; }},
    {"u14", [](PrecisionProfile& p) { p.accumulator = 0x1p-14; }},
    {"emptyinf", [](PrecisionProfile& p) { p.lse_empty = std::numeric_limits<double>::infinity(); }},
    {"dstrunc", [](PrecisionProfile& p) { p.restoring = reference::Restoring::truncated; }},
    {"emptyany",
     [](PrecisionProfile& p) {
       p.lse_empty = std::numeric_limits<double>::quiet_NaN();
       p.empty = EmptyOutput::any;
     }},
}};

[[noreturn]] void unknown(std::string_view name) {
  std::string known, known_suffixes;
  for (const PrecisionProfile& p : base_profiles())
    known += (known.empty() ? "" : ", ") + std::string(p.name);
  for (const Suffix& s : suffixes) known_suffixes += " +" + std::string(s.name);
  throw std::invalid_argument(
      fmt::format("unknown precision profile \"{}\"; known: {}; suffixes:{}", name, known, known_suffixes));
}

PrecisionProfile compose(std::string_view name) {
  std::string_view rest = name;
  const std::string_view base = rest.substr(0, rest.find('+'));
  rest.remove_prefix(base.size());
  PrecisionProfile composed;
  for (const PrecisionProfile& p : base_profiles())
    if (p.name == base) composed = p;
  if (composed.name.empty()) unknown(name);
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view word = rest.substr(0, rest.find('+'));
    rest.remove_prefix(word.size());
    bool found = false;
    for (const Suffix& s : suffixes)
      if (s.name == word) {
        s.apply(composed);
        found = true;
      }
    if (!found) unknown(name);
  }
  return composed;
}

}  // namespace

std::vector<std::string_view> profile_names() {
  std::vector<std::string_view> names;
  for (const PrecisionProfile& p : base_profiles()) names.push_back(p.name);
  return names;
}

const PrecisionProfile& profile(std::string_view name) {
  static std::mutex guard;
  static std::map<std::string, PrecisionProfile, std::less<>> composed;
  const std::lock_guard lock(guard);
  auto found = composed.find(name);
  if (found == composed.end()) {
    found = composed.emplace(std::string(name), compose(name)).first;
    found->second.name = found->first;
  }
  return found->second;
}

}  // namespace attest::oracle
