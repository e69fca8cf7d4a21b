// SPDX-License-Identifier: MIT
//
// Why a worker process died, from its wait status and the last it wrote on stderr.
//
// A GPU fault ends the process from inside the runtime: the reason is a line on stderr and nothing else
// (ROCm/aiter#4455), so that line is part of the verdict. Known forms:
//
//   Memory access fault by GPU node-1 (Agent handle: 0x...) on address 0x.... Reason: Page not present ...
//   HW Exception by GPU node-1 (Agent handle: 0x...) reason :GPU Hang
//   ... aborting with error : HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: ...
//   ==1==ERROR: AddressSanitizer: heap-buffer-overflow on address ...
//   terminate called after throwing an instance of 'std::bad_alloc'
#pragma once

#include <string>
#include <string_view>

namespace attest::fuzz {

struct CauseOfDeath {
  /// SIGKILL that the pool did not send: an operator, a scheduler or the kernel's OOM killer. It says nothing
  /// about the case at hand.
  bool from_outside = false;
  std::string diagnosis;  ///< short, stable, free of addresses: "gpu memory fault: page not present"
  std::string detail;     ///< one line for people
};

/// @param wait_status as waitpid gives it; @param last_words the end of the worker's stderr, may be empty
CauseOfDeath cause_of_death(int wait_status, std::string_view last_words);

}  // namespace attest::fuzz
