// SPDX-License-Identifier: MIT
#include "reference/sparse_list.h"

#include <fmt/format.h>

#include <stdexcept>

namespace attest::reference {

std::vector<int> valid_places(std::span<const std::int32_t> list, int length, std::int64_t num_slots) {
  if (length < 0 || length > std::ssize(list))
    throw std::invalid_argument(
        fmt::format("valid_places: length {} of a list of {} entries", length, list.size()));
  std::vector<int> places;
  for (int i = 0; i < length; ++i) {
    const std::int32_t slot = list[static_cast<std::size_t>(i)];
    if (slot >= 0 && slot < num_slots) places.push_back(i);
  }
  return places;
}

std::uint64_t SlotCache::row_bytes() const {
  if (ds_layout) return ds_row_bytes;
  return std::uint64_t{row_width} * static_cast<std::uint64_t>(bytes_per_element(format));
}

std::uint64_t SlotCache::offset(std::int64_t slot) const {
  return static_cast<std::uint64_t>(slot / page_size) * page_stride_bytes +
         static_cast<std::uint64_t>(slot % page_size) * row_bytes();
}

void SlotCache::row(std::int64_t slot, double* out) const {
  const std::span<const std::byte> stored = bytes(offset(slot), static_cast<std::size_t>(row_bytes()));
  if (ds_layout)
    decode_ds_row(format, stored, out);
  else
    decode(format, stored, {out, static_cast<std::size_t>(row_width)});
}

}  // namespace attest::reference
