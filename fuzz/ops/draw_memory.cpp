// SPDX-License-Identifier: MIT
#include "fuzz/ops/draw_memory.h"

#include <vector>

#include "fuzz/ops/draw.h"

namespace attest::fuzz {

using namespace cases;

MemoryRecipe draw_memory(const CacheShape& cache) {
  MemoryRecipe m;
  const bool any_placement = coin();
  const bool any_poison = chance(1, 3);
  const bool padding = chance(1, 4);
  if (padding) {
    std::int64_t pages = 1;
    for (const Request& r : cache.requests) pages += (r.kv_len + cache.page_size - 1) / cache.page_size;
    m.page_padding_bytes = any_up_to({16, 48, 128, 1024, 4096, 65536}, most_pool_bytes / pages);
  }
  if (any_placement) {
    m.placement = any_of<Placement>({Placement::ordered, Placement::shuffled, Placement::reversed,
                                     Placement::high, Placement::beyond_2gib});
    if (chance(1, 20)) m.placement = Placement::beyond_4gib;
    const auto stride = static_cast<std::int64_t>(cache.page_bytes) + m.page_padding_bytes;
    // 65536 pages below the used ones stay under 16 GiB.
    if (m.placement == Placement::high && stride > 200'000) m.placement = Placement::beyond_2gib;
  }
  if (any_poison) {
    const std::vector<Poison> poisons = {Poison::nan, Poison::inf, Poison::large, Poison::stale,
                                         Poison::zero};
    m.unused = any_of(poisons);
    m.output = any_of(poisons);
    m.scratch = any_of(poisons);
  }
  if (chance(1, 8)) m.guard_bytes = any_of<int>({256, 512, 65536});
  m.prefix_sharing = cache.requests.size() > 1 && chance(1, 5);
  return m;
}

MemoryRecipe draw_memory_of_indices(const CacheShape& cache) {
  MemoryRecipe m = draw_memory(cache);
  if (m.placement > Placement::high) m.placement = Placement::shuffled;
  m.page_padding_bytes = 0;
  return m;
}

}  // namespace attest::fuzz
