// SPDX-License-Identifier: MIT
//
// Allocation, copies and fills. Device pointers are guest addresses; they never point to anything in this
// process, so a program that dereferences one on the host is stopped by the host's own memory protection, as
// with a real device.
#include <hip/hip_runtime_api.h>

#include <cstring>

#include "device/simulator/hip_api/export.h"
#include "device/simulator/hip_api/host_memory.h"
#include "device/simulator/hip_api/runtime.h"

using namespace attest::device::sim::hip;

namespace {

std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

/// Where device memory lies on the host; nullptr when it is not wholly inside an allocation.
std::byte* device_bytes(const void* pointer, std::size_t bytes) {
  SimDevice* owner = Runtime::get().owner(pointer);
  return owner != nullptr ? owner->memory.translate_for_host(address_of(pointer), bytes) : nullptr;
}

hipError_t copy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
  if (bytes == 0) return hipSuccess;
  if (to == nullptr || from == nullptr) return hipErrorInvalidValue;
  if (kind > hipMemcpyDefault) return hipErrorInvalidMemcpyDirection;
  // Pointers say where they belong; a kind that contradicts them is an error, as in ROCm.
  Runtime& runtime = Runtime::get();
  const bool to_device = runtime.owner(to) != nullptr;
  const bool from_device = runtime.owner(from) != nullptr;
  const bool wants_to = kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice;
  const bool wants_from = kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice;
  // Memory that host and device share passes for either.
  const auto contradicts = [&](const void* pointer, bool on_device, bool wanted) {
    return on_device != wanted && !(wanted && is_visible_host(pointer, bytes));
  };
  if (kind != hipMemcpyDefault &&
      (contradicts(to, to_device, wants_to) || contradicts(from, from_device, wants_from)))
    return hipErrorInvalidValue;
  SimDevice& d = to_device ? *runtime.owner(to) : from_device ? *runtime.owner(from) : device();
  const std::scoped_lock lock(d.mutex);
  void* target = to_device ? device_bytes(to, bytes) : to;
  const void* source = from_device ? device_bytes(from, bytes) : from;
  if (target == nullptr || source == nullptr) return hipErrorInvalidValue;
  std::memmove(target, source, bytes);
  d.clock_ns += 10'000 + bytes / 50;  // 50 GB/s, and ten microseconds to begin
  if (to_device && from_device && runtime.owner(from) == &d) {
    d.memory.copy_notes(address_of(to), address_of(from), bytes);
  } else if (to_device) {
    d.memory.mark(address_of(to), bytes, true);
  }
  return hipSuccess;
}

template <typename T>
hipError_t fill(void* to, T value, std::size_t count) {
  if (count == 0) return hipSuccess;
  if (count > ~std::size_t{0} / sizeof(T)) return hipErrorInvalidValue;
  SimDevice* owner = Runtime::get().owner(to);
  if (owner == nullptr && !is_visible_host(to, count * sizeof(T))) return hipErrorInvalidValue;
  SimDevice& d = owner != nullptr ? *owner : device();
  const std::scoped_lock lock(d.mutex);
  std::byte* target = owner != nullptr ? d.memory.translate_for_host(address_of(to), count * sizeof(T))
                                       : static_cast<std::byte*>(to);
  if (target == nullptr) return hipErrorInvalidValue;
  if (owner != nullptr) d.memory.mark(address_of(to), count * sizeof(T), true);
  if constexpr (sizeof(T) == 1) {
    std::memset(target, value, count);
  } else {
    for (std::size_t k = 0; k < count; ++k) std::memcpy(target + k * sizeof(T), &value, sizeof value);
  }
  return hipSuccess;
}

}  // namespace

