// SPDX-License-Identifier: MIT
#include "device/simulator/hip_api/host_memory.h"

#include <hip/hip_runtime_api.h>
#include <sys/mman.h>

#include <map>
#include <mutex>

#include "device/simulator/hip_api/export.h"
#include "device/simulator/hip_api/runtime.h"

using namespace attest::device::sim::hip;

namespace {

enum class Kind { pinned, managed, registered };

struct Block {
  std::size_t bytes;
  Kind kind;
  unsigned int flags;
};

struct HostMemory {
  std::mutex mutex;
  std::map<std::uintptr_t, Block> blocks;

  static HostMemory& get() {
    static HostMemory& all = *new HostMemory;
    return all;
  }
  /// The block around `pointer`, or end.
  auto around(const void* pointer) {
    const auto at = reinterpret_cast<std::uintptr_t>(pointer);
    auto after = blocks.upper_bound(at);
    if (after == blocks.begin()) return blocks.end();
    --after;
    return at - after->first < after->second.bytes ? after : blocks.end();
  }
};

template <typename Use>
void on_all_devices(Use&& use) {
  Runtime& runtime = Runtime::get();
  for (int d = 0; d < runtime.device_count(); ++d) {
    const std::scoped_lock lock(runtime.device(d).mutex);
    use(runtime.device(d));
  }
}

void publish(void* pointer, std::size_t bytes, const std::string& name, Kind kind, unsigned int flags) {
  on_all_devices([&](SimDevice& d) { d.memory.map(pointer, bytes, name); });
  HostMemory& all = HostMemory::get();
  const std::scoped_lock lock(all.mutex);
  all.blocks[reinterpret_cast<std::uintptr_t>(pointer)] = {bytes, kind, flags};
}

void* allocate(std::size_t bytes, const std::string& name, Kind kind, unsigned int flags) {
  void* pointer =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pointer == MAP_FAILED) return nullptr;
  publish(pointer, bytes, name, kind, flags);
  return pointer;
}

bool release(void* pointer, bool registered) {
  HostMemory& all = HostMemory::get();
  std::size_t bytes = 0;
  {
    const std::scoped_lock lock(all.mutex);
    const auto found = all.blocks.find(reinterpret_cast<std::uintptr_t>(pointer));
    if (found == all.blocks.end() || (found->second.kind == Kind::registered) != registered) return false;
    bytes = found->second.bytes;
    all.blocks.erase(found);
  }
  on_all_devices([&](SimDevice& d) { d.memory.release(reinterpret_cast<std::uint64_t>(pointer)); });
  if (!registered) munmap(pointer, bytes);
  return true;
}

hipError_t host_malloc(void** pointer, std::size_t bytes, const char* name, Kind kind, unsigned int flags) {
  if (pointer == nullptr) return hipErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return kind == Kind::managed ? hipErrorInvalidValue : hipSuccess;
  *pointer = allocate(bytes, name, kind, flags);
  return *pointer != nullptr ? hipSuccess : hipErrorOutOfMemory;
}

}  // namespace

namespace attest::device::sim::hip {

void* host_allocate(std::size_t bytes, const std::string& name) {
  return allocate(bytes, name, Kind::managed, 0);
}

bool host_release(void* pointer) {
  return release(pointer, false);
}

bool is_visible_host(const void* pointer, std::size_t bytes) {
  HostMemory& all = HostMemory::get();
  const std::scoped_lock lock(all.mutex);
  const auto block = all.around(pointer);
  if (block == all.blocks.end()) return false;
  return bytes <= block->second.bytes - (reinterpret_cast<std::uintptr_t>(pointer) - block->first);
}

}  // namespace attest::device::sim::hip

