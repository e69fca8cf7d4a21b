// SPDX-License-Identifier: MIT
#include "fuzz/branches.h"

#include <algorithm>
#include <bit>

namespace attest::fuzz {
namespace {

std::size_t sides(char way) {
  return static_cast<std::size_t>(std::popcount(static_cast<unsigned char>(way - '0')));
}

}  // namespace

std::size_t BranchCoverage::add(const BranchWays& ways) {
  const std::size_t before = executed_;
  for (const auto& [function, digits] : ways) {
    std::string& known = ways_[function];
    known.resize(std::max(known.size(), digits.size()), '0');
    for (std::size_t n = 0; n < digits.size(); ++n) {
      const char both = static_cast<char>(known[n] | digits[n]);
      executed_ += sides(both) - sides(known[n]);
      known[n] = both;
    }
  }
  return executed_ - before;
}

std::size_t BranchCoverage::total() const {
  std::size_t all = 0;
  for (const auto& [function, digits] : ways_) all += 2 * digits.size();
  return all;
}

Json BranchCoverage::json() const {
  Json functions = Json::object();
  for (const auto& [function, digits] : ways_) {
    std::size_t executed = 0;
    for (const char way : digits) executed += sides(way);
    functions[function] = {{"executed", executed}, {"total", 2 * digits.size()}, {"ways", digits}};
  }
  return {{"executed", executed()}, {"total", total()}, {"functions", std::move(functions)}};
}

}  // namespace attest::fuzz
