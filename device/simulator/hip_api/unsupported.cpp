// SPDX-License-Identifier: MIT
//
// What HIP has and the simulator does not: textures, graphs, run-time compilation, interoperation, contexts.
// A program that calls one of these is told so, once per function, and gets hipErrorNotSupported. The
// declarations of HIP's headers are not needed and would only contradict.
#include <atomic>
#include <cstdio>

namespace {

constexpr int not_supported = 801;  // hipErrorNotSupported

int refuse(const char* function, std::atomic<bool>& told) {
  if (!told.exchange(true)) std::fprintf(stderr, "attest simulator: %s is not supported\n", function);
  return not_supported;
}

}  // namespace

#define ATTEST_UNSUPPORTED(function)                                 \
  extern "C" __attribute__((visibility("default"))) int function() { \
    static std::atomic<bool> told{false};                            \
    return refuse(#function, told);                                  \
  }
#include "device/simulator/hip_api/unsupported.def"
#undef ATTEST_UNSUPPORTED

// These answer with a name, so an error code would be a bad pointer.
#define ATTEST_NAMELESS(function)                                            \
  extern "C" __attribute__((visibility("default"))) const char* function() { \
    static std::atomic<bool> told{false};                                    \
    refuse(#function, told);                                                 \
    return "";                                                               \
  }
ATTEST_NAMELESS(hipApiName)
ATTEST_NAMELESS(hipKernelNameRef)
ATTEST_NAMELESS(hipKernelNameRefByPtr)
#undef ATTEST_NAMELESS
