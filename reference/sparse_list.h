// SPDX-License-Identifier: MIT
//
// Attention over lists of cache rows: what a list means. The attention itself is reference/attention.h with
// one query position and the rows of the list as its keys.
//
//   row t attends to the first lengths[t] entries of its list, in any order, and to nothing behind them
//   an entry below 0 or not below num_slots is a hole: it is skipped, wherever it stands
//   an entry that occurs twice is attended to twice
//   a list without a valid entry is an empty row: output 0, lse -inf
//
// Slot s is row s % page_size of page s / page_size; pages may be farther apart than their rows are long.
//
// Sources: deepseek-ai/FlashMLA, tests/ref.py and the topk_length and indices arguments of
// flash_mla_with_kvcache; vllm-project/vllm, v1/attention/backends/mla/rocm_aiter_mla_sparse.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reference/ds_layout.h"
#include "reference/paged_cache.h"

namespace attest::reference {

/// The places of the valid entries among the first `length` of a list, ascending.
/// Throws std::invalid_argument when length is outside 0..list.size().
std::vector<int> valid_places(std::span<const std::int32_t> list, int length, std::int64_t num_slots);

/// A cache addressed by slot: rows of 576 elements, or of the ds layout.
struct SlotCache {
  bool ds_layout = false;
  Format format = Format::bf16;  ///< of all 576 columns; with ds_layout, of the latent ones
  int page_size = 1;
  std::uint64_t page_stride_bytes = 0;
  /// The bytes [offset, offset + size) of the pool. Throws std::out_of_range where nothing was placed.
  std::function<std::span<const std::byte>(std::uint64_t offset, std::size_t size)> bytes;

  [[nodiscard]] std::uint64_t row_bytes() const;
  /// Byte offset of a slot. @pre slot >= 0
  [[nodiscard]] std::uint64_t offset(std::int64_t slot) const;
  /// The row of a slot, decoded, into out [576].
  void row(std::int64_t slot, double* out) const;
};

}  // namespace attest::reference
