// SPDX-License-Identifier: MIT
#include "cases/byte_pool.h"

#include <algorithm>
#include <array>
#include <optional>

#include "cases/poison.h"
#include "cases/random.h"

namespace attest::cases {
namespace {

void fill_poison(const Case& c, std::span<std::byte> bytes, std::uint64_t offset, Poison poison,
                 Format format) {
  if (const auto pattern = poison_pattern(poison, format)) {
    fill_pattern(bytes, *pattern, element_bytes(format));
    return;
  }
  constexpr std::size_t chunk = 512;
  std::array<std::uint16_t, chunk> halves;
  for (std::size_t at = 0; at < bytes.size(); at += 2 * chunk) {
    const std::uint64_t place = (offset + at) / 16;
    Counter(c.seed, Draw::unused_memory, static_cast<std::uint32_t>(place >> 32),
            static_cast<std::uint32_t>(place))
        .halves(0, chunk, halves.data());
    for (std::size_t i = 0; i < std::min(2 * chunk, bytes.size() - at); ++i) {
      const std::uint32_t byte = halves[i / 2] >> (8 * (i % 2)) & 0xffU;
      const bool nan = byte == 0x80 || byte == 0x7f || byte == 0xff;
      bytes[at + i] = static_cast<std::byte>(poison == Poison::stale && nan ? 0x38U : byte);
    }
  }
}

}  // namespace

SparseBytes poisoned_pool(const Case& c, const PagePlan& plan, Poison poison, Format format) {
  const CacheFootprint& f = plan.footprint;
  SparseBytes pool;
  pool.size = f.pool_bytes;
  const auto add = [&](std::uint64_t begin, std::uint64_t size) {
    SparseBytes::Extent& extent = pool.extents.emplace_back();
    extent.offset = begin;
    extent.bytes.resize(static_cast<std::size_t>(size));
    fill_poison(c, extent.bytes, begin, poison, format);
  };
  for (const PagePlan::Range& range : plan.wrap_landings) add(range.begin, range.end - range.begin);
  add(static_cast<std::uint64_t>(f.first_page) * f.page_stride_bytes,
      static_cast<std::uint64_t>(f.content_pages) * f.page_stride_bytes);
  return pool;
}

std::span<std::byte> page_of(SparseBytes& pool, const PagePlan& plan, std::int32_t page) {
  const std::uint64_t stride = plan.footprint.page_stride_bytes;
  const std::uint64_t begin = static_cast<std::uint64_t>(page - plan.footprint.first_page) * stride;
  return std::span(pool.extents.back().bytes)
      .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(stride));
}

}  // namespace attest::cases
