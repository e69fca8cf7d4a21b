// SPDX-License-Identifier: MIT
//
// From positions in a request to slots of the paged cache.
//
// The indexer selects keys by their position in the request; attention reads slots. Position i of a request
// lies in its block i / page_size at offset i % page_size, and the block table says which page that is:
//
//   slot = table[i / page_size] * page_size + i % page_size
//
// Lists are shorter than their row and padded, so some entries name no key. What becomes of those is where
// implementations differ: vLLM's CUDA converter keeps -1, which its attention masks; its ROCm converter
// writes slot 0, which its attention reads (https://github.com/vllm-project/vllm/pull/45324).
#pragma once

#include <cstdint>
#include <span>

namespace attest::reference {

/// What an entry that names no key becomes.
enum class InvalidSlot : std::uint8_t { minus_one, zero };

/// The slot of position `index` of a request with this block table. Negative positions, and those beyond the
/// last block of the table, name no key.
std::int32_t global_slot(std::int32_t index, std::span<const std::int32_t> table, int page_size,
                         InvalidSlot invalid);

}  // namespace attest::reference
