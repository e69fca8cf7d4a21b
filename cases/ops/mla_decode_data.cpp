// SPDX-License-Identifier: MIT
//
// Puts the pieces together: rows from fills.h, places from paging.h, and poison wherever neither reaches.
#include <algorithm>
#include <array>
#include <cstring>

#include "cases/case.h"
#include "cases/fills.h"
#include "cases/narrow.h"
#include "cases/ops/mla_decode.h"
#include "cases/paging.h"
#include "cases/poison.h"
#include "cases/random.h"

namespace attest::cases {
namespace {

constexpr int row_width = RowMaker::width;

/// Writes the unused parts of a KV pool, 576 elements at a time.
class UnusedMemory {
 public:
  UnusedMemory(const Case& c, const RowMaker& rows, Format format)
      : seed_(c.seed), poison_(c.memory.unused), rows_(rows), format_(format) {}

  /// @param offset of the bytes in the pool, which keeps random poison of different places apart
  void fill(std::span<std::byte> bytes, std::uint64_t offset) {
    const std::size_t element = element_bytes(format_);
    if (const auto pattern = poison_pattern(poison_, format_)) return fill_pattern(bytes, *pattern, element);
    std::array<float, row_width> values;
    std::array<std::byte, std::size_t{row_width} * 4> narrowed;
    const std::size_t row_bytes = row_width * element;
    for (std::size_t at = 0; at < bytes.size(); at += row_bytes) {
      if (poison_ == Poison::stale) {
        rows_.stale_kv_row(stale_rows_++, values.data());
      } else {
        const std::uint64_t place = (offset + at) / 16;
        std::array<std::uint16_t, row_width> halves;
        Counter(seed_, Draw::unused_memory, static_cast<std::uint32_t>(place >> 32),
                static_cast<std::uint32_t>(place))
            .halves(0, row_width, halves.data());
        normals(halves.data(), row_width, values.data());
        for (float& value : values) value *= 32.0F;
      }
      narrow(format_, values.data(), row_width, narrowed.data());
      std::memcpy(bytes.data() + at, narrowed.data(), std::min(row_bytes, bytes.size() - at));
    }
  }

 private:
  std::uint64_t seed_;
  Poison poison_;
  const RowMaker& rows_;
  Format format_;
  std::uint32_t stale_rows_ = 0;
};

/// Every byte range that gets content: one extent for the used and unowned pages, one per wrap landing.
SparseBytes make_pool(const Case& c, const RowMaker& rows, const PagePlan& plan) {
  const MlaDecode& p = std::get<MlaDecode>(c.problem);
  const CacheFootprint& f = plan.footprint;
  const std::uint64_t row_bytes = cache_row_bytes(p);
  UnusedMemory unused(c, rows, p.kv_format);

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
  const Sharing s = sharing(p, c.memory);
  std::array<float, row_width> values;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    const Request& request = p.requests[i];
    const std::int32_t* pages = plan.pages.data() + plan.kv_indptr[i];
    const bool borrows = s.member(request) && static_cast<int>(i) != s.first_member;
    for (int first = borrows ? s.rows : 0; first < request.kv_len; first += p.page_size) {
      const std::int32_t page = pages[first / p.page_size];
      const int rows_here = std::min(p.page_size, request.kv_len - first);
      std::byte* out = part(page, 0, f.page_stride_bytes).data();
      for (int row = 0; row < rows_here; ++row) {
        rows.kv_row(static_cast<int>(i), first + row, values.data());
        narrow(p.kv_format, values.data(), row_width, out + static_cast<std::size_t>(row) * row_bytes);
      }
      poison_page(page, static_cast<std::uint64_t>(rows_here) * row_bytes);
    }
  }
  return pool;
}

/// What a kernel finds that reads past the live page indices. Poisoned pages rather than wild ids where
/// possible: wrong data names its cause, a crash does not. `inf` stands for the sentinels of graph-padded
/// tables.
void append_slack(const Case& c, const PagePlan& plan, std::vector<std::int32_t>& indices) {
  const Counter draw(c.seed, Draw::garbage_index, 0, 0);
  const auto pick = [&](std::uint32_t i, const std::vector<std::int32_t>& from) {
    return from[draw.below(i, static_cast<std::uint32_t>(from.size()))];
  };
  for (std::uint32_t i = 0; i < index_slack; ++i) {
    switch (c.memory.unused) {
      case Poison::inf:
        indices.push_back(i % 2 == 0 ? -1 : 2147480000);
        break;
      case Poison::stale:
        indices.push_back(pick(i, plan.pages.empty() ? plan.unowned_pages : plan.pages));
        break;
      case Poison::zero:
        indices.push_back(0);
        break;
      case Poison::nan:
      case Poison::large:
        indices.push_back(pick(i, plan.unowned_pages));
        break;
    }
  }
}

}  // namespace

MlaDecodeInputs materialise(const Case& c, const MlaDecode& p) {
  const RowMaker rows(c);
  const PagePlan plan = plan_pages(p, c.memory, c.seed);

  MlaDecodeInputs in;
  in.kv_pool = make_pool(c, rows, plan);
  in.page_stride_bytes = plan.footprint.page_stride_bytes;
  in.num_pages = plan.footprint.first_page + plan.footprint.content_pages;
  in.kv_indptr = plan.kv_indptr;
  in.kv_page_indices = plan.pages;
  append_slack(c, plan, in.kv_page_indices);

  in.qo_indptr.push_back(0);
  for (const Request& r : p.requests) {
    in.qo_indptr.push_back(in.qo_indptr.back() + r.q_len);
    in.kv_last_page_len.push_back(r.kv_len == 0 ? 0 : (r.kv_len - 1) % p.page_size + 1);
  }

  const std::size_t q_row_bytes = row_width * element_bytes(p.q_format);
  in.q.resize(static_cast<std::size_t>(in.qo_indptr.back()) * static_cast<std::size_t>(p.heads) *
              q_row_bytes);
  std::byte* out = in.q.data();
  std::array<float, row_width> values;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    for (int position = 0; position < p.requests[i].q_len; ++position) {
      for (int head = 0; head < p.heads; ++head, out += q_row_bytes) {
        rows.q_row(static_cast<int>(i), position, head, values.data());
        narrow(p.q_format, values.data(), row_width, out);
      }
    }
  }
  return in;
}

}  // namespace attest::cases
