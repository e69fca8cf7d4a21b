// SPDX-License-Identifier: MIT
//
// op index_remap: from the positions a top-k selected to slots of the paged cache.
//
//   {"op": "index_remap",
//    "shape": {"k": 128, "page_size": 64, "layout": "dense", "invalid": "minus_one", "indices": "selected",
//              "table_padding": 0, "requests": [{"q_len": 1, "kv_len": 37}]}, ...}
//
// Each query row has k entries. Row t of request r, position i of q_len, sees the keys
// [0, kv_len - q_len + i + 1) and lists positions among them; an entry becomes
// block_table[r][entry / page_size] * page_size + entry % page_size (reference/index_remap.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cases/index_lists.h"
#include "cases/vocabulary.h"

namespace attest::cases {

struct Case;
class JsonObject;
class JsonWriter;

/// Where the slots go.
enum class SlotLayout : std::uint8_t {
  dense,   ///< [rows, k]
  ragged,  ///< row t from slot_indptr[t] on: its first min(visible keys, k) entries
};
/// What an entry that names no key becomes.
enum class InvalidEntry : std::uint8_t { minus_one, slot_zero };
std::span<const char* const> names(SlotLayout);
std::span<const char* const> names(InvalidEntry);

struct IndexRemap {
  static constexpr const char* op = "index_remap";

  int k = 128;         ///< 1..2048 entries a row
  int page_size = 64;  ///< 1..1024 tokens
  SlotLayout layout = SlotLayout::dense;
  InvalidEntry invalid = InvalidEntry::minus_one;
  IndexPattern indices = IndexPattern::selected;
  int table_padding = 0;          ///< 0..64 entries from the end of a row of the block table to the next row
  std::vector<Request> requests;  ///< 1..512; q_len 0..4096, kv_len 0..131072; 65536 rows in all at most
  bool operator==(const IndexRemap&) const = default;
};

struct IndexRemapInputs {
  std::vector<std::int32_t> indices;         ///< [rows, k]
  std::vector<std::int32_t> request_of_row;  ///< [rows]
  std::vector<std::int32_t> block_table;     ///< [requests, table_stride]; garbage past a request's pages
  std::vector<std::int32_t> slot_indptr;     ///< [rows + 1]: where a row's slots begin, in both layouts
  int table_width = 0;                       ///< blocks of the longest request, at least 1
  int table_stride = 0;                      ///< table_width + table_padding
};

void read(const JsonObject& root, IndexRemap& p);
void write(JsonWriter& writer, const IndexRemap& p);
/// Throws CaseError: a value out of range, a placement beyond 2 GiB or page padding (there is no pool), or
/// more than 16 Mi entries.
void validate(const Case& c, const IndexRemap& p);
IndexRemapInputs materialise(const Case& c, const IndexRemap& p);

}  // namespace attest::cases
