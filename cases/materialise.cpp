// SPDX-License-Identifier: MIT
#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

#include "cases/inputs.h"

namespace attest::cases {

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
  return std::visit([&](const auto& p) -> Inputs { return materialise(c, p); }, c.problem);
}

const Outputs::Tensor* Outputs::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

}  // namespace attest::cases
