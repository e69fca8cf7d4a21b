// SPDX-License-Identifier: MIT
#include "cases/index_lists.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "cases/random.h"

namespace attest::cases {

std::span<const char* const> names(IndexPattern) {
  static constexpr std::array all = {"selected", "leading", "scattered", "repeated", "hostile"};
  return all;
}

void index_list(std::uint64_t seed, IndexPattern pattern, std::uint32_t row, int visible, std::int32_t beyond,
                std::span<std::int32_t> out) {
  const Counter of_row(seed, Draw::index_row, row, 0);
  const Counter of_entry(seed, Draw::index_entry, row, 0);
  const auto n = static_cast<std::uint32_t>(visible);
  // Different positions in no order: c -> first + c * step modulo n visits all of them when the step shares
  // no factor with n.
  std::uint32_t step = 1;
  if (n > 2) {
    step = 1 + of_row.below(0, n - 1);
    while (std::gcd(step, n) != 1) ++step;
  }
  const std::uint32_t first = n > 0 ? of_row.below(1, n) : 0;
  const auto different = [&](std::uint32_t c) {
    return static_cast<std::int32_t>((first + std::uint64_t{c} * step) % n);
  };
  const auto no_key = [&](std::uint32_t c) {
    if (pattern != IndexPattern::hostile) return -1;
    const std::array numbers = {-1,
                                -2,
                                -123456,
                                std::numeric_limits<std::int32_t>::min(),
                                beyond,
                                beyond + 1,
                                std::numeric_limits<std::int32_t>::max()};
    return numbers[of_entry.below(2 * c + 1, static_cast<std::uint32_t>(numbers.size()))];
  };

  const auto k = static_cast<std::uint32_t>(out.size());
  const std::uint32_t keys = std::min(n, k);
  const bool nothing = n == 0 || ((pattern == IndexPattern::scattered || pattern == IndexPattern::hostile) &&
                                  of_row.below(2, 8) == 0);
  const std::uint32_t leading = 1 + of_row.below(3, k);
  for (std::uint32_t c = 0; c < k; ++c) {
    bool key = !nothing;
    std::uint32_t which = c;
    switch (pattern) {
      case IndexPattern::selected:
        key = key && c < keys;
        break;
      case IndexPattern::leading:
        key = key && c >= std::min(leading, k - 1) && c - std::min(leading, k - 1) < keys;
        which = c - std::min(leading, k - 1);
        break;
      case IndexPattern::scattered:
      case IndexPattern::hostile:
        key = key && of_entry.below(2 * c, 4) != 0;
        break;
      case IndexPattern::repeated:
        break;
    }
    if (!key)
      out[c] = no_key(c);
    else if (pattern == IndexPattern::selected || pattern == IndexPattern::leading)
      out[c] = different(which);
    else
      out[c] = static_cast<std::int32_t>(of_entry.below(2 * c + 1, n));
  }
}

}  // namespace attest::cases
