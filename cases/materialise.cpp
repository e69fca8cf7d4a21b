// SPDX-License-Identifier: MIT
//
// Puts the pieces together: rows from fills.h, places from paging.h, and poison wherever neither reaches.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "cases/fills.h"
#include "cases/inputs.h"
#include "cases/narrow.h"
#include "cases/paging.h"
#include "cases/random.h"
#include "reference/formats.h"

namespace attest::cases {
namespace {

constexpr int row_width = RowMaker::width;

reference::Format reference_format(Format format) {
  switch (format) {
    case Format::bf16:
      return reference::Format::bf16;
    case Format::f16:
      return reference::Format::f16;
    case Format::f32:
      return reference::Format::f32;
    case Format::fp8_e4m3fn:
      return reference::Format::fp8_e4m3fn;
    case Format::fp8_e4m3fnuz:
      return reference::Format::fp8_e4m3fnuz;
    case Format::fp8_e5m2:
      return reference::Format::fp8_e5m2;
    case Format::fp8_e5m2fnuz:
      return reference::Format::fp8_e5m2fnuz;
    case Format::e8m0:
      return reference::Format::e8m0;
  }
  throw std::invalid_argument("no such format");
}

std::size_t element_bytes(Format format) {
  return static_cast<std::size_t>(reference::bytes_per_element(reference_format(format)));
}

/// The one bit pattern of a poison that has one; nullopt for large and stale.
std::optional<std::uint32_t> poison_pattern(Poison poison, Format format) {
  const bool fnuz = format == Format::fp8_e4m3fnuz || format == Format::fp8_e5m2fnuz;
  switch (poison) {
    case Poison::nan:
      return fnuz ? 0x80U : 0xffffffffU;
    case Poison::inf:
      switch (format) {
        case Format::bf16:
          return 0x7f80U;
        case Format::f16:
          return 0x7c00U;
        case Format::f32:
          return 0x7f800000U;
        case Format::fp8_e5m2:
          return 0x7cU;
        case Format::fp8_e4m3fn:
          return 0x7fU;
        case Format::fp8_e4m3fnuz:
        case Format::fp8_e5m2fnuz:
          return 0x80U;
        case Format::e8m0:
          return 0xffU;
      }
      return std::nullopt;
    case Poison::zero:
      return 0U;
    case Poison::large:
    case Poison::stale:
      return std::nullopt;
  }
  return std::nullopt;
}

void fill_pattern(std::span<std::byte> bytes, std::uint32_t pattern, std::size_t element) {
  std::array<std::byte, 4> code;
  std::memcpy(code.data(), &pattern, code.size());
  if (std::all_of(code.begin(), code.begin() + element, [&](std::byte b) { return b == code[0]; })) {
    std::memset(bytes.data(), static_cast<int>(code[0]), bytes.size());
    return;
  }
  for (std::size_t i = 0; i < bytes.size(); i += element) std::memcpy(bytes.data() + i, code.data(), element);
}

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
  const Counter draw(c.seed, Draw::index_slack, 0, 0);
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

MlaDecodeInputs materialise_mla_decode(const Case& c) {
  const MlaDecode& p = std::get<MlaDecode>(c.problem);
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

std::uint32_t hash_name(std::string_view text) {
  std::uint32_t hash = 0x811c9dc5U;  // 32-bit FNV-1a
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x01000193U;
  return hash;
}

}  // namespace

std::span<const std::byte> SparseBytes::at(std::uint64_t offset, std::size_t count) const {
  const auto after = std::upper_bound(extents.begin(), extents.end(), offset,
                                      [](std::uint64_t o, const Extent& e) { return o < e.offset; });
  if (after != extents.begin()) {
    const Extent& extent = *std::prev(after);
    const std::uint64_t inside = offset - extent.offset;
    if (inside <= extent.bytes.size() && count <= extent.bytes.size() - inside) {
      return std::span(extent.bytes).subspan(static_cast<std::size_t>(inside), count);
    }
  }
  throw std::out_of_range("no extent holds bytes " + std::to_string(offset) + " to " +
                          std::to_string(offset + count));
}

Inputs materialise(const Case& c) {
  validate(c);
  return materialise_mla_decode(c);
}

std::vector<std::byte> poison_bytes(const Case& c, Poison poison, Format format, std::size_t count,
                                    std::string_view tensor) {
  const std::size_t element = element_bytes(format);
  std::vector<std::byte> bytes(count * element);
  if (const auto pattern = poison_pattern(poison, format)) {
    fill_pattern(bytes, *pattern, element);
    return bytes;
  }
  constexpr std::size_t chunk = 512;
  std::array<std::uint16_t, chunk> halves;
  std::array<float, chunk> values;
  for (std::size_t at = 0; at < count; at += chunk) {
    Counter(c.seed, Draw::result_memory, hash_name(tensor), static_cast<std::uint32_t>(at / chunk))
        .halves(0, chunk, halves.data());
    normals(halves.data(), chunk, values.data());
    for (std::size_t i = 0; i < std::min(chunk, count - at); ++i) {
      const double value = poison == Poison::large ? 32.0 * double{values[i]} : double{values[i]};
      const std::uint32_t code =
          reference::encode(reference_format(format), format == Format::e8m0 ? std::abs(value) : value,
                            reference::Overflow::saturate);
      std::memcpy(bytes.data() + (at + i) * element, &code, element);
    }
  }
  return bytes;
}

const Outputs::Tensor* Outputs::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

}  // namespace attest::cases
