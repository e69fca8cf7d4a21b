// SPDX-License-Identifier: MIT
#pragma once

#include <time.h>

namespace attest::device::testing {

/// Processor time of the calling thread, which other processes lengthen less than the clock on the wall.
inline double thread_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace attest::device::testing
