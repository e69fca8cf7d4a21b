// SPDX-License-Identifier: MIT
#include "cases/ops/index_remap.h"

#include <fmt/format.h>

#include <array>

#include "cases/case.h"
#include "cases/json_object.h"
#include "cases/requests.h"

namespace attest::cases {

std::span<const char* const> names(SlotLayout) {
  static constexpr std::array all = {"dense", "ragged"};
  return all;
}

std::span<const char* const> names(InvalidEntry) {
  static constexpr std::array all = {"minus_one", "slot_zero"};
  return all;
}

void read(const JsonObject& root, IndexRemap& p) {
  const JsonObject shape(root.required("shape"), "shape",
                         {"k", "page_size", "layout", "invalid", "indices", "table_padding", "requests"});
  shape.read("k", p.k);
  shape.read("page_size", p.page_size);
  shape.read("layout", p.layout);
  shape.read("invalid", p.invalid);
  shape.read("indices", p.indices);
  shape.read("table_padding", p.table_padding);
  read_requests(shape, p.requests);
  (void)root.section("formats", {});
  (void)root.section("scales", {});
}

void write(JsonWriter& writer, const IndexRemap& p) {
  writer.section("shape") = {{"k", p.k},
                             {"page_size", p.page_size},
                             {"layout", name(p.layout)},
                             {"invalid", name(p.invalid)},
                             {"indices", name(p.indices)},
                             {"table_padding", p.table_padding},
                             {"requests", requests_json(p.requests)}};
}

void validate(const Case& c, const IndexRemap& p) {
  require_range("shape.k", p.k, 1, 2048);
  require_range("shape.page_size", p.page_size, 1, 1024);
  require_range("shape.table_padding", p.table_padding, 0, 64);
  validate_requests(p.requests, 4096, 131072);
  std::int64_t rows = 0;
  for (const Request& r : p.requests) rows += r.q_len;
  if (rows > 65536) throw CaseError(fmt::format("shape.requests: {} rows, more than 65536", rows));
  if (rows * p.k > 16 << 20)
    throw CaseError(fmt::format("shape: {} rows of {} entries, more than 16777216 in all", rows, p.k));
  if (c.data.fill != Fill::normal)
    throw CaseError(fmt::format("data.fill: index_remap has positions for data; use shape.indices, not {}",
                                name(c.data.fill)));
  if (c.memory.placement > Placement::high)
    throw CaseError(fmt::format("memory.placement: index_remap reads no pool, so nothing lies {}",
                                name(c.memory.placement)));
  if (c.memory.page_padding_bytes != 0)
    throw CaseError("memory.page_padding_bytes: index_remap reads no pool; use 0");
}

}  // namespace attest::cases
