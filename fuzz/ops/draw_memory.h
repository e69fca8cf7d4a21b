// SPDX-License-Identifier: MIT
#pragma once

#include "cases/paging.h"
#include "cases/vocabulary.h"

namespace attest::fuzz {

/// Writing a pool takes time too.
inline constexpr std::int64_t most_pool_bytes = 4 << 20;

/// A memory recipe for a paged cache, inside rc::gen::exec (fuzz/ops/draw.h).
cases::MemoryRecipe draw_memory(const cases::CacheShape& cache);

/// For an op without a pool: of the placements those that only name pages, and no padding.
cases::MemoryRecipe draw_memory_of_indices(const cases::CacheShape& cache);

}  // namespace attest::fuzz
