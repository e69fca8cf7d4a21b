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
#include <variant>
#include <vector>

#include "cases/case.h"

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

/// Entries of kv_page_indices past the live ones: page ids that hold poison, or (poison `inf`) ids outside
/// the pool.
inline constexpr int index_slack = 64;

struct MlaDecodeInputs {
  std::vector<std::byte> q;  ///< [total_q, heads, 576] in q_format
  SparseBytes kv_pool;       ///< pages of page_size rows of 576 in kv_format
  std::uint64_t page_stride_bytes = 0;
  std::int64_t num_pages = 0;  ///< of the pool

  std::vector<std::int32_t> qo_indptr;         ///< [batch + 1] rows of q
  std::vector<std::int32_t> kv_indptr;         ///< [batch + 1] entries of kv_page_indices
  std::vector<std::int32_t> kv_page_indices;   ///< [kv_indptr[batch] + index_slack]; the slack is garbage
  std::vector<std::int32_t> kv_last_page_len;  ///< [batch] 1..page_size; 0 for kv_len 0
};

using Inputs = std::variant<MlaDecodeInputs>;

/// Deterministic on every machine. Throws CaseError when the case is invalid.
Inputs materialise(const Case& c);

/// `count` elements of `format` filled with `poison`; what an output buffer holds before the launch.
/// `tensor` keeps random poisons (large, stale) of different buffers apart. e8m0 takes |value|.
std::vector<std::byte> poison_bytes(const Case& c, Poison poison, Format format, std::size_t count,
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
