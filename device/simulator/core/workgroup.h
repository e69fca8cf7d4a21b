// SPDX-License-Identifier: MIT
//
// What the waves of one workgroup share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace attest::device::sim {

struct Wave;

/// The barrier of all workgroups of a launch (ds_gws_barrier).
struct GlobalBarrier {
  std::uint32_t arrived = 0;
  std::uint32_t generation = 0;  ///< completed so far
};

struct Workgroup {
  std::uint32_t id[3] = {};
  std::byte* lds = nullptr;     ///< [lds_bytes], static part first, dynamic part behind it
  std::uint32_t lds_bytes = 0;  ///< what the launch asked for; an access past it is a fault
  Wave* waves = nullptr;        ///< [wave_count]
  std::uint32_t wave_count = 0;
  GlobalBarrier* global_barrier = nullptr;
  const std::function<void()>* interrupt = nullptr;  ///< what s_sendmsg(MSG_INTERRUPT) wakes; may be empty
};

}  // namespace attest::device::sim
