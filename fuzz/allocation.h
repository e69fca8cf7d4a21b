// SPDX-License-Identifier: MIT
#pragma once

#include <malloc.h>

namespace attest::fuzz {

/// A case allocates and frees some megabytes, over and over. Handing them back to the system each time costs
/// more in page faults than the simulation does. For the start of main().
inline void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

}  // namespace attest::fuzz
