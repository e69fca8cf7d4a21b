// SPDX-License-Identifier: MIT
//
// Calls from a kernel to its host: device printf and assert.
//
// The kernel takes a packet from a stack of free ones, writes what it wants into it (up to eight 64-bit slots
// per lane), pushes it onto a stack of ready ones, signals, and waits until the host has cleared a bit in the
// packet. The layout of buffer and packets, and the service numbers, are those of ROCm-Device-Libs
// (ockl/src/hostcall_impl.cl) and of the HIP runtime (devhostcall.cpp), which this stands in for.
//
//   Hostcalls calls(memory, waves);              // one per launch of a kernel that has the hidden argument
//   launch.hostcall_buffer = calls.buffer();
//   launch.interrupt = [&] { calls.serve(); };
//
// printf messages arrive in pieces and are printed when complete, so a line of one work-item is never torn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "device/simulator/core/memory.h"

namespace attest::device::sim::hip {

class Hostcalls {
 public:
  /// @param waves at most so many hold a packet at a time. Throws std::bad_alloc.
  Hostcalls(Memory& memory, std::uint64_t waves);
  ~Hostcalls();
  Hostcalls(const Hostcalls&) = delete;
  Hostcalls& operator=(const Hostcalls&) = delete;

  /// Guest address.
  [[nodiscard]] std::uint64_t buffer() const { return buffer_; }

  /// Answers every ready packet. Output goes to stdout or stderr as the kernel says, and is flushed.
  void serve();

 private:
  void answer(std::uint32_t service, std::uint64_t* slots);
  void message(std::uint64_t* slots);

  Memory& memory_;
  std::uint64_t buffer_ = 0, packets_ = 0;
  std::byte* host_ = nullptr;
  std::map<std::uint64_t, std::vector<std::uint64_t>> messages_;  ///< begun and not ended
  std::uint64_t next_message_ = 1;
};

/// What printf prints for a message: words[0] chooses the stream (1: stderr) and is skipped here; the format
/// string follows, zero-terminated and padded to whole words, then a word per number, a padded string per %s.
std::string format_message(const std::vector<std::uint64_t>& words);

}  // namespace attest::device::sim::hip
