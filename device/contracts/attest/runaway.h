// SPDX-License-Identifier: MIT
//
// After how many wave instructions a launch counts as runaway.
//
// A contract knows what its kernel takes when it is compiled at -O3, from the shape of the case: that is
// `optimised`, an upper bound by design, for generated cases 1.2 to 10 times what is really executed. The same
// source at -O0 keeps every variable in scratch and inlines nothing. Over 40 generated cases of each of the
// thirteen ops it executes 17 to 175 times the instructions of -O3 for the same launch, and at most 57 times
// `optimised`. So 100 leaves neither in doubt, and a kernel that never ends is stopped after a few million
// instructions in a usual case: well below a second in the simulator, a few with all detectors.
//
// The constant pays for what does not depend on the shape.
#pragma once

#include <cstdint>

namespace attest::device::contracts {

constexpr std::uint64_t runaway_after(std::uint64_t optimised) {
  return 1'000'000 + 100 * optimised;
}

}  // namespace attest::device::contracts
