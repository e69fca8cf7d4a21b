// SPDX-License-Identifier: MIT
//
// Between an element of a result and the bytes of a device buffer, and back from the bytes a kernel read to
// what they are in the case's own terms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"
#include "device/hip/device.h"

namespace attest::fuzz {

/// As oracle::Element names it: column -1 is the lse. Of cache_write the columns of a token are its latent
/// part, its rope part and its scales, one after the other whatever the layout; of work_plan `head` is the
/// step; of block_table_expand too, and `column` is the list (oracle/plans/block_table_judge.h).
struct ElementPlace {
  int request = 0, position = 0, head = 0, column = 0;
};

/// "request 0, position 2, head 1, column 17", or what the numbers mean for this op.
std::string in_words(const cases::Case& c, const ElementPlace& element);

/// Where a kernel is to store the element; nullopt: this op's results are not found by coordinates. Throws
/// UsageError when the case has no such element.
std::optional<device::hip::BufferBytes> bytes_of_element(const cases::Case& c, const cases::Inputs& inputs,
                                                         const ElementPlace& element);

/// AITER's kernels leave what one split made in a buffer of its own, which its host code merges: where
/// `split` of the element lies. nullopt: an op without splits, or no such split.
std::optional<device::hip::BufferBytes> bytes_of_partial(const cases::Case& c, const cases::Inputs& inputs,
                                                         const ElementPlace& element, int split);

/// "page 7 slot 3, key 35 of request 0, columns 0 to 7"; empty for buffers of which nothing is known.
std::string in_contract_terms(const cases::Case& c, const cases::Inputs& inputs, const std::string& buffer,
                              std::uint64_t offset, std::uint64_t bytes);

/// Ranges of one buffer, gathered into lines: of a paged cache by page with its slots, else range by range.
/// @param most lines; what is left is counted in the last
struct BufferRange {
  std::uint64_t offset = 0, bytes = 0;
};
std::vector<std::string> describe_ranges(const cases::Case& c, const cases::Inputs& inputs,
                                         const std::string& buffer, const std::vector<BufferRange>& ranges,
                                         std::size_t most);

}  // namespace attest::fuzz
