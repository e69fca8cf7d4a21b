// SPDX-License-Identifier: MIT
//
// What the programs here check themselves with. They are written as users write HIP and know nothing of the
// simulator; on a GPU they must pass as well.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

#define HIP_CHECK(call)                                                                             \
  do {                                                                                              \
    const hipError_t error = (call);                                                                \
    if (error != hipSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorString(error)); \
      std::exit(1);                                                                                 \
    }                                                                                               \
  } while (false)

#define EXPECT(condition)                                                          \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                \
    }                                                                              \
  } while (false)

/// Numbers that repeat.
struct Numbers {
  unsigned state = 12345;
  unsigned next() { return state = state * 1664525U + 1013904223U; }
  float unit() { return static_cast<float>(next() >> 8) * 0x1p-24F; }
};
