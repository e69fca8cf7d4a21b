// SPDX-License-Identifier: MIT
//
// Reading tensors and the paged KV cache as decoded fp64 matrices.
//
// A cache is a byte range cut into pages of `page_size` rows; page p begins at byte p * page_stride_bytes
// (which may exceed page_size rows: padding), row t of it at t * columns * bytes_per_element(format) further
// on. The range may be huge and mostly unbacked, so a page is asked for through a function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "reference/attention.h"
#include "reference/ds_layout.h"
#include "reference/formats.h"

namespace attest::reference {

/// Decodes `rows * columns` packed little-endian elements. Throws std::invalid_argument when `bytes` is
/// shorter.
Matrix decode_matrix(Format format, std::span<const std::byte> bytes, Eigen::Index rows,
                     Eigen::Index columns);

struct PagedCache {
  Format format = Format::bf16;
  int page_size = 1;                    ///< rows per page
  std::uint64_t page_stride_bytes = 0;  ///< from one page to the next
  int columns = row_width;
  bool ds_page = false;  ///< pages in three runs (reference/ds_layout.h), `format` is that of the latents
  Restoring restoring = Restoring::nearest_even;  ///< of a ds_page
  /// The bytes [offset, offset + size) of the pool. Throws std::out_of_range where nothing was placed.
  std::function<std::span<const std::byte>(std::uint64_t offset, std::size_t size)> bytes;
};

/// Rows 0..kv_len-1 of a request: row t is row t % page_size of page pages[t / page_size].
/// Throws std::invalid_argument when `pages` has fewer than ceil(kv_len / page_size) entries.
Matrix gather_rows(const PagedCache& cache, std::span<const std::int32_t> pages, int kv_len);

}  // namespace attest::reference
