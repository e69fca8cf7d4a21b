// SPDX-License-Identifier: MIT
//
// Faults of address arithmetic show only where the wrong address holds something else. So every pool has
// pages that nobody owns, and far placements give content (poison) to the spots a 32-bit byte offset or a
// 16-bit page id would wrap to; without it a wrapped read would find the zeros of fresh memory, which
// attention forgives. Public reports of such faults: ROCm/aiter#5765, #4341, #2517.
#include "cases/paging.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cases/random.h"
#include "reference/cache_write.h"

namespace attest::cases {
namespace {

constexpr int row_width = 576;

int full_pages(const Request& request, int page_size) {
  return request.kv_len / page_size;
}

std::int64_t pages_of(const Request& request, int page_size) {
  return (std::int64_t{request.kv_len} + page_size - 1) / page_size;
}

/// The byte offset that a far placement straddles; 0 for the others.
std::uint64_t frontier(Placement placement) {
  switch (placement) {
    case Placement::beyond_2gib:
      return std::uint64_t{1} << 31;
    case Placement::beyond_4gib:
      return std::uint64_t{1} << 32;
    default:
      return 0;
  }
}

/// Page ids relative to the first content page, one per page, used pages first.
std::vector<std::int64_t> order_pages(const CacheFootprint& f, Placement placement, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(f.content_pages));
  std::iota(order.begin(), order.end(), 0);
  if (placement == Placement::ordered) return order;
  if (placement == Placement::reversed) {
    std::reverse(order.begin(), order.end());
    return order;
  }
  const Counter draw(seed, Draw::page_order, 0, 0);
  for (std::size_t i = order.size() - 1; i > 0; --i) {
    std::swap(order[i], order[draw.below(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i + 1))]);
  }
  if (const std::uint64_t offset = frontier(placement); offset != 0) {
    // The first used page lies beyond, the second before, however few there are.
    const auto beyond = [&](std::int64_t page) {
      return static_cast<std::uint64_t>(f.first_page + page) * f.page_stride_bytes >= offset;
    };
    std::iter_swap(order.begin(), std::find_if(order.begin(), order.end(), beyond));
    std::iter_swap(order.begin() + 1, std::find_if_not(order.begin() + 1, order.end(), beyond));
  }
  return order;
}

std::vector<PagePlan::Range> find_landings(const CacheFootprint& f, const std::vector<std::int32_t>& used) {
  std::vector<PagePlan::Range> ranges;
  const std::uint64_t stride = f.page_stride_bytes;
  const std::uint64_t content_begin = static_cast<std::uint64_t>(f.first_page) * stride;
  for (const std::int32_t page : used) {
    const std::uint64_t begin = static_cast<std::uint64_t>(page) * stride;
    const std::uint64_t landings[] = {begin % (std::uint64_t{1} << 31), begin % (std::uint64_t{1} << 32),
                                      static_cast<std::uint64_t>(page % 65536) * stride};
    for (const std::uint64_t landing : landings) {
      if (landing < content_begin) ranges.push_back({landing, std::min(landing + stride, content_begin)});
    }
  }
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<PagePlan::Range> merged;
  for (const PagePlan::Range& range : ranges) {
    if (!merged.empty() && range.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, range.end);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

}  // namespace

CacheShape cache_shape(const MlaDecode& p) {
  return {p.requests, p.page_size, static_cast<std::uint64_t>(p.page_size) * cache_row_bytes(p)};
}

std::uint64_t cache_row_bytes(const MlaDecode& p) {
  if (p.kv_layout != KvLayout::rows) return reference::ds_row_bytes;
  return p.kv_format == Format::bf16 ? 2 * row_width : row_width;
}

void validate_footprint(const CacheShape& cache, const MemoryRecipe& memory) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  const CacheFootprint footprint = cache_footprint(cache, memory);
  if (footprint.used_bytes > 4 * gib) {
    throw CaseError(
        fmt::format("shape.requests: the cache takes {} MiB, more than 4096; fewer or shorter requests",
                    footprint.used_bytes >> 20));
  }
  if (footprint.pool_bytes > 16 * gib) {
    throw CaseError(fmt::format(
        "memory.placement: {} with pages of {} bytes addresses {} GiB, more than 16; smaller pages",
        name(memory.placement), footprint.page_stride_bytes, footprint.pool_bytes >> 30));
  }
}

