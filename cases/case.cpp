// SPDX-License-Identifier: MIT
#include "cases/case.h"

#include "cases/json_object.h"

namespace attest::cases {

const char* op_name(const Problem& problem) {
  return std::visit([](const auto& p) { return p.op; }, problem);
}

std::vector<std::string> op_names() {
  return []<std::size_t... k>(std::index_sequence<k...>) {
    return std::vector<std::string>{std::variant_alternative_t<k, Problem>::op...};
  }(std::make_index_sequence<std::variant_size_v<Problem>>());
}

void validate(const Case& c) {
  std::visit([&](const auto& p) { validate(c, p); }, c.problem);
  require_range("memory.page_padding_bytes", c.memory.page_padding_bytes, 0, 65536);
  require_multiple("memory.page_padding_bytes", c.memory.page_padding_bytes, 16);
  require_range("memory.guard_bytes", c.memory.guard_bytes, 256, 65536);
  require_multiple("memory.guard_bytes", c.memory.guard_bytes, 256);
}

}  // namespace attest::cases
