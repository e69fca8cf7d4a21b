// SPDX-License-Identifier: MIT
//
// Allocation, copies and fills. Device pointers are guest addresses; they never point to anything in this
// process, so a program that dereferences one on the host is stopped by the host's own memory protection, as
// with a real device.
#include <hip/hip_runtime_api.h>

#include <cstring>

#include "device/simulator/hip_api/export.h"
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
  if (kind != hipMemcpyDefault && (to_device != wants_to || from_device != wants_from))
    return hipErrorInvalidValue;
  SimDevice& d = to_device ? *runtime.owner(to) : from_device ? *runtime.owner(from) : device();
  const std::scoped_lock lock(d.mutex);
  void* target = to_device ? device_bytes(to, bytes) : to;
  const void* source = from_device ? device_bytes(from, bytes) : from;
  if (target == nullptr || source == nullptr) return hipErrorInvalidValue;
  std::memmove(target, source, bytes);
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
  SimDevice* owner = Runtime::get().owner(to);
  if (owner == nullptr || count > ~std::size_t{0} / sizeof(T)) return hipErrorInvalidValue;
  const std::scoped_lock lock(owner->mutex);
  std::byte* target = owner->memory.translate_for_host(address_of(to), count * sizeof(T));
  if (target == nullptr) return hipErrorInvalidValue;
  owner->memory.mark(address_of(to), count * sizeof(T), true);
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
    if (owner == nullptr) return hipErrorInvalidValue;
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
