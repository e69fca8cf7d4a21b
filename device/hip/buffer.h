// SPDX-License-Identifier: MIT
//
// Device memory with guard zones on both sides:
//
//   [guard_bytes][size bytes][pad to a word][guard_bytes]
//
// A kernel that writes past its buffer on a GPU hits whatever the allocator put there and nobody notices.
// Here it hits a pattern that is compared afterwards. A kernel that reads past it gets NaN: each word of the
// pattern is a NaN as f32 and as two bf16, and negative as int32, with the word's position in the mantissas,
// so that a displaced copy of the pattern shows as well. For fp8 e4m3 FNUZ the pattern is its only NaN, 0x80.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cases/inputs.h"
#include "device/hip/device.h"

namespace attest::device::hip {

enum class GuardPattern { words, fp8 };

class DeviceBuffer {
 public:
  /// @param guard_bytes before and after, a multiple of 256.
  DeviceBuffer(HipDevice& device, std::string name, std::uint64_t size, std::uint64_t guard_bytes,
               GuardPattern pattern = GuardPattern::words);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  template <typename T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(data());
  }
  [[nodiscard]] std::byte* data() const { return allocation_ + guard_bytes_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Whole contents, `bytes.size() == size()`.
  void upload(std::span<const std::byte> bytes);
  /// Bytes [offset, offset + bytes.size()), which lie inside.
  void upload(std::uint64_t offset, std::span<const std::byte> bytes);
  /// The extents only; the rest stays as it is.
  void upload(const cases::SparseBytes& bytes);
  [[nodiscard]] std::vector<std::byte> download() const;
  /// Where the extents lie, one after the other.
  [[nodiscard]] std::vector<std::byte> download(const cases::SparseBytes& where) const;

  /// "guard after out, +12 bytes" for the first damaged word, if any. Offsets count from the nearer end of
  /// the buffer.
  [[nodiscard]] std::optional<std::string> guard_damage() const;
  /// "q was modified at byte 40" when the contents are no longer these.
  [[nodiscard]] std::optional<std::string> modification(std::span<const std::byte> expected,
                                                        std::uint64_t offset = 0) const;
  [[nodiscard]] std::optional<std::string> modification(const cases::SparseBytes& expected) const;

 private:
  [[nodiscard]] std::vector<std::byte> pattern(std::size_t bytes) const;

  HipDevice& device_;
  std::string name_;
  std::uint64_t size_;
  std::uint64_t padded_size_;
  std::uint64_t guard_bytes_;
  GuardPattern pattern_;
  std::byte* allocation_;
};

}  // namespace attest::device::hip
