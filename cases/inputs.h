// SPDX-License-Identifier: MIT
//
// A case made concrete: every byte a kernel may read, and what its outputs hold before it runs.
//
// Values are counter-based: value = f(seed, tensor, logical index) with Philox (Random123), so the order of
// generation does not matter and shrinking one axis does not reshuffle the others. The logical index of a KV
// element is (request, token, column), not its address: permuting pages moves bytes and changes none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cases/case.h"
#include "cases/sparse_bytes.h"

namespace attest::cases {

/// Deterministic on every machine. Throws CaseError when the case is invalid.
Inputs materialise(const Case& c);

/// `count` elements of `format` filled with `poison`; what an output buffer holds before the launch.
/// `tensor` keeps random poisons (large, stale) of different buffers apart. e8m0 takes |value|.
std::vector<std::byte> poison_bytes(const Case& c, Poison poison, Format format, std::size_t count,
                                    std::string_view tensor);

/// Some of the same bytes, for a tensor too large to hold it a second time.
/// @param first element of the tensor that `out` begins with, a multiple of poison_block
void poison_part(const Case& c, Poison poison, Format format, std::size_t first, std::string_view tensor,
                 std::span<std::byte> out);
constexpr std::size_t poison_block = 512;

/// The same for `count` int32, of which a list of indices or offsets is made. nan: 2147480000, an id that
/// nothing has; inf: the least int32; large: any int32; stale: small non-negative numbers, plausible
/// everywhere; zero: 0. Never -1, which such lists end with.
std::vector<std::int32_t> poison_integers(const Case& c, Poison poison, std::size_t count,
                                          std::string_view tensor);

/// What came back from a device, in the case's formats.
struct Outputs {
  struct Tensor {
    std::string name;  ///< "out" [total_q, heads, 512], "lse" [total_q, heads] f32
    std::vector<std::byte> bytes;
  };
  std::vector<Tensor> tensors;
  /// Bytes changed outside of every buffer the kernel may write, in words: "guard after out, +12 bytes".
  std::vector<std::string> guard_damage;

  /// nullptr when there is none of that name.
  [[nodiscard]] const Tensor* find(std::string_view name) const;
};

}  // namespace attest::cases
