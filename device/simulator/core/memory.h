// SPDX-License-Identifier: MIT
//
// The memory of one simulated device: named regions in a guest address space of their own.
//
//   Memory memory(0);
//   std::uint64_t kv = memory.allocate(6ull << 30, "kv_cache");   // costs nothing until it is touched
//   std::byte* host = memory.translate(kv + 128, 4);              // nullptr: not wholly inside one live
//   region throw Fault(..., memory.explain(address, 4));                 // "64 bytes after the end of
//   kv_cache ..."
//
// Guest addresses are deterministic: a region gets the next free 64 KiB slot behind a gap, whatever the
// host's allocator does, so a fault has the same address in every run and a kernel that depends on addresses
// repeats. Bounds are exact to the byte: the first byte behind a region belongs to nobody. Addresses are not
// reused while anything is allocated, so a stale pointer is recognised as such; when the last buffer has been
// freed the next allocation starts over from the first slot, which is what makes one case independent of the
// cases before it.
//
// Lookup is one table access: slot number to region. Look-ups may run in many threads; allocate, release, map
// and name may not run beside them (the HIP library launches synchronously).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attest::device::sim {

/// What is known of a byte of memory while Memory::keep_notes is on.
namespace note {
inline constexpr std::uint8_t written = 1;  ///< by the host or by a kernel
inline constexpr std::uint8_t inexact = 2;  ///< computed by an operation that is not bit-exact
}  // namespace note

struct Region {
  std::uint64_t base = 0;         ///< guest address
  std::uint64_t size = 0;         ///< bytes
  std::byte* host = nullptr;      ///< [size]; nullptr once freed
  std::uint8_t* notes = nullptr;  ///< [size] note:: bits; nullptr: all written, all exact
  std::uint64_t read_only = 0;    ///< the first so many bytes cannot be stored to (code)
  std::uint64_t front = 0,
                back = 0;  ///< bytes of the allocation before and behind that only the host may touch
  bool freed = false;
  std::string name;  ///< "kv_cache"; "buffer #3" when nobody named it

  /// True when [address, address + bytes) lies inside. Wraps safely.
  [[nodiscard]] bool holds(std::uint64_t address, std::uint64_t bytes) const {
    const std::uint64_t offset = address - base;
    return offset < size && bytes <= size - offset;
  }
};

class Memory {
 public:
  static constexpr std::uint64_t slot_bytes = 64 * 1024;
  static constexpr std::uint64_t window_bytes = std::uint64_t{1} << 41;
  static constexpr std::uint64_t first_window = std::uint64_t{1} << 45;

  /// @param device the window of guest addresses: first_window + device * window_bytes.
  /// @param capacity bytes that can be allocated at a time; more is refused as a real device refuses it.
  explicit Memory(std::uint32_t device, std::uint64_t capacity = std::uint64_t{192} << 30);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// A new region, zero-filled, backed by pages that exist once touched. nullopt: over capacity.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::string_view name = {});
  /// A region for a code object; it stays when every buffer is freed. The first read_only bytes refuse
  /// stores.
  std::optional<std::uint64_t> allocate_image(std::uint64_t bytes, std::uint64_t read_only,
                                              std::string_view name);
  /// Host memory visible to kernels at its own address (managed and registered memory).
  void map(void* host, std::uint64_t bytes, std::string_view name);
  /// False when address is not the start of a live region.
  bool release(std::uint64_t address);
  /// Names [address, address + bytes) of an allocation and hides the rest of it from kernels: what lies
  /// around is the caller's guard zone, or a neighbour of which it will say so too. False when that is not
  /// inside one allocation.
  bool name_range(std::uint64_t address, std::uint64_t bytes, std::string_view name);

  /// The live region around address, or nullptr.
  [[nodiscard]] const Region* find(std::uint64_t address) const {
    const std::uint64_t offset = address - window_;
    if (offset >= window_bytes) return mapped_.empty() ? nullptr : find_mapped(address);
    const Region* region = slots_[offset / slot_bytes];
    return region != nullptr && address - region->base < region->size ? region : nullptr;
  }
  /// Where [address, address + bytes) lies on the host; nullptr when it is not wholly inside one live region.
  [[nodiscard]] std::byte* translate(std::uint64_t address, std::uint64_t bytes) const {
    const Region* region = find(address);
    return region != nullptr && region->holds(address, bytes) ? region->host + (address - region->base)
                                                              : nullptr;
  }
  /// The same for the host's copies, which may touch guard zones too.
  [[nodiscard]] std::byte* translate_for_host(std::uint64_t address, std::uint64_t bytes) const;
  /// Start and size of the allocation around address; nullopt when there is none.
  [[nodiscard]] std::optional<std::pair<std::uint64_t, std::uint64_t>> allocation(
      std::uint64_t address) const;
  /// True when address lies in this device's window (whether or not anything is there).
  [[nodiscard]] bool owns(std::uint64_t address) const { return address - window_ < window_bytes; }

  /// From now on allocate() makes regions with notes, in which nothing is written. Regions without, those
  /// of code and kernel arguments among them, count as written.
  void keep_notes(bool on) { keep_notes_ = on; }
  /// Notes [address, address + bytes), as far as it lies in one allocation, as written or not.
  void mark(std::uint64_t address, std::uint64_t bytes, bool written);
  /// Copies the notes of one range to another, as the bytes are copied.
  void copy_notes(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);

  /// Why an access misses, in words: "16 bytes after the end of kv_cache (1024 bytes at 0x2000...)",
  /// "inside freed buffer #2 (...)", "near the null address".
  [[nodiscard]] std::string explain(std::uint64_t address, std::uint64_t bytes) const;

  [[nodiscard]] std::uint64_t capacity() const { return capacity_; }
  [[nodiscard]] std::uint64_t in_use() const { return in_use_; }

 private:
  std::optional<std::uint64_t> place(std::uint64_t bytes, std::uint64_t read_only, std::string_view name,
                                     bool image);
  void forget_buffers();
  [[nodiscard]] const Region* find_mapped(std::uint64_t address) const;
  [[nodiscard]] const Region* around(std::uint64_t address) const;
  [[nodiscard]] std::uint8_t* notes_for_host(std::uint64_t address, std::uint64_t bytes) const;

  bool keep_notes_ = false;
  std::uint64_t window_;
  std::uint64_t capacity_;
  std::uint64_t in_use_ = 0;
  std::uint64_t live_buffers_ = 0;
  std::uint64_t next_ = 0;          ///< first slot no buffer has had yet
  std::uint64_t next_image_ = 0;    ///< images grow downwards from the end of the window
  std::uint64_t serial_ = 0;        ///< number of the next unnamed buffer
  const Region** slots_ = nullptr;  ///< [window_bytes / slot_bytes], sparse
  std::vector<std::unique_ptr<Region>> buffers_, images_,
      mapped_;  ///< by ascending base, freed ones included
};

}  // namespace attest::device::sim
