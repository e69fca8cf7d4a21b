// SPDX-License-Identifier: MIT
//
// Where each kernel of the `aiter` contract is right, as far as we found: the cases of its domain without
// those that cases/README.md lists as findings.
//
//   attest fuzz --kernel aiter@sound --cases 2000 --aiter-hsa DIR      # nothing may fail
//
// A failure outside of this domain is known; a failure inside is new, or a kernel that changed.
#pragma once

#include <optional>

#include "cases/domain.h"
#include "device/contracts/aiter/asm_table.h"

namespace attest::device::aiter {

/// @param whole the cases that dispatch takes to `row`
/// @return nullopt when there is no case on which the kernel is known to be right
std::optional<cases::MlaDecodeDomain> sound_domain(const AsmRow& row, cases::MlaDecodeDomain whole);

}  // namespace attest::device::aiter
