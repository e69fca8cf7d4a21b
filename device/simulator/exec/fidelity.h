// SPDX-License-Identifier: MIT
//
// How far an operation's result can be trusted to be the hardware's.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/simulator/isa/opcodes.h"

namespace attest::device::sim {

enum class Exactness : std::uint8_t {
  exact,         ///< bit for bit, by the manual
  approximate,   ///< within a bound
  unverified,    ///< executed, but public sources leave room for another result
  not_modelled,  ///< stops the kernel
};

struct Fidelity {
  Exactness exactness = Exactness::exact;
  double ulp = 0;  ///< approximate: largest distance from the exact result, in units of its last place
  std::string_view reason{};  ///< of anything but exact, one phrase
};

/// NaN payloads are outside the promise: they are compared as a class.
Fidelity fidelity(Op op);

}  // namespace attest::device::sim
