// SPDX-License-Identifier: MIT
//
// Lists of key positions, one per query row, as an indexer leaves them for the ops that consume them: which
// entries name a key and where those that do not are. Padding at the end is harmless to most kernels; at the
// front it is not (https://github.com/vllm-project/vllm/issues/48364).
#pragma once

#include <cstdint>
#include <span>

#include "cases/vocabulary.h"

namespace attest::cases {

enum class IndexPattern : std::uint8_t {
  selected,   ///< as a top-k leaves it: min(visible, k) different positions, then -1
  leading,    ///< -1 first, then positions, none twice
  scattered,  ///< a quarter of the entries -1; a row in eight holds nothing else
  repeated,   ///< positions drawn with replacement, no -1
  hostile,    ///< as scattered, with other numbers that name no key: negative ones, and past the block table
};
std::span<const char* const> names(IndexPattern);

/// The list of query row `row` of the batch, which sees `visible` keys.
/// @param beyond the first position past the block table
/// @param out filled whole; with no visible key every entry names none
void index_list(std::uint64_t seed, IndexPattern pattern, std::uint32_t row, int visible, std::int32_t beyond,
                std::span<std::int32_t> out);

}  // namespace attest::cases
