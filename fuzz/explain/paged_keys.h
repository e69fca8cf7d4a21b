// SPDX-License-Identifier: MIT
//
// Keys by where they lie: which page and slot holds key j of a request, and which split of a kernel walks it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"

namespace attest::fuzz {

/// The paged cache of a case that has one (mla_decode, verify_attention, mla_prefill's context). Refers to
/// the inputs.
struct PagedCache {
  const char* pool = "";         ///< the buffer's name under our contracts; AITER's calls it "KV"
  const char* page_table = "";   ///< the same
  int page_size = 1;             ///< tokens
  std::uint64_t page_bytes = 0;  ///< from one page to the next
  std::uint64_t row_bytes = 0;   ///< of a token
  int element_bytes = 2;
  bool in_runs = false;  ///< pages of 656 bytes a token in three runs (reference/ds_layout.h)
  int num_splits = 1;
  std::vector<int> kv_len;  ///< [requests] tokens in the cache
  const std::vector<std::int32_t>* indptr = nullptr;
  const std::vector<std::int32_t>* pages = nullptr;

  /// What byte `in_page` of a page belongs to.
  struct Spot {
    std::uint64_t slot = 0;        ///< page_size and more: padding
    std::uint64_t first_byte = 0;  ///< as if the row were columns of element_bytes throughout
    int element_bytes = 1;
    std::uint64_t end = 0;  ///< of these bytes of the slot, in the page
    bool scales = false;    ///< no columns but the slot's scales
  };
  [[nodiscard]] Spot spot(std::uint64_t in_page) const;

  [[nodiscard]] std::int32_t page(int request, int key) const {
    return (*pages)[static_cast<std::size_t>((*indptr)[static_cast<std::size_t>(request)] + key / page_size)];
  }
};
std::optional<PagedCache> paged_cache(const cases::Case& c, const cases::Inputs& inputs);

/// Keys that a query row sees. A kernel of ours cuts `splits` of them at multiples of 32 keys.
struct SeenKeys {
  int visible = 0;
  std::vector<std::int32_t> pages;  ///< in their order
  int page_size = 1, last_slot = 0;
  std::vector<int> split_ends;  ///< the key behind each split's last; one of a case without splits
};
/// nullopt: the op has no paged keys, or no such row. Of a tree of nodes all nodes up to `position` count.
std::optional<SeenKeys> seen_keys(const cases::Case& c, const cases::Inputs& inputs, int request,
                                  int position);

/// "3 pages of 16 (7, 2, 9), 5 in the last"; empty where there are none.
std::string pages_in_words(const cases::Case& c, const cases::Inputs& inputs, int request);
std::string in_words(const SeenKeys& keys);

}  // namespace attest::fuzz
