// SPDX-License-Identifier: MIT
//
// The scales of a ds row. A writer takes amax / 224 of its 128 values (vllm-project/vllm#32976: not the 240
// of the format), any f32. That leaves no value as it was, so the fills whose V must survive exactly get a
// power of two instead, at most 1: their V is integers up to 16, one-hot or multiples of 2^-10 below 2^-6,
// and four significant bits hold those times 1, 2 or 4. Either way the scales of neighbouring tokens and of
// the four tiles differ, so that a scale taken from the wrong one shows.
#include "cases/cache_pool.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "cases/narrow.h"
#include "cases/poison.h"
#include "cases/random.h"
#include "reference/ds_layout.h"

namespace attest::cases {
namespace {

constexpr int row_width = RowMaker::width;
constexpr int tiles = RowMaker::v_width / reference::ds_group;

/// Writes single rows in the layout of the cache.
class RowWriter {
 public:
  RowWriter(const Case& c, const RowMaker& rows, const RowLayout& layout)
      : seed_(c.seed), fill_(c.data.fill), rows_(rows), layout_(layout) {}

  [[nodiscard]] std::size_t row_bytes() const { return static_cast<std::size_t>(layout_.row_bytes()); }

  void row(int request, int token, std::byte* out) const {
    if (!layout_.ds) return rows_.kv_row(request, token, layout_.format, out);
    std::array<float, row_width> values;
    rows_.kv_row(request, token, values.data());
    write(values.data(), static_cast<std::uint32_t>(request), static_cast<std::uint32_t>(token), out);
  }
  void stale_row(std::uint32_t slot, std::byte* out) const {
    std::array<float, row_width> values;
    rows_.stale_kv_row(slot, values.data());
    write(values.data(), 0x40000000U, slot, out);
  }
  /// 32 N(0,1), by place in the pool.
  void large_row(std::uint64_t place, std::byte* out) const {
    std::array<std::uint16_t, row_width> halves;
    std::array<float, row_width> values;
    Counter(seed_, Draw::unused_memory, static_cast<std::uint32_t>(place >> 32),
            static_cast<std::uint32_t>(place))
        .halves(0, row_width, halves.data());
    normals(halves.data(), row_width, values.data());
    for (float& value : values) value *= 32.0F;
    write(values.data(), 0x50000000U, static_cast<std::uint32_t>(place), out);
  }
  /// A poison that has one bit pattern.
  void pattern_row(Poison poison, std::byte* out) const {
    const auto fill = [&](Format format, std::size_t begin, std::size_t end) {
      fill_pattern(std::span(out + begin, end - begin), *poison_pattern(poison, format),
                   element_bytes(format));
    };
    if (!layout_.ds) return fill(layout_.format, 0, row_bytes());
    fill(layout_.format, 0, reference::ds_scale_at);
    fill(Format::f32, reference::ds_scale_at, reference::ds_rope_at);
    fill(Format::bf16, reference::ds_rope_at, reference::ds_row_bytes);
  }

 private:
  [[nodiscard]] bool exact_latents() const {
    return fill_ == Fill::exact || fill_ == Fill::constant_scores || fill_ == Fill::position_coded ||
           fill_ == Fill::needle || fill_ == Fill::tiny || fill_ == Fill::saturating;
  }

  void write(const float* values, std::uint32_t source, std::uint32_t token, std::byte* out) const {
    if (!layout_.ds) return narrow(layout_.format, values, row_width, out);
    const Counter draw(seed_, Draw::ds_scale, source, token);
    std::array<float, RowMaker::v_width> latent;
    std::array<float, tiles> scales;
    for (std::size_t tile = 0; tile < tiles; ++tile) {
      const float* from = values + tile * reference::ds_group;
      float amax = 0;
      for (int d = 0; d < reference::ds_group; ++d) amax = std::max(amax, std::abs(from[d]));
      float scale = std::max(amax / 224.0F, std::numeric_limits<float>::min());
      if (exact_latents())
        scale = fill_ == Fill::saturating
                    ? 1.0F
                    : 1.0F / static_cast<float>(1U << draw.below(static_cast<std::uint32_t>(tile), 3));
      for (std::size_t d = 0; d < reference::ds_group; ++d)
        latent[tile * reference::ds_group + d] = from[d] / scale;
      scales[tile] = scale;
    }
    narrow(layout_.format, latent.data(), RowMaker::v_width, out);
    std::memcpy(out + reference::ds_scale_at, scales.data(), sizeof scales);
    narrow(Format::bf16, values + RowMaker::v_width, RowMaker::rope_width, out + reference::ds_rope_at);
  }

