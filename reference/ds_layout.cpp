// SPDX-License-Identifier: MIT
#include "reference/ds_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace attest::reference {
namespace {

double bf16_value(double x) {
  return decode(Format::bf16, encode(Format::bf16, x, Overflow::to_special));
}

double truncated_to_bf16(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return decode(Format::bf16, bits >> 16);
}

}  // namespace

void decode_ds_row(Format latent, std::span<const std::byte> row, double* out, Restoring restoring) {
  if (row.size() != ds_row_bytes)
    throw std::invalid_argument(fmt::format("a ds row has {} bytes, not {}", ds_row_bytes, row.size()));
  for (int d = 0; d < kv_lora_rank; ++d) {
    float scale = 0;
    std::memcpy(&scale, row.data() + ds_scale_at + sizeof scale * static_cast<std::size_t>(d / ds_group),
                sizeof scale);
    // 4 significant bits times 24: exact in double, so that float rounds once.
    const double product =
        decode(latent, std::to_integer<std::uint32_t>(row[static_cast<std::size_t>(d)])) * double{scale};
    const auto restored = static_cast<float>(product);
    out[d] = restoring == Restoring::truncated ? truncated_to_bf16(restored) : bf16_value(double{restored});
  }
  for (int d = 0; d < qk_rope_head_dim; ++d) {
    std::uint16_t code = 0;
    std::memcpy(&code, row.data() + ds_rope_at + sizeof code * static_cast<std::size_t>(d), sizeof code);
    out[kv_lora_rank + d] = decode(Format::bf16, code);
  }
}

std::array<std::byte, ds_row_bytes> ds_row_of_page(std::span<const std::byte> page, int page_size, int slot) {
  if (slot < 0 || slot >= page_size ||
      page.size() < static_cast<std::size_t>(page_size) * std::size_t{ds_row_bytes})
    throw std::invalid_argument(
        fmt::format("slot {} of a ds page of {} tokens in {} bytes", slot, page_size, page.size()));
  constexpr std::size_t ends[] = {0, ds_scale_at, ds_rope_at, ds_row_bytes};
  std::array<std::byte, ds_row_bytes> row{};
  for (std::size_t run = 0; run < 3; ++run) {
    const std::size_t bytes = ends[run + 1] - ends[run];
    const auto from = page.subspan(
        ends[run] * static_cast<std::size_t>(page_size) + bytes * static_cast<std::size_t>(slot), bytes);
    std::copy(from.begin(), from.end(), row.begin() + static_cast<std::ptrdiff_t>(ends[run]));
  }
  return row;
}

}  // namespace attest::reference
