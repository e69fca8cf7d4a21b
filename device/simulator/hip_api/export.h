// SPDX-License-Identifier: MIT
//
// The library's symbols: C names, visible; everything else in it is hidden.
#pragma once

#define ATTEST_HIP extern "C" __attribute__((visibility("default")))
