// SPDX-License-Identifier: MIT
#include "device/hip/buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace attest::device::hip {
namespace {

constexpr std::uint64_t word = 4;

std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + word - 1) / word * word;
}

/// Exponent bits of both bf16 halves set, mantissas from the position and never zero.
std::uint32_t guard_word(std::size_t index) {
  const std::uint32_t high = 0xff81u + static_cast<std::uint32_t>(index / 126 % 126);
  const std::uint32_t low = 0xff81u + static_cast<std::uint32_t>(index % 126);
  return high << 16 | low;
}

std::optional<std::size_t> first_difference(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0) return std::nullopt;
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(at - a.begin());
}

}  // namespace

DeviceBuffer::DeviceBuffer(HipDevice& device, std::string name, std::uint64_t size, std::uint64_t guard_bytes,
                           GuardPattern pattern)
    : device_(device),
      name_(std::move(name)),
      size_(size),
      padded_size_(round_up(size)),
      guard_bytes_(guard_bytes),
      pattern_(pattern),
      allocation_(static_cast<std::byte*>(device.allocate(guard_bytes + padded_size_ + guard_bytes, name_))) {
  // The bytes that fill up the last word belong to the guard behind.
  const std::vector<std::byte> guard = this->pattern(guard_bytes_ + padded_size_ - size_);
  device_.copy_to_device(allocation_, std::span(guard).first(guard_bytes_), name_);
  device_.copy_to_device(data() + size_, guard, name_);
  if (device_.api().sim_name_range != nullptr) {
    device_.api().sim_name_range(data(), size_, name_.c_str());
  }
}

DeviceBuffer::~DeviceBuffer() {
  device_.release(allocation_);
}

std::vector<std::byte> DeviceBuffer::pattern(std::size_t bytes) const {
  if (pattern_ == GuardPattern::fp8) return std::vector<std::byte>(bytes, std::byte{0x80});
  std::vector<std::byte> result(round_up(bytes));
  for (std::size_t index = 0; index < result.size() / word; ++index) {
    const std::uint32_t value = guard_word(index);
    std::memcpy(result.data() + index * word, &value, word);
  }
  result.resize(bytes);
  return result;
}

void DeviceBuffer::upload(std::span<const std::byte> bytes) {
  if (bytes.size() != size_) {
    throw std::invalid_argument(fmt::format("{}: {} bytes for a buffer of {}", name_, bytes.size(), size_));
  }
  device_.copy_to_device(data(), bytes, name_);
}

void DeviceBuffer::upload(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (offset > size_ || bytes.size() > size_ - offset) {
    throw std::invalid_argument(
        fmt::format("{}: {} bytes at {} of a buffer of {}", name_, bytes.size(), offset, size_));
  }
  device_.copy_to_device(data() + offset, bytes, name_);
}

void DeviceBuffer::upload(const cases::SparseBytes& bytes) {
  if (bytes.size != size_) {
    throw std::invalid_argument(fmt::format("{}: {} bytes for a buffer of {}", name_, bytes.size, size_));
  }
  for (const auto& extent : bytes.extents)
    device_.copy_to_device(data() + extent.offset, extent.bytes, name_);
}

std::vector<std::byte> DeviceBuffer::download() const {
  std::vector<std::byte> bytes(size_);
  device_.copy_from_device(bytes, data(), name_);
  return bytes;
}

std::vector<std::byte> DeviceBuffer::download(const cases::SparseBytes& where) const {
  std::size_t count = 0;
  for (const auto& extent : where.extents) count += extent.bytes.size();
  std::vector<std::byte> bytes(count);
  std::size_t at = 0;
  for (const auto& extent : where.extents) {
    device_.copy_from_device(std::span(bytes).subspan(at, extent.bytes.size()), data() + extent.offset,
                             name_);
    at += extent.bytes.size();
  }
  return bytes;
}

std::optional<std::string> DeviceBuffer::guard_damage() const {
  const std::vector<std::byte> expected = pattern(guard_bytes_ + padded_size_ - size_);
  std::vector<std::byte> found(guard_bytes_);
  device_.copy_from_device(found, allocation_, name_);
  if (!std::equal(found.begin(), found.end(), expected.begin())) {
    // Damage before the buffer is nearest at its end.
    std::size_t last = guard_bytes_;
    while (found[last - 1] == expected[last - 1]) --last;
    const std::uint64_t distance = guard_bytes_ - (last - 1) / word * word;
    return fmt::format("guard before {}, -{} bytes", name_, distance);
  }
  found.resize(expected.size());
  device_.copy_from_device(found, data() + size_, name_);
  if (const auto at = first_difference(found, expected)) {
    return fmt::format("guard after {}, +{} bytes", name_, *at / word * word);
  }
  return std::nullopt;
}

std::optional<std::string> DeviceBuffer::modification(std::span<const std::byte> expected,
                                                      std::uint64_t offset) const {
  // In blocks that stay in the cache, as inputs may be large and are nearly always intact.
  std::vector<std::byte> found(std::min<std::size_t>(expected.size(), 32 * 1024));
  for (std::size_t begin = 0; begin < expected.size(); begin += found.size()) {
    const std::size_t count = std::min(found.size(), expected.size() - begin);
    const auto block = std::span(found).first(count);
    device_.copy_from_device(block, data() + offset + begin, name_);
    if (const auto at = first_difference(block, expected.subspan(begin, count))) {
      return fmt::format("{} was modified at byte {}", name_, offset + begin + *at);
    }
  }
  return std::nullopt;
}

std::optional<std::string> DeviceBuffer::modification(const cases::SparseBytes& expected) const {
  for (const auto& extent : expected.extents) {
    if (auto found = modification(extent.bytes, extent.offset)) return found;
  }
  return std::nullopt;
}

}  // namespace attest::device::hip