ATTEST_HIP hipError_t hipMalloc(void** pointer, std::size_t bytes) {
  return api([&] {
    if (pointer == nullptr) return hipErrorInvalidValue;
    *pointer = nullptr;
    if (bytes == 0) return hipSuccess;
    SimDevice& d = device();
    const std::scoped_lock lock(d.mutex);
    const auto address = d.memory.allocate(bytes);
    if (!address) return hipErrorOutOfMemory;
    *pointer = reinterpret_cast<void*>(*address);
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipFree(void* pointer) {
  return api([&] {
    if (pointer == nullptr) return hipSuccess;
    SimDevice* owner = Runtime::get().owner(pointer);
    if (owner == nullptr) return host_release(pointer) ? hipSuccess : hipErrorInvalidValue;
    const std::scoped_lock lock(owner->mutex);
    return owner->memory.release(address_of(pointer)) ? hipSuccess : hipErrorInvalidValue;
  });
}

ATTEST_HIP hipError_t hipMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  return api([&] {
    SimDevice& d = device();
    const std::scoped_lock lock(d.mutex);
    if (free_bytes != nullptr) *free_bytes = d.memory.capacity() - d.memory.in_use();
    if (total != nullptr) *total = d.memory.capacity();
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
  return api([&] { return copy(to, from, bytes, kind); });
}
ATTEST_HIP hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                                     hipStream_t stream) {
  return api([&] {
    if (!Runtime::get().is_stream(stream)) return hipErrorInvalidHandle;
    return copy(to, from, bytes, kind);
  });
}
ATTEST_HIP hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void* from, std::size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyHostToDevice);
}
ATTEST_HIP hipError_t hipMemcpyDtoH(void* to, hipDeviceptr_t from, std::size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyDeviceToHost);
}
ATTEST_HIP hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, std::size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyDeviceToDevice);
}

ATTEST_HIP hipError_t hipMemset(void* to, int value, std::size_t bytes) {
  return api([&] { return fill(to, static_cast<unsigned char>(value), bytes); });
}
ATTEST_HIP hipError_t hipMemsetAsync(void* to, int value, std::size_t bytes, hipStream_t stream) {
  return api([&] {
    if (!Runtime::get().is_stream(stream)) return hipErrorInvalidHandle;
    return fill(to, static_cast<unsigned char>(value), bytes);
  });
}
ATTEST_HIP hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, std::size_t count) {
  return api([&] { return fill(to, value, count); });
}
ATTEST_HIP hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, std::size_t count) {
  return api([&] { return fill(to, value, count); });
}
ATTEST_HIP hipError_t hipMemsetD32(hipDeviceptr_t to, int value, std::size_t count) {
  return api([&] { return fill(to, value, count); });
}

ATTEST_HIP hipError_t hipMemcpyWithStream(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                                          hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, kind, stream);
}
ATTEST_HIP hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void* from, std::size_t bytes,
                                         hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, hipMemcpyHostToDevice, stream);
}
ATTEST_HIP hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, std::size_t bytes,
                                         hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToHost, stream);
}
ATTEST_HIP hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, std::size_t bytes,
                                         hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToDevice, stream);
}
ATTEST_HIP hipError_t hipMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyDeviceToDevice);
}
ATTEST_HIP hipError_t hipMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                         hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToDevice, stream);
}
ATTEST_HIP hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, std::size_t count,
                                       hipStream_t) {
  return hipMemsetD8(to, value, count);
}
ATTEST_HIP hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, std::size_t count,
                                        hipStream_t) {
  return hipMemsetD16(to, value, count);
}
ATTEST_HIP hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, std::size_t count, hipStream_t) {
  return hipMemsetD32(to, value, count);
}
ATTEST_HIP hipError_t hipMallocAsync(void** pointer, std::size_t bytes, hipStream_t stream) {
  if (!Runtime::get().is_stream(stream)) return remember(hipErrorInvalidHandle);
  return hipMalloc(pointer, bytes);
}
ATTEST_HIP hipError_t hipFreeAsync(void* pointer, hipStream_t stream) {
  if (!Runtime::get().is_stream(stream)) return remember(hipErrorInvalidHandle);
  return hipFree(pointer);
}
ATTEST_HIP hipError_t hipExtMallocWithFlags(void** pointer, std::size_t bytes, unsigned int) {
  return hipMalloc(pointer, bytes);
}
ATTEST_HIP hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, std::size_t* bytes,
                                            hipDeviceptr_t pointer) {
  return api([&] {
    SimDevice* owner = Runtime::get().owner(pointer);
    if (owner == nullptr) return hipErrorInvalidDevicePointer;
    const std::scoped_lock lock(owner->mutex);
    const auto found = owner->memory.allocation(address_of(pointer));
    if (!found) return hipErrorInvalidDevicePointer;
    if (base != nullptr) *base = reinterpret_cast<hipDeviceptr_t>(found->first);
    if (bytes != nullptr) *bytes = found->second;
    return hipSuccess;
  });
}
