// SPDX-License-Identifier: MIT
//
// The bytes of a paged KV cache: rows from fills.h where tokens live (places from paging.h), poison wherever
// they do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cases/case.h"
#include "cases/fills.h"
#include "cases/paging.h"
#include "cases/sparse_bytes.h"

namespace attest::cases {

/// How a row of 576 lies in the cache.
struct RowLayout {
  Format format = Format::bf16;      ///< of all columns; with ds and ds_page, of the 512 latent ones
  KvLayout layout = KvLayout::rows;  ///< ds and ds_page have scales per token and tile of 128

  [[nodiscard]] std::uint64_t row_bytes() const;
};

/// One extent for the used and unowned pages, one per wrap landing.
SparseBytes make_pool(const Case& c, const RowMaker& rows, const RowLayout& layout, const CacheShape& shape,
                      const PagePlan& plan);

}  // namespace attest::cases
