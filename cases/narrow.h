// SPDX-License-Identifier: MIT
//
// Rows of f32 into the bytes of a cache or query format, fast: loops the compiler vectorises, because a case
// is made thousands of times a second. Equal to reference::encode(format, x, Overflow::saturate) for every
// finite x, which the tests check. The generated data contains no NaN and no infinity.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cases/case.h"

namespace attest::cases {

/// @param format bf16 or fp8_e4m3fnuz
/// @param out count elements, little endian
void narrow(Format format, const float* values, int count, std::byte* out);

/// The same as narrow(format, normals(halves)), without the f32 in between: 65536 halves have one code each,
/// so both steps are one look into a table half as large as that of `normals`.
/// @param count a multiple of 4
void narrow_normals(Format format, const std::uint16_t* halves, int count, std::byte* out);

}  // namespace attest::cases
