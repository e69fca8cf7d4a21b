// SPDX-License-Identifier: MIT
#include "device/simulator/core/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace attest::device::sim {
namespace {

constexpr std::uint64_t slots_per_window = Memory::window_bytes / Memory::slot_bytes;
constexpr std::uint64_t slots_for_images = slots_per_window / 16;
// Below this a region comes from the heap: a mapping of its own costs more, in page faults, than clearing
// what the heap has kept.
constexpr std::uint64_t heap_limit = 16 << 20;

std::uint64_t slots_of(std::uint64_t bytes) {
  return std::max<std::uint64_t>(1, (bytes + Memory::slot_bytes - 1) / Memory::slot_bytes);
}

// Nothing lies behind a region for at least a quarter of its size, so that an index a little too large falls
// into it.
std::uint64_t gap_slots(std::uint64_t slots) {
  return std::clamp<std::uint64_t>(slots / 4, 1, 4096);
}

void* map_zeroed(std::uint64_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

std::byte* host_allocate(std::uint64_t bytes) {
  if (bytes <= heap_limit) return static_cast<std::byte*>(std::calloc(std::max<std::uint64_t>(bytes, 1), 1));
  return static_cast<std::byte*>(map_zeroed(bytes));
}

std::uint64_t allocation_base(const Region& region) {
  return region.base - region.front;
}
std::uint64_t allocation_size(const Region& region) {
  return region.front + region.size + region.back;
}

void free_bytes(void* start, std::uint64_t bytes) {
  if (bytes <= heap_limit) {
    std::free(start);
  } else {
    munmap(start, bytes);
  }
}

void host_free(const Region& region) {
  const std::uint64_t bytes = allocation_size(region);
  if (region.host != nullptr) free_bytes(region.host - region.front, bytes);
  if (region.notes != nullptr) free_bytes(region.notes - region.front, bytes);
}

std::string in_words(const Region& region) {
  return fmt::format("{} ({} bytes at {:#x})", region.name, region.size, region.base);
}

}  // namespace

Memory::Memory(std::uint32_t device, std::uint64_t capacity)
    : window_(first_window + device * window_bytes), capacity_(capacity), next_image_(slots_per_window) {
  slots_ = static_cast<const Region**>(map_zeroed(slots_per_window * sizeof(Region*)));
  if (slots_ == nullptr) throw std::bad_alloc();
}

Memory::~Memory() {
  for (const auto* list : {&buffers_, &images_}) {
    for (const auto& region : *list) host_free(*region);
  }
  munmap(slots_, slots_per_window * sizeof(Region*));
}

std::optional<std::uint64_t> Memory::place(std::uint64_t bytes, std::uint64_t read_only,
                                           std::string_view name, bool image) {
  if (bytes > capacity_ - in_use_) return std::nullopt;
  if (!image && live_buffers_ == 0) forget_buffers();
  const std::uint64_t slots = slots_of(bytes);
  const std::uint64_t span = slots + gap_slots(slots);
  std::uint64_t first = 0;
  auto& list = image ? images_ : buffers_;
  auto position = image ? list.begin() : list.end();
  if (image) {
    if (span > next_image_ - (slots_per_window - slots_for_images)) return std::nullopt;
    first = next_image_ -= span;
  } else if (next_ + span + 1 <= slots_per_window - slots_for_images) {
    first = next_ + 1;
    next_ = first - 1 + span;
  } else {
    // Two tebibytes have been handed out: remember freed buffers no longer, and take the first hole.
    std::erase_if(list, [](const auto& region) { return region->freed; });
    std::uint64_t candidate = 1;
    position = list.begin();
    for (; position != list.end(); ++position) {
      const std::uint64_t start = (allocation_base(**position) - window_) / slot_bytes;
      if (candidate + span <= start) break;
      const std::uint64_t used = slots_of(allocation_size(**position));
      candidate = start + used + gap_slots(used);
    }
    if (position == list.end() && candidate + span > slots_per_window - slots_for_images) return std::nullopt;
    first = candidate;
  }

  auto region = std::make_unique<Region>();
  region->base = window_ + first * slot_bytes;
  region->size = bytes;
  region->read_only = read_only;
  region->host = host_allocate(bytes);
  if (region->host == nullptr) return std::nullopt;
  if (keep_notes_ && !image) {
    region->notes = reinterpret_cast<std::uint8_t*>(host_allocate(bytes));
    if (region->notes == nullptr) {
      host_free(*region);
      return std::nullopt;
    }
  }
  region->name = !name.empty() ? std::string(name) : fmt::format("buffer #{}", serial_);
  if (!image) ++serial_, ++live_buffers_;
  in_use_ += bytes;
  std::fill_n(slots_ + first, slots, region.get());
  const std::uint64_t base = region->base;
  list.insert(position, std::move(region));
  return base;
}

std::optional<std::uint64_t> Memory::allocate(std::uint64_t bytes, std::string_view name) {
  return place(bytes, 0, name, false);
}

std::optional<std::uint64_t> Memory::allocate_image(std::uint64_t bytes, std::uint64_t read_only,
                                                    std::string_view name) {
  return place(bytes, read_only, name, true);
}

void Memory::map(void* host, std::uint64_t bytes, std::string_view name) {
  auto region = std::make_unique<Region>();
  region->base = reinterpret_cast<std::uint64_t>(host);
  region->size = bytes;
  region->host = static_cast<std::byte*>(host);
  region->name = name;
  const auto at = std::upper_bound(mapped_.begin(), mapped_.end(), region->base,
                                   [](std::uint64_t base, const auto& other) { return base < other->base; });
  mapped_.insert(at, std::move(region));
}

bool Memory::release(std::uint64_t address) {
  const auto starts_there = [&](const auto& region) {
    return !region->freed && allocation_base(*region) == address;
  };
  if (const auto m = std::find_if(mapped_.begin(), mapped_.end(), starts_there); m != mapped_.end()) {
    mapped_.erase(m);
    return true;
  }
  for (auto* list : {&buffers_, &images_}) {
    const auto at =
        std::lower_bound(list->begin(), list->end(), address,
                         [](const auto& region, std::uint64_t a) { return allocation_base(*region) < a; });
    if (at == list->end() || !starts_there(*at)) continue;
    Region& region = **at;
    std::fill_n(slots_ + (address - window_) / slot_bytes, slots_of(allocation_size(region)), nullptr);
    host_free(region);
    region.host = nullptr;
    region.notes = nullptr;
    region.freed = true;
    in_use_ -= allocation_size(region);
    if (list == &buffers_) {
      --live_buffers_;
    } else {
      // Images are not remembered; the room of the most recent ones is used again.
      list->erase(at);
      next_image_ =
          list->empty() ? slots_per_window : (allocation_base(*list->front()) - window_) / slot_bytes;
    }
    return true;
  }
  return false;
}

const Region* Memory::around(std::uint64_t address) const {
  const std::uint64_t offset = address - window_;
  const Region* region = offset < window_bytes ? slots_[offset / slot_bytes] : find_mapped(address);
  if (region == nullptr || address - allocation_base(*region) >= allocation_size(*region)) return nullptr;
  return region;
}

bool Memory::name_range(std::uint64_t address, std::uint64_t bytes, std::string_view name) {
  // An empty range is named at its allocation's start or end as well.
  const Region* found = around(address);
  if (found == nullptr && bytes == 0) found = around(address - 1);
  if (found == nullptr) return false;
  auto* region = const_cast<Region*>(found);  // ours: the slots only look const
  const std::uint64_t start = allocation_base(*region);
  const std::uint64_t size = allocation_size(*region);
  if (bytes > size - (address - start)) return false;
  std::byte* host = region->host - region->front;
  std::uint8_t* notes = region->notes != nullptr ? region->notes - region->front : nullptr;
  region->name = name;
  region->front = address - start;
  region->size = bytes;
  region->back = size - region->front - bytes;
  region->base = address;
  region->host = host + region->front;
  if (notes != nullptr) region->notes = notes + region->front;
  return true;
}

std::byte* Memory::translate_for_host(std::uint64_t address, std::uint64_t bytes) const {
  const Region* region = around(address);
  if (region == nullptr) return nullptr;
  const std::uint64_t offset = address - allocation_base(*region);
  return bytes <= allocation_size(*region) - offset ? region->host - region->front + offset : nullptr;
}

std::uint8_t* Memory::notes_for_host(std::uint64_t address, std::uint64_t bytes) const {
  const Region* region = around(address);
  if (region == nullptr || region->notes == nullptr) return nullptr;
  const std::uint64_t offset = address - allocation_base(*region);
  return bytes <= allocation_size(*region) - offset ? region->notes - region->front + offset : nullptr;
}

void Memory::mark(std::uint64_t address, std::uint64_t bytes, bool written) {
  std::uint8_t* notes = notes_for_host(address, bytes);
  if (notes != nullptr) std::memset(notes, written ? note::written : 0, bytes);
}

void Memory::copy_notes(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  std::uint8_t* target = notes_for_host(to, bytes);
  if (target == nullptr) return;
  const std::uint8_t* source = notes_for_host(from, bytes);
  if (source != nullptr) {
    std::memmove(target, source, bytes);
  } else {
    std::memset(target, note::written, bytes);
  }
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> Memory::allocation(std::uint64_t address) const {
  const Region* region = around(address);
  if (region == nullptr) return std::nullopt;
  return std::pair{allocation_base(*region), allocation_size(*region)};
}

void Memory::forget_buffers() {
  buffers_.clear();
  next_ = 0;
  serial_ = 0;
}

const Region* Memory::find_mapped(std::uint64_t address) const {
  const auto after = std::upper_bound(mapped_.begin(), mapped_.end(), address,
                                      [](std::uint64_t a, const auto& region) { return a < region->base; });
  if (after == mapped_.begin()) return nullptr;
  const Region* region = std::prev(after)->get();
  return address - region->base < region->size ? region : nullptr;
}

std::string Memory::explain(std::uint64_t address, std::uint64_t bytes) const {
  if (address < 4096) return "near the null address";
  const Region* before = nullptr;
  const Region* after = nullptr;
  for (const auto* list : {&buffers_, &images_, &mapped_}) {
    for (const auto& region : *list) {
      if (region->base <= address) {
        if (before == nullptr || region->base > before->base) before = region.get();
      } else if (after == nullptr || region->base < after->base) {
        after = region.get();
      }
    }
  }
  if (before != nullptr && address - before->base < before->size) {
    if (before->freed) return fmt::format("in freed buffer {}", in_words(*before));
    if (!before->holds(address, bytes)) {
      return fmt::format("{} bytes over the end of {}", address + bytes - before->base - before->size,
                         in_words(*before));
    }
    return fmt::format("at byte {} of {}", address - before->base, in_words(*before));
  }
  const std::uint64_t past = before != nullptr ? address - before->base - before->size : ~std::uint64_t{0};
  const std::uint64_t ahead = after != nullptr ? after->base - address : ~std::uint64_t{0};
  if (before == nullptr && after == nullptr) return "in no buffer (nothing is allocated)";
  // Whichever end is nearer; an address terabytes away is near nothing.
  if (std::min(past, ahead) > window_bytes) return "in no buffer, nor near one";
  if (past <= ahead) {
    return fmt::format("{} bytes after the end of {}{}", past, before->freed ? "freed " : "",
                       in_words(*before));
  }
  return fmt::format("{} bytes before {}{}", ahead, after->freed ? "freed " : "", in_words(*after));
}

}  // namespace attest::device::sim
