// SPDX-License-Identifier: MIT
//
// Pools whose pages are made of bytes of several formats: all poison first, then what has content. Internal
// to cases/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cases/case.h"
#include "cases/paging.h"
#include "cases/sparse_bytes.h"

namespace attest::cases {

/// The pages of a plan and the landings of wrapped addresses, all holding `poison`: the pattern of `format`
/// where it has one, else random bytes (large: of any kind, stale: without a NaN of either fp8 format).
SparseBytes poisoned_pool(const Case& c, const PagePlan& plan, Poison poison, Format format);

/// The bytes of a page of such a pool.
std::span<std::byte> page_of(SparseBytes& pool, const PagePlan& plan, std::int32_t page);

}  // namespace attest::cases
