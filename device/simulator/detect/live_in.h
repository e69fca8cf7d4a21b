// SPDX-License-Identifier: MIT
//
// Which scalar registers a program may read before it has written them, over all paths from its entry: live
// variables, as compilers compute them, backwards to a fixed point. Whoever asks whether a register was
// written before it is read need not look at the others: nobody will read what they hold at entry.
//
// A jump whose target is computed may lead anywhere, and s_movrel may read anything: then all are live.
// (Vector registers are another matter: a write under EXEC leaves the other lanes as they were.)
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "device/simulator/core/program.h"
#include "device/simulator/detect/effects.h"

namespace attest::device::sim::detect {

/// Bit n % 64 of word n / 64: scalar register n, by operand code, and scalar::scc.
using ScalarSet = std::array<std::uint64_t, 3>;

/// @param effects [program.size()]
ScalarSet live_in(const Program& program, const std::vector<Effects>& effects);

}  // namespace attest::device::sim::detect
