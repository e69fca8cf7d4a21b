// SPDX-License-Identifier: MIT
#include "reference/paged_cache.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

using namespace attest::reference;
using Catch::Contains;

namespace {

/// A pool in which every row that is a row says which one it is, and every other byte is NaN in all formats.
struct Pool {
  PagedCache cache;
  std::vector<std::byte> bytes;
  std::uint64_t bytes_asked = 0;

  Pool(Format format, int page_size, int padding_bytes, int pages, int columns) {
    const int size = bytes_per_element(format);
    cache.format = format;
    cache.page_size = page_size;
    cache.columns = columns;
    cache.page_stride_bytes = static_cast<std::uint64_t>(page_size * columns * size + padding_bytes);
    const int code_of_nan = format == Format::fp8_e4m3fnuz ? 0x80 : 0xff;
    bytes.assign(cache.page_stride_bytes * pages, static_cast<std::byte>(code_of_nan));
    for (int page = 0; page < pages; ++page)
      for (int row = 0; row < page_size; ++row)
        for (int column = 0; column < columns; ++column) {
          const std::uint32_t code = encode(format, value(page, row, column), Overflow::to_special);
          std::memcpy(bytes.data() + page * cache.page_stride_bytes + (row * columns + column) * size, &code,
                      size);
        }
    cache.bytes = [this](std::uint64_t offset, std::size_t count) -> std::span<const std::byte> {
      if (offset + count > bytes.size()) throw std::out_of_range("nothing placed there");
      bytes_asked += count;
      return std::span(bytes).subspan(offset, count);
    };
  }

  /// Exact in every format used here: integers up to 15.
  static double value(int page, int row, int column) { return (page * 7 + row * 3 + column) % 16; }
};

}  // namespace

TEST_CASE("rows are gathered through the page list") {
  for (const Format format : {Format::bf16, Format::f32, Format::fp8_e4m3fnuz, Format::fp8_e4m3fn})
    for (const int page_size : {1, 2, 3, 7, 16, 65})
      for (const int padding : {0, 16, 112}) {
        INFO(name(format) << ", pages of " << page_size << ", padding " << padding);
        Pool pool(format, page_size, padding, 40, 5);
        const std::vector<std::int32_t> pages{31, 4, 39, 0, 17, 4, 22, 8, 30, 2};
        for (const int kv_len :
             {0, 1, page_size - 1, page_size, page_size + 1, 10 * page_size - 1, 10 * page_size}) {
          pool.bytes_asked = 0;
          const Matrix rows = gather_rows(pool.cache, pages, kv_len);
          REQUIRE(rows.rows() == kv_len);
          REQUIRE(rows.cols() == 5);
          for (int t = 0; t < kv_len; ++t)
            for (int column = 0; column < 5; ++column)
              REQUIRE(rows(t, column) == Pool::value(pages[t / page_size], t % page_size, column));
          REQUIRE(pool.bytes_asked == static_cast<std::uint64_t>(kv_len * 5 * bytes_per_element(format)));
        }
      }
}

TEST_CASE("a page may lie beyond 4 GiB") {
  PagedCache cache;
  cache.page_size = 64;
  cache.page_stride_bytes = 64 * 576 * 2;
  std::vector<std::byte> zeros(64 * 576 * 2);
  std::vector<std::uint64_t> offsets;
  cache.bytes = [&](std::uint64_t offset, std::size_t count) {
    offsets.push_back(offset);
    return std::span<const std::byte>(zeros).first(count);
  };
  gather_rows(cache, std::vector<std::int32_t>{100000, 2147483647}, 65);
  CHECK(offsets == std::vector<std::uint64_t>{7372800000, 2147483647ull * 73728});
}

TEST_CASE("caches that cannot be read are refused") {
  Pool pool(Format::bf16, 4, 0, 3, 5);
  const std::vector<std::int32_t> pages{0, 1, 2};
  CHECK_THROWS_WITH(gather_rows(pool.cache, pages, 13), Contains("take 4 pages, the request has 3"));
  CHECK_THROWS_WITH(gather_rows(pool.cache, pages, -1), Contains("kv_len -1"));
  CHECK_THROWS_WITH(gather_rows(pool.cache, std::vector<std::int32_t>{0, -1}, 5),
                    Contains("entry 1") && Contains("-1"));
  CHECK_THROWS_AS(gather_rows(pool.cache, std::vector<std::int32_t>{3}, 1), std::out_of_range);
  pool.cache.page_stride_bytes = 39;
  CHECK_THROWS_WITH(gather_rows(pool.cache, pages, 4), Contains("page_stride_bytes 39"));
  pool.cache.page_size = 0;
  CHECK_THROWS_WITH(gather_rows(pool.cache, pages, 4), Contains("page_size 0"));
}

TEST_CASE("entries past the live pages are never looked at") {
  Pool pool(Format::bf16, 4, 0, 3, 5);
  CHECK(gather_rows(pool.cache, std::vector<std::int32_t>{2, -1, 2147483647}, 4).rows() == 4);
}

TEST_CASE("decode_matrix reads packed rows") {
  const std::vector<std::byte> bytes{std::byte{0x80}, std::byte{0x3f}, std::byte{0x00},
                                     std::byte{0x40}, std::byte{0x40}, std::byte{0x40},
                                     std::byte{0x80}, std::byte{0xc0}, std::byte{0xff}};
  const Matrix m = decode_matrix(Format::bf16, bytes, 2, 2);
  CHECK(m(0, 0) == 1);
  CHECK(m(0, 1) == 2);
  CHECK(m(1, 0) == 3);
  CHECK(m(1, 1) == -4);
  CHECK(decode_matrix(Format::bf16, {}, 0, 576).rows() == 0);
  CHECK_THROWS_WITH(decode_matrix(Format::bf16, bytes, 5, 1),
                    Contains("[5, 1] of bf16 takes 10 bytes, got 9"));
  CHECK_THROWS_WITH(decode_matrix(Format::bf16, bytes, -1, 1), Contains("[-1, 1]"));
}
