// SPDX-License-Identifier: MIT
#include "reference/paged_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace attest::reference {
namespace {

std::span<double> rows_of(Matrix& matrix, Eigen::Index first, Eigen::Index count) {
  return {matrix.data() + first * matrix.cols(), static_cast<std::size_t>(count * matrix.cols())};
}

}  // namespace

Matrix decode_matrix(Format format, std::span<const std::byte> bytes, Eigen::Index rows,
                     Eigen::Index columns) {
  if (rows < 0 || columns < 0)
    throw std::invalid_argument(fmt::format("decode_matrix: [{}, {}] is no shape", rows, columns));
  Matrix values(rows, columns);
  const auto needed = static_cast<std::size_t>(rows * columns) * bytes_per_element(format);
  if (bytes.size() < needed)
    throw std::invalid_argument(fmt::format("decode_matrix: [{}, {}] of {} takes {} bytes, got {}", rows,
                                            columns, name(format), needed, bytes.size()));
  decode(format, bytes.first(needed), rows_of(values, 0, rows));
  return values;
}

Matrix gather_rows(const PagedCache& cache, std::span<const std::int32_t> pages, int kv_len) {
  if (cache.page_size < 1 || cache.columns < 1 || kv_len < 0)
    throw std::invalid_argument(
        fmt::format("gather_rows: page_size {}, columns {}, kv_len {}: want at least 1, 1, 0",
                    cache.page_size, cache.columns, kv_len));
  const std::int64_t needed = (std::int64_t{kv_len} + cache.page_size - 1) / cache.page_size;
  if (std::ssize(pages) < needed)
    throw std::invalid_argument(
        fmt::format("gather_rows: {} rows in pages of {} take {} pages, the request has {}", kv_len,
                    cache.page_size, needed, pages.size()));
  if (cache.ds_page && cache.columns != row_width)
    throw std::invalid_argument(fmt::format("gather_rows: a ds page has no rows of {}", cache.columns));
  const auto row_bytes = cache.ds_page
                             ? std::size_t{ds_row_bytes}
                             : static_cast<std::size_t>(cache.columns) * bytes_per_element(cache.format);
  if (cache.page_stride_bytes < row_bytes * cache.page_size)
    throw std::invalid_argument(
        fmt::format("gather_rows: page_stride_bytes {} is less than {} rows of {} bytes",
                    cache.page_stride_bytes, cache.page_size, row_bytes));

  Matrix rows(kv_len, cache.columns);
  for (int first = 0; first < kv_len; first += cache.page_size) {
    const int count = std::min(cache.page_size, kv_len - first);
    const std::int32_t page = pages[first / cache.page_size];
    if (page < 0)
      throw std::invalid_argument(
          fmt::format("gather_rows: entry {} of the page list is {}", first / cache.page_size, page));
    const std::uint64_t begin = static_cast<std::uint64_t>(page) * cache.page_stride_bytes;
    if (cache.ds_page) {
      const auto bytes = cache.bytes(begin, row_bytes * static_cast<std::size_t>(cache.page_size));
      for (int slot = 0; slot < count; ++slot)
        decode_ds_row(cache.format, ds_row_of_page(bytes, cache.page_size, slot),
                      rows.row(first + slot).data(), cache.restoring);
      continue;
    }
    decode(cache.format, cache.bytes(begin, row_bytes * count), rows_of(rows, first, count));
  }
  return rows;
}

}  // namespace attest::reference
