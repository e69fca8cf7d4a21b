// SPDX-License-Identifier: MIT
#include "reference/ds_layout.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace attest::reference {
namespace {

double bf16_value(double x) {
  return decode(Format::bf16, encode(Format::bf16, x, Overflow::to_special));
}

}  // namespace

void decode_ds_row(Format latent, std::span<const std::byte> row, double* out) {
  if (row.size() != ds_row_bytes)
    throw std::invalid_argument(fmt::format("a ds row has {} bytes, not {}", ds_row_bytes, row.size()));
  for (int d = 0; d < kv_lora_rank; ++d) {
    float scale = 0;
    std::memcpy(&scale, row.data() + ds_scale_at + sizeof scale * static_cast<std::size_t>(d / ds_group),
                sizeof scale);
    // 4 significant bits times 24: exact in double, so that float rounds once.
    const double product =
        decode(latent, std::to_integer<std::uint32_t>(row[static_cast<std::size_t>(d)])) * double{scale};
    out[d] = bf16_value(double{static_cast<float>(product)});
  }
  for (int d = 0; d < qk_rope_head_dim; ++d) {
    std::uint16_t code = 0;
    std::memcpy(&code, row.data() + ds_rope_at + sizeof code * static_cast<std::size_t>(d), sizeof code);
    out[kv_lora_rank + d] = decode(Format::bf16, code);
  }
}

}  // namespace attest::reference
