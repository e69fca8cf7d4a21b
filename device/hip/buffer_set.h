// SPDX-License-Identifier: MIT
//
// The buffers of one run, so that all of them can be looked over afterwards.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cases/case.h"
#include "device/hip/buffer.h"
#include "device/hip/device.h"

namespace attest::device::hip {

class BufferSet {
 public:
  BufferSet(HipDevice& device, std::uint64_t guard_bytes) : device_(device), guard_bytes_(guard_bytes) {}

  DeviceBuffer& add(std::string name, std::uint64_t size, cases::Format format = cases::Format::f32) {
    const bool fp8 = format == cases::Format::fp8_e4m3fnuz;
    return buffers_.emplace_back(device_, std::move(name), size, guard_bytes_,
                                 fp8 ? GuardPattern::fp8 : GuardPattern::words);
  }
  DeviceBuffer& add(std::string name, std::span<const std::byte> contents,
                    cases::Format format = cases::Format::f32) {
    DeviceBuffer& buffer = add(std::move(name), contents.size(), format);
    buffer.upload(contents);
    return buffer;
  }
  DeviceBuffer& add(std::string name, const std::vector<std::int32_t>& contents) {
    return add(std::move(name), std::as_bytes(std::span(contents)));
  }

  /// What a kernel may only read: damage() says so when it no longer holds `contents`, which have to be there
  /// when damage() is asked.
  DeviceBuffer& add_input(std::string name, std::span<const std::byte> contents,
                          cases::Format format = cases::Format::f32) {
    DeviceBuffer& buffer = add(std::move(name), contents, format);
    inputs_.emplace_back([&buffer, contents] { return buffer.modification(contents); });
    return buffer;
  }
  template <typename T>
  DeviceBuffer& add_input(std::string name, const std::vector<T>& contents,
                          cases::Format format = cases::Format::f32) {
    return add_input(std::move(name), std::as_bytes(std::span(contents)), format);
  }
  DeviceBuffer& add_input(std::string name, const cases::SparseBytes& contents, cases::Format format) {
    DeviceBuffer& buffer = add(std::move(name), contents.size, format);
    buffer.upload(contents);
    inputs_.emplace_back([&buffer, &contents] { return buffer.modification(contents); });
    return buffer;
  }

  /// Outputs and scratch: contents that a kernel may not rely on. Reading them before they are written is for
  /// the simulator as reading memory that nobody has written.
  DeviceBuffer& add_unwritten(std::string name, std::span<const std::byte> contents,
                              cases::Format format = cases::Format::f32) {
    DeviceBuffer& buffer = add(std::move(name), contents, format);
    mark_unwritten(buffer);
    return buffer;
  }
  /// The same for contents that are large and are made a part at a time: `fill(offset, bytes)` for offsets that
  /// are multiples of 256 KiB, which stay in the cache between fill and copy.
  template <typename Fill>
  DeviceBuffer& add_unwritten(std::string name, std::uint64_t size, cases::Format format, const Fill& fill) {
    DeviceBuffer& buffer = add(std::move(name), size, format);
    std::vector<std::byte> part(std::min<std::uint64_t>(size, part_bytes));
    for (std::uint64_t at = 0; at < size; at += part_bytes) {
      const auto now = std::span(part).first(std::min<std::uint64_t>(part_bytes, size - at));
      fill(at, now);
      buffer.upload(at, now);
    }
    mark_unwritten(buffer);
    return buffer;
  }

  /// One line per buffer whose guard zones changed, then one per input that was written to.
  [[nodiscard]] std::vector<std::string> damage() const {
    std::vector<std::string> all;
    for (const DeviceBuffer& buffer : buffers_)
      if (auto found = buffer.guard_damage()) all.push_back(*std::move(found));
    for (const auto& modification : inputs_)
      if (auto found = modification()) all.push_back(*std::move(found));
    return all;
  }

 private:
  static constexpr std::uint64_t part_bytes = 256 << 10;

  void mark_unwritten(DeviceBuffer& buffer) {
    if (const auto mark = device_.api().sim_mark_unwritten; mark != nullptr)
      mark(buffer.data(), buffer.size());
  }

  HipDevice& device_;
  std::uint64_t guard_bytes_;
  std::list<DeviceBuffer> buffers_;
  std::vector<std::function<std::optional<std::string>()>> inputs_;  ///< how each was modified
};

}  // namespace attest::device::hip
