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
    if (!has_scales()) return rows_.kv_row(request, token, layout_.format, out);
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
    if (!has_scales()) return fill(layout_.format, 0, row_bytes());
    fill(layout_.format, 0, reference::ds_scale_at);
    fill(Format::f32, reference::ds_scale_at, reference::ds_rope_at);
    fill(Format::bf16, reference::ds_rope_at, reference::ds_row_bytes);
  }

 private:
  [[nodiscard]] bool has_scales() const { return layout_.layout != KvLayout::rows; }
  [[nodiscard]] bool exact_latents() const {
    return fill_ == Fill::exact || fill_ == Fill::constant_scores || fill_ == Fill::position_coded ||
           fill_ == Fill::needle || fill_ == Fill::tiny || fill_ == Fill::saturating;
  }

  void write(const float* values, std::uint32_t source, std::uint32_t token, std::byte* out) const {
    if (!has_scales()) return narrow(layout_.format, values, row_width, out);
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

/// Where the bytes of a token's row lie in its page: one behind the other, or in the page's three runs, where
/// they have to be put one by one.
class PageLayout {
 public:
  PageLayout(const RowLayout& layout, int page_size)
      : row_bytes_(static_cast<std::size_t>(layout.row_bytes())),
        page_size_(static_cast<std::size_t>(page_size)),
        in_runs_(layout.layout == KvLayout::ds_page) {}

  [[nodiscard]] bool in_runs() const { return in_runs_; }
  [[nodiscard]] std::size_t tokens_bytes() const { return page_size_ * row_bytes_; }

  /// Of a page in runs.
  void place(const std::byte* row, std::size_t slot, std::byte* page) const {
    constexpr std::size_t ends[] = {0, reference::ds_scale_at, reference::ds_rope_at,
                                    reference::ds_row_bytes};
    for (std::size_t run = 0; run < 3; ++run) {
      const std::size_t bytes = ends[run + 1] - ends[run];
      std::memcpy(page + ends[run] * page_size_ + slot * bytes, row + ends[run], bytes);
    }
  }

 private:
  std::size_t row_bytes_, page_size_;
  bool in_runs_;
};

/// Writes the unused parts of a pool, a row at a time.
class UnusedMemory {
 public:
  UnusedMemory(const Case& c, const RowWriter& writer) : poison_(c.memory.unused), writer_(writer) {}

  /// @param offset of the bytes in the pool, which keeps random poison of different places apart
  void fill(std::span<std::byte> bytes, std::uint64_t offset) {
    for (std::size_t at = 0; at < bytes.size(); at += writer_.row_bytes()) {
      next_row(offset + at);
      std::memcpy(bytes.data() + at, row_.data(), std::min(row_.size(), bytes.size() - at));
    }
  }

  /// The slots from `first_slot` on of a page in runs, and what is behind them.
  void fill_runs(const PageLayout& layout, std::size_t first_slot, std::span<std::byte> page,
                 std::uint64_t offset) {
    const std::size_t slots = layout.tokens_bytes() / writer_.row_bytes();
    for (std::size_t slot = first_slot; slot < slots; ++slot) {
      next_row(offset + slot * writer_.row_bytes());
      layout.place(row_.data(), slot, page.data());
    }
    fill(page.subspan(layout.tokens_bytes()), offset + layout.tokens_bytes());
  }

 private:
  void next_row(std::uint64_t offset) {
    row_.resize(writer_.row_bytes());
    if (poison_ == Poison::stale)
      writer_.stale_row(stale_rows_++, row_.data());
    else if (poison_ == Poison::large)
      writer_.large_row(offset / 16, row_.data());
    else if (!patterned_)
      writer_.pattern_row(poison_, row_.data());
    patterned_ = true;
  }

  bool patterned_ = false;  ///< row_ holds the one pattern there is
  Poison poison_;
  const RowWriter& writer_;
  std::uint32_t stale_rows_ = 0;
  std::vector<std::byte> row_;
};

}  // namespace

std::uint64_t RowLayout::row_bytes() const {
  if (layout != KvLayout::rows) return reference::ds_row_bytes;
  return std::uint64_t{row_width} * element_bytes(format);
}

SparseBytes make_pool(const Case& c, const RowMaker& rows, const RowLayout& layout, const CacheShape& shape,
                      const PagePlan& plan) {
  const CacheFootprint& f = plan.footprint;
  const std::uint64_t row_bytes = layout.row_bytes();
  const RowWriter writer(c, rows, layout);
  const PageLayout in_page(layout, shape.page_size);
  UnusedMemory unused(c, writer);

  SparseBytes pool;
  pool.size = f.pool_bytes;
  for (const PagePlan::Range& range : plan.wrap_landings) {
    SparseBytes::Extent& extent = pool.extents.emplace_back();
    extent.offset = range.begin;
    extent.bytes.resize(static_cast<std::size_t>(range.end - range.begin));
    if (!in_page.in_runs()) {
      unused.fill(extent.bytes, range.begin);
      continue;
    }
    // Page after page from where a page would begin that is looked for here; what is left over is no page.
    const auto stride = static_cast<std::size_t>(f.page_stride_bytes);
    std::size_t at = 0;
    for (; at + stride <= extent.bytes.size(); at += stride)
      unused.fill_runs(in_page, 0, std::span(extent.bytes).subspan(at, stride), range.begin + at);
    unused.fill(std::span(extent.bytes).subspan(at), range.begin + at);
  }

  SparseBytes::Extent& content = pool.extents.emplace_back();
  content.offset = static_cast<std::uint64_t>(f.first_page) * f.page_stride_bytes;
  content.bytes.resize(static_cast<std::size_t>(f.content_pages) *
                       static_cast<std::size_t>(f.page_stride_bytes));
  const auto part = [&](std::int32_t page, std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t page_begin = static_cast<std::uint64_t>(page - f.first_page) * f.page_stride_bytes;
    return std::span(content.bytes).subspan(page_begin + begin, end - begin);
  };
  const auto poison_page = [&](std::int32_t page, std::size_t first_slot) {
    const std::uint64_t at = static_cast<std::uint64_t>(page) * f.page_stride_bytes;
    const std::uint64_t begin = first_slot * row_bytes;
    if (in_page.in_runs())
      unused.fill_runs(in_page, first_slot, part(page, 0, f.page_stride_bytes), at);
    else
      unused.fill(part(page, begin, f.page_stride_bytes), at + begin);
  };

  for (const std::int32_t page : plan.unowned_pages) poison_page(page, 0);
  std::vector<std::byte> stored(writer.row_bytes());
  const Sharing s = sharing(shape, c.memory);
  for (std::size_t i = 0; i < shape.requests.size(); ++i) {
    const Request& request = shape.requests[i];
    const std::int32_t* pages = plan.pages.data() + plan.kv_indptr[i];
    const bool borrows = s.member(request) && static_cast<int>(i) != s.first_member;
    for (int first = borrows ? s.rows : 0; first < request.kv_len; first += shape.page_size) {
      const std::int32_t page = pages[first / shape.page_size];
      const int rows_here = std::min(shape.page_size, request.kv_len - first);
      std::byte* out = part(page, 0, f.page_stride_bytes).data();
      for (int row = 0; row < rows_here; ++row) {
        const bool apart = in_page.in_runs();
        writer.row(static_cast<int>(i), first + row,
                   apart ? stored.data() : out + static_cast<std::size_t>(row) * row_bytes);
        if (apart) in_page.place(stored.data(), static_cast<std::size_t>(row), out);
      }
      poison_page(page, static_cast<std::size_t>(rows_here));
    }
  }
  return pool;
}

}  // namespace attest::cases
