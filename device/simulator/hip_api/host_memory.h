// SPDX-License-Identifier: MIT
//
// Host memory that kernels reach at its own address: pinned, managed and registered memory.
#pragma once

#include <cstddef>
#include <string>

namespace attest::device::sim::hip {

/// Page-aligned, zero-filled, visible to all devices. nullptr when there is none.
void* host_allocate(std::size_t bytes, const std::string& name);
/// False when it is not the start of such memory.
bool host_release(void* pointer);
/// True when [pointer, pointer + bytes) is inside pinned, managed or registered memory.
bool is_visible_host(const void* pointer, std::size_t bytes);

}  // namespace attest::device::sim::hip
