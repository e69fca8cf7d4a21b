// SPDX-License-Identifier: MIT
#include "reference/index_remap.h"

#include <stdexcept>

namespace attest::reference {

std::int32_t global_slot(std::int32_t index, std::span<const std::int32_t> table, int page_size,
                         InvalidSlot invalid) {
  if (page_size < 1) throw std::invalid_argument("global_slot: page_size must be at least 1");
  const std::int32_t none = invalid == InvalidSlot::minus_one ? -1 : 0;
  if (index < 0) return none;
  const auto block = static_cast<std::size_t>(index / page_size);
  if (block >= table.size()) return none;
  const std::int64_t slot = std::int64_t{table[block]} * page_size + index % page_size;
  return static_cast<std::int32_t>(slot);
}

}  // namespace attest::reference
