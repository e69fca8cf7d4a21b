// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace attest::cases {

/// A byte range of which only some extents were given content; the rest is unspecified (zero or untouched).
/// A KV pool above 4 GiB costs no more than its extents.
struct SparseBytes {
  struct Extent {
    std::uint64_t offset = 0;  ///< bytes
    std::vector<std::byte> bytes;
  };
  std::uint64_t size = 0;       ///< bytes, the whole range
  std::vector<Extent> extents;  ///< ascending, disjoint, inside [0, size)

  /// The bytes [offset, offset + count). Throws std::out_of_range unless one extent holds them all.
  [[nodiscard]] std::span<const std::byte> at(std::uint64_t offset, std::size_t count) const;
};

}  // namespace attest::cases
