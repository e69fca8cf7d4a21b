// SPDX-License-Identifier: MIT
//
// Where the cache lies: which physical page holds which tokens of which request, and which bytes around them
// hold poison. Decided by the memory recipe and the seed, never by the values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cases/case.h"

namespace attest::cases {

/// What paging has to know of a cache: who has how many tokens in it, and how large its pages are.
struct CacheShape {
  std::span<const Request> requests;
  int page_size = 1;             ///< tokens
  std::uint64_t page_bytes = 0;  ///< of a page, without the padding of the memory recipe
};
CacheShape cache_shape(const MlaDecode& p);
CacheShape cache_shape(const CacheWrite& p);
CacheShape cache_shape(const IndexerLogits& p);
CacheShape cache_shape(const MlaSparse& p);
CacheShape cache_shape(const DenseSwitch& p);

/// Prefix sharing: every request with at least one full page ("member") has, as its first `rows` rows, those
/// of the first member. `rows` is half of the full pages of the shortest member, rounded up, in tokens; 0
/// when not shared.
struct Sharing {
  int first_member = 0;
  int rows = 0;
  int member_from = 1;  ///< members are the requests with at least that many tokens: the page size

  [[nodiscard]] bool member(const Request& request) const {
    return rows > 0 && request.kv_len >= member_from;
  }
  /// The request whose logical data row `token` of request `index` holds.
  [[nodiscard]] int owner(const Request& request, int index, int token) const {
    return token < rows && member(request) ? first_member : index;
  }
};
Sharing sharing(const CacheShape& cache, const MemoryRecipe& memory);
inline Sharing sharing(const MlaDecode& p, const MemoryRecipe& memory) {
  return sharing(cache_shape(p), memory);
}

struct CacheFootprint {
  std::uint64_t page_stride_bytes = 0;
  std::int64_t used_pages = 0;     ///< distinct
  std::uint64_t used_bytes = 0;    ///< used_pages * page_stride_bytes
  std::int64_t first_page = 0;     ///< lowest page id with content
  std::int64_t content_pages = 0;  ///< used and unowned ones: [first_page, first_page + content_pages)
  std::uint64_t pool_bytes = 0;    ///< from page 0 to the end of the last page
};
CacheFootprint cache_footprint(const CacheShape& cache, const MemoryRecipe& memory);
inline CacheFootprint cache_footprint(const MlaDecode& p, const MemoryRecipe& memory) {
  return cache_footprint(cache_shape(p), memory);
}

struct PagePlan {
  CacheFootprint footprint;
  std::vector<std::int32_t> kv_indptr;      ///< [batch + 1]
  std::vector<std::int32_t> pages;          ///< [kv_indptr[batch]]
  std::vector<std::int32_t> unowned_pages;  ///< content pages that no request owns; at least one

  struct Range {
    std::uint64_t begin = 0, end = 0;  ///< bytes of the pool
  };
  /// Where a used page would be looked for by a kernel whose arithmetic wraps: its byte offset modulo 2^31
  /// and 2^32, its page id modulo 2^16. Ascending, disjoint, inside the pool, clear of the content pages.
  std::vector<Range> wrap_landings;
};
PagePlan plan_pages(const CacheShape& cache, const MemoryRecipe& memory, std::uint64_t seed);
inline PagePlan plan_pages(const MlaDecode& p, const MemoryRecipe& memory, std::uint64_t seed) {
  return plan_pages(cache_shape(p), memory, seed);
}

/// Throws CaseError for a cache of more than 4 GiB, or a pool of more than 16 GiB addressed to place it.
void validate_footprint(const CacheShape& cache, const MemoryRecipe& memory);

/// Bytes that a token takes in the cache.
std::uint64_t cache_row_bytes(const MlaDecode& p);

}  // namespace attest::cases