Sharing sharing(const CacheShape& cache, const MemoryRecipe& memory) {
  Sharing s;
  s.member_from = cache.page_size;
  if (!memory.prefix_sharing) return s;
  int members = 0;
  int shortest = 0;
  for (std::size_t i = 0; i < cache.requests.size(); ++i) {
    const int full = full_pages(cache.requests[i], cache.page_size);
    if (full == 0) continue;
    if (members == 0) s.first_member = static_cast<int>(i);
    shortest = members == 0 ? full : std::min(shortest, full);
    ++members;
  }
  if (members > 1) s.rows = (shortest + 1) / 2 * cache.page_size;
  return s;
}

CacheFootprint cache_footprint(const CacheShape& cache, const MemoryRecipe& memory) {
  CacheFootprint f;
  f.page_stride_bytes = cache.page_bytes + static_cast<std::uint64_t>(memory.page_padding_bytes);

  const Sharing s = sharing(cache, memory);
  for (const Request& request : cache.requests) {
    f.used_pages += pages_of(request, cache.page_size);
    if (s.member(request)) f.used_pages -= s.rows / cache.page_size;
  }
  f.used_pages += s.rows / cache.page_size;
  f.used_bytes = static_cast<std::uint64_t>(f.used_pages) * f.page_stride_bytes;

  const std::int64_t unowned = f.page_stride_bytes <= 65536 ? 3 : 1;
  f.content_pages = std::max<std::int64_t>(f.used_pages + unowned, 2);
  if (memory.placement == Placement::high) f.first_page = 65536;
  if (const std::uint64_t offset = frontier(memory.placement); offset != 0) {
    const std::uint64_t first_beyond = (offset + f.page_stride_bytes - 1) / f.page_stride_bytes;
    f.first_page = static_cast<std::int64_t>(first_beyond) - f.content_pages / 2;
  }
  f.pool_bytes = static_cast<std::uint64_t>(f.first_page + f.content_pages) * f.page_stride_bytes;
  return f;
}

PagePlan plan_pages(const CacheShape& cache, const MemoryRecipe& memory, std::uint64_t seed) {
  PagePlan plan;
  plan.footprint = cache_footprint(cache, memory);
  const Sharing s = sharing(cache, memory);
  const std::vector<std::int64_t> order = order_pages(plan.footprint, memory.placement, seed);

  auto next = order.begin();
  const auto take = [&] { return static_cast<std::int32_t>(plan.footprint.first_page + *next++); };
  plan.kv_indptr.push_back(0);
  for (std::size_t i = 0; i < cache.requests.size(); ++i) {
    std::int64_t remaining = pages_of(cache.requests[i], cache.page_size);
    if (s.member(cache.requests[i]) && static_cast<int>(i) != s.first_member) {
      const std::int64_t shared = s.rows / cache.page_size;
      const auto begin = static_cast<std::size_t>(plan.kv_indptr[static_cast<std::size_t>(s.first_member)]);
      for (std::size_t k = 0; k < static_cast<std::size_t>(shared); ++k)
        plan.pages.push_back(plan.pages[begin + k]);
      remaining -= shared;
    }
    for (; remaining > 0; --remaining) plan.pages.push_back(take());
    plan.kv_indptr.push_back(static_cast<std::int32_t>(plan.pages.size()));
  }
  while (next != order.end()) plan.unowned_pages.push_back(take());
  plan.wrap_landings = find_landings(plan.footprint, plan.pages);
  return plan;
}

}  // namespace attest::cases
