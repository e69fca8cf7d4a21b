// SPDX-License-Identifier: MIT
#include "reference/sparse_list.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "reference/attention.h"

using namespace attest::reference;

namespace {

template <typename T>
void put(std::vector<std::byte>& row, std::size_t at, T value) {
  std::memcpy(row.data() + at, &value, sizeof value);
}

/// A ds row of zeros with scales 1.
std::vector<std::byte> ds_row() {
  std::vector<std::byte> row(656);
  for (std::size_t tile = 0; tile < 4; ++tile) put(row, 512 + 4 * tile, 1.0F);
  return row;
}

}  // namespace

TEST_CASE("A ds row by its bytes") {
  std::vector<std::byte> row = ds_row();
  put(row, 0, std::uint8_t{0x40});    // fnuz 1.0: exponent 8, bias 8
  put(row, 127, std::uint8_t{0xc4});  // -1.5
  put(row, 128, std::uint8_t{0x40});  // the second tile
  put(row, 511, std::uint8_t{0x7f});  // 240, the last column
  put(row, 512, 3.0F);                // scales
  put(row, 516, 0.1F);
  put(row, 524, 0x1p-100F);
  put(row, 528, std::uint16_t{0x3f80});  // rope: 1.0
  put(row, 654, std::uint16_t{0xc040});  // rope: -3.0, the last
  std::vector<double> x(576);
  decode_ds_row(Format::fp8_e4m3fnuz, row, x.data());
  CHECK(x[0] == 3.0);
  CHECK(x[127] == -4.5);
  CHECK(x[128] == 0.10009765625);  // bf16 of f32 0.1: 0x3dcd
  CHECK(x[511] == 240 * std::ldexp(1.0, -100));
  CHECK(x[512] == 1.0);
  CHECK(x[575] == -3.0);
  CHECK(x[1] == 0.0);

  // The same byte in the other format is twice as much.
  decode_ds_row(Format::fp8_e4m3fn, row, x.data());
  CHECK(x[0] == 6.0);
  CHECK_THROWS_AS(decode_ds_row(Format::fp8_e4m3fnuz, std::span(row).first(655), x.data()),
                  std::invalid_argument);
}

TEST_CASE("Rounding of a ds value: the product to f32, then to bf16") {
  // Every code at a few scales, against the rounding written out: to 24 bits, then to 8, ties to even.
  const auto to_digits = [](double x, int digits) {
    if (x == 0 || !std::isfinite(x)) return x;
    const double unit = std::ldexp(1.0, std::ilogb(x) - digits + 1);
    return std::nearbyint(x / unit) * unit;
  };
  for (const float scale : {1.0F, 0.1F, 3.14159265F, 0.00390625F, 1.00390625F, 0x1.fffffep0F}) {
    for (unsigned code = 0; code < 256; ++code) {
      if (code == 0x80) continue;
      std::vector<std::byte> row = ds_row();
      put(row, 130, static_cast<std::uint8_t>(code));
      put(row, 516, scale);
      std::vector<double> x(576);
      decode_ds_row(Format::fp8_e4m3fnuz, row, x.data());
      const double exact = decode(Format::fp8_e4m3fnuz, code) * double{scale};
      REQUIRE(x[130] == to_digits(to_digits(exact, 24), 8));
    }
  }
}

TEST_CASE("What counts of a list") {
  const int top = std::numeric_limits<int>::max(), bottom = std::numeric_limits<int>::min();
  const std::vector<std::int32_t> list = {-1, 3, 3, 10, 0, top, bottom, 9, -123456, 2};
  CHECK(valid_places(list, 10, 10) == std::vector<int>{1, 2, 4, 7, 9});
  CHECK(valid_places(list, 5, 10) == std::vector<int>{1, 2, 4});
  CHECK(valid_places(list, 5, 11) == std::vector<int>{1, 2, 3, 4});
  CHECK(valid_places(list, 1, 10).empty());
  CHECK(valid_places(list, 0, 10).empty());
  CHECK_THROWS_AS(valid_places(list, 11, 10), std::invalid_argument);
  CHECK_THROWS_AS(valid_places(list, -1, 10), std::invalid_argument);
}

TEST_CASE("Slots of pages with padding between them") {
  std::vector<std::byte> pool(3 * 4000);
  SlotCache cache;
  cache.page_size = 3;
  cache.page_stride_bytes = 4000;  // three rows of 1152 bytes and 544 of padding
  cache.bytes = [&](std::uint64_t offset, std::size_t size) {
    if (offset + size > pool.size()) throw std::out_of_range("nothing there");
    return std::span<const std::byte>(pool).subspan(offset, size);
  };
  CHECK(cache.offset(0) == 0);
  CHECK(cache.offset(2) == 2304);
  CHECK(cache.offset(3) == 4000);
  CHECK(cache.offset(7) == 8000 + 1152);
  put(pool, 8000 + 1152 + 2 * 575, std::uint16_t{0x4000});
  std::vector<double> x(576);
  cache.row(7, x.data());
  CHECK(x[575] == 2.0);
  CHECK_THROWS_AS(cache.row(9, x.data()), std::out_of_range);
  cache.ds_layout = true;
  CHECK(cache.offset(7) == 8000 + 656);
}

TEST_CASE("Attention over a list is attention over its rows, repetitions included") {
  // One head, two keys that differ in one latent column; the first one occurs twice.
  Matrix q = Matrix::Zero(1, 576), k = Matrix::Zero(3, 576);
  q(0, 575) = 1;
  k(0, 0) = 1;
  k(1, 0) = 1;
  k(2, 0) = 4;
  k(2, 575) = std::log(2.0);  // weighs as much as the two others together
  const RequestAttention a = attend(q, k, {}, 1, 1, false);
  CHECK(a.out(0, 0) == Approx(2.5).epsilon(1e-14));
  CHECK(a.lse[0] == Approx(std::log(4.0)).epsilon(1e-14));
}
