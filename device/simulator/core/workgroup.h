// SPDX-License-Identifier: MIT
//
// What the waves of one workgroup share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attest::device::sim {

struct Wave;

struct Workgroup {
  std::uint32_t id[3] = {};
  std::byte* lds = nullptr;     ///< [lds_bytes], static part first, dynamic part behind it
  std::uint32_t lds_bytes = 0;  ///< what the launch asked for; an access past it is a fault
  Wave* waves = nullptr;        ///< [wave_count]
  std::uint32_t wave_count = 0;
};

}  // namespace attest::device::sim