  std::uint64_t seed_;
  Fill fill_;
  const RowMaker& rows_;
  RowLayout layout_;
};

/// Writes the unused parts of a pool, a row at a time.
class UnusedMemory {
 public:
  UnusedMemory(const Case& c, const RowWriter& writer) : poison_(c.memory.unused), writer_(writer) {}

  /// @param offset of the bytes in the pool, which keeps random poison of different places apart
  void fill(std::span<std::byte> bytes, std::uint64_t offset) {
    const std::size_t row_bytes = writer_.row_bytes();
    row_.resize(row_bytes);
    const bool same_everywhere = poison_ != Poison::stale && poison_ != Poison::large;
    if (same_everywhere) writer_.pattern_row(poison_, row_.data());
    for (std::size_t at = 0; at < bytes.size(); at += row_bytes) {
      if (poison_ == Poison::stale)
        writer_.stale_row(stale_rows_++, row_.data());
      else if (poison_ == Poison::large)
        writer_.large_row((offset + at) / 16, row_.data());
      std::memcpy(bytes.data() + at, row_.data(), std::min(row_bytes, bytes.size() - at));
    }
  }

 private:
  Poison poison_;
  const RowWriter& writer_;
  std::uint32_t stale_rows_ = 0;
  std::vector<std::byte> row_;
};

}  // namespace

std::uint64_t RowLayout::row_bytes() const {
  if (ds) return reference::ds_row_bytes;
  return std::uint64_t{row_width} * element_bytes(format);
}

SparseBytes make_pool(const Case& c, const RowMaker& rows, const RowLayout& layout, const CacheShape& shape,
                      const PagePlan& plan) {
  const CacheFootprint& f = plan.footprint;
  const std::uint64_t row_bytes = layout.row_bytes();
  const RowWriter writer(c, rows, layout);
  UnusedMemory unused(c, writer);

  SparseBytes pool;
  pool.size = f.pool_bytes;
  for (const PagePlan::Range& range : plan.wrap_landings) {
    SparseBytes::Extent& extent = pool.extents.emplace_back();
    extent.offset = range.begin;
    extent.bytes.resize(static_cast<std::size_t>(range.end - range.begin));
    unused.fill(extent.bytes, range.begin);
  }

  SparseBytes::Extent& content = pool.extents.emplace_back();
  content.offset = static_cast<std::uint64_t>(f.first_page) * f.page_stride_bytes;
  content.bytes.resize(static_cast<std::size_t>(f.content_pages) *
                       static_cast<std::size_t>(f.page_stride_bytes));
  const auto part = [&](std::int32_t page, std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t page_begin = static_cast<std::uint64_t>(page - f.first_page) * f.page_stride_bytes;
    return std::span(content.bytes).subspan(page_begin + begin, end - begin);
  };
  const auto poison_page = [&](std::int32_t page, std::uint64_t begin) {
    unused.fill(part(page, begin, f.page_stride_bytes),
                static_cast<std::uint64_t>(page) * f.page_stride_bytes + begin);
  };

  for (const std::int32_t page : plan.unowned_pages) poison_page(page, 0);
  const Sharing s = sharing(shape, c.memory);
  for (std::size_t i = 0; i < shape.requests.size(); ++i) {
    const Request& request = shape.requests[i];
    const std::int32_t* pages = plan.pages.data() + plan.kv_indptr[i];
    const bool borrows = s.member(request) && static_cast<int>(i) != s.first_member;
    for (int first = borrows ? s.rows : 0; first < request.kv_len; first += shape.page_size) {
      const std::int32_t page = pages[first / shape.page_size];
      const int rows_here = std::min(shape.page_size, request.kv_len - first);
      std::byte* out = part(page, 0, f.page_stride_bytes).data();
      for (int row = 0; row < rows_here; ++row)
        writer.row(static_cast<int>(i), first + row, out + static_cast<std::size_t>(row) * row_bytes);
      poison_page(page, static_cast<std::uint64_t>(rows_here) * row_bytes);
    }
  }
  return pool;
}

}  // namespace attest::cases