ATTEST_HIP hipError_t hipHostMalloc(void** pointer, std::size_t bytes, unsigned int flags) {
  return api([&] { return host_malloc(pointer, bytes, "pinned memory", Kind::pinned, flags); });
}
ATTEST_HIP hipError_t hipMallocHost(void** pointer, std::size_t bytes) {
  return hipHostMalloc(pointer, bytes, 0);
}
ATTEST_HIP hipError_t hipHostAlloc(void** pointer, std::size_t bytes, unsigned int flags) {
  return hipHostMalloc(pointer, bytes, flags);
}
ATTEST_HIP hipError_t hipMallocManaged(void** pointer, std::size_t bytes, unsigned int flags) {
  if (flags != hipMemAttachGlobal && flags != hipMemAttachHost) return remember(hipErrorInvalidValue);
  return api([&] { return host_malloc(pointer, bytes, "managed memory", Kind::managed, flags); });
}
ATTEST_HIP hipError_t hipHostFree(void* pointer) {
  return api([&] { return pointer == nullptr || host_release(pointer) ? hipSuccess : hipErrorInvalidValue; });
}
ATTEST_HIP hipError_t hipFreeHost(void* pointer) {
  return hipHostFree(pointer);
}
ATTEST_HIP hipError_t hipHostRegister(void* pointer, std::size_t bytes, unsigned int flags) {
  return api([&] {
    if (pointer == nullptr || bytes == 0) return hipErrorInvalidValue;
    if (is_visible_host(pointer, 1)) return hipErrorHostMemoryAlreadyRegistered;
    publish(pointer, bytes, "registered memory", Kind::registered, flags);
    return hipSuccess;
  });
}
ATTEST_HIP hipError_t hipHostUnregister(void* pointer) {
  return api([&] { return release(pointer, true) ? hipSuccess : hipErrorHostMemoryNotRegistered; });
}
ATTEST_HIP hipError_t hipHostGetDevicePointer(void** device_pointer, void* pointer, unsigned int) {
  return api([&] {
    if (device_pointer == nullptr || !is_visible_host(pointer, 1)) return hipErrorInvalidValue;
    *device_pointer = pointer;
    return hipSuccess;
  });
}
ATTEST_HIP hipError_t hipHostGetFlags(unsigned int* flags, void* pointer) {
  return api([&] {
    HostMemory& all = HostMemory::get();
    const std::scoped_lock lock(all.mutex);
    const auto block = all.around(pointer);
    if (flags == nullptr || block == all.blocks.end()) return hipErrorInvalidValue;
    *flags = block->second.flags;
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer) {
  return api([&] {
    if (attributes == nullptr) return hipErrorInvalidValue;
    *attributes = {};
    Runtime& runtime = Runtime::get();
    for (int d = 0; d < runtime.device_count(); ++d) {
      if (!runtime.device(d).memory.owns(reinterpret_cast<std::uint64_t>(pointer))) continue;
      if (!runtime.device(d).memory.allocation(reinterpret_cast<std::uint64_t>(pointer))) break;
      attributes->memoryType = hipMemoryTypeDevice;
      attributes->device = d;
      attributes->devicePointer = const_cast<void*>(pointer);
      return hipSuccess;
    }
    HostMemory& all = HostMemory::get();
    const std::scoped_lock lock(all.mutex);
    const auto block = all.around(pointer);
    if (block == all.blocks.end()) return hipErrorInvalidValue;
    attributes->memoryType = hipMemoryTypeHost;
    attributes->device = current_device();
    attributes->devicePointer = attributes->hostPointer = const_cast<void*>(pointer);
    attributes->isManaged = block->second.kind == Kind::managed ? 1 : 0;
    attributes->allocationFlags = block->second.flags;
    return hipSuccess;
  });
}

// Hints: memory is where it is.
ATTEST_HIP hipError_t hipMemAdvise(const void* pointer, std::size_t bytes, hipMemoryAdvise, int) {
  return api([&] { return is_visible_host(pointer, bytes) ? hipSuccess : hipErrorInvalidValue; });
}
ATTEST_HIP hipError_t hipMemPrefetchAsync(const void* pointer, std::size_t bytes, int, hipStream_t stream) {
  return api([&] {
    if (!Runtime::get().is_stream(stream)) return hipErrorInvalidHandle;
    return is_visible_host(pointer, bytes) ? hipSuccess : hipErrorInvalidValue;
  });
}
ATTEST_HIP hipError_t hipStreamAttachMemAsync(hipStream_t stream, void*, std::size_t, unsigned int) {
  return api([&] { return Runtime::get().is_stream(stream) ? hipSuccess : hipErrorInvalidHandle; });
}
