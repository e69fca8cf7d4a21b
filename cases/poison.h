// SPDX-License-Identifier: MIT
//
// Poison as bytes. See also poison_bytes in cases/inputs.h. Internal to cases/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "cases/vocabulary.h"
#include "reference/formats.h"

namespace attest::cases {

reference::Format reference_format(Format format);
std::size_t element_bytes(Format format);

/// The one bit pattern of a poison that has one; nullopt for large and stale.
std::optional<std::uint32_t> poison_pattern(Poison poison, Format format);

/// Repeats the low `element` bytes of `pattern`.
void fill_pattern(std::span<std::byte> bytes, std::uint32_t pattern, std::size_t element);

}  // namespace attest::cases
