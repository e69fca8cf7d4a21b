// SPDX-License-Identifier: MIT
//
// Devices: as many MI300X as ATTEST_SIM_DEVICES says, with the figures ROCm gives for one.
#include <hip/hip_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "device/simulator/hip_api/export.h"
#include "device/simulator/hip_api/properties_r0600.h"
#include "device/simulator/hip_api/runtime.h"

using namespace attest::device::sim::hip;

namespace {

constexpr char device_name[] = "AMD Instinct MI300X (attest simulator)";
constexpr char arch_name[] = "gfx942:sramecc+:xnack-";
constexpr int compute_units = 304;
constexpr int lds_bytes = 64 * 1024;
constexpr int clock_khz = 2100000;
constexpr int memory_clock_khz = 1300000;
constexpr int largest_int = 2147483647;

bool is_device(int ordinal) {
  return ordinal >= 0 && ordinal < Runtime::get().device_count();
}

hipDeviceArch_t architecture() {
  hipDeviceArch_t arch = {};
  arch.hasGlobalInt32Atomics = arch.hasGlobalFloatAtomicExch = arch.hasSharedInt32Atomics = 1;
  arch.hasSharedFloatAtomicExch = arch.hasFloatAtomicAdd = arch.hasGlobalInt64Atomics = 1;
  arch.hasSharedInt64Atomics = arch.hasDoubles = arch.hasWarpVote = arch.hasWarpBallot = 1;
  arch.hasWarpShuffle = arch.hasThreadFenceSystem = arch.has3dGrid = 1;
  return arch;
}

/// The fields both layouts of the properties have under the same name.
template <typename Properties>
void fill(Properties& p, int ordinal) {
  p = {};
  std::memcpy(p.name, device_name, sizeof device_name);
  std::memcpy(p.gcnArchName, arch_name, sizeof arch_name);
  p.totalGlobalMem = Runtime::get().device(ordinal).memory.capacity();
  p.sharedMemPerBlock = lds_bytes;
  p.regsPerBlock = 65536;
  p.warpSize = 64;
  p.maxThreadsPerBlock = 1024;
  std::fill_n(p.maxThreadsDim, 3, 1024);
  p.maxGridSize[0] = largest_int;
  p.maxGridSize[1] = p.maxGridSize[2] = 65536;
  p.clockRate = clock_khz;
  p.memoryClockRate = memory_clock_khz;
  p.memoryBusWidth = 8192;
  p.totalConstMem = largest_int;
  p.major = 9;
  p.minor = 4;
  p.multiProcessorCount = compute_units;
  p.l2CacheSize = 4 * 1024 * 1024;
  p.maxThreadsPerMultiProcessor = 2048;
  p.clockInstructionRate = 100000;
  p.arch = architecture();
  p.concurrentKernels = 1;
  p.pciBusID = ordinal + 1;
  p.maxSharedMemoryPerMultiProcessor = lds_bytes;
  p.canMapHostMemory = 1;
  p.cooperativeLaunch = 1;
  p.memPitch = largest_int;
  p.textureAlignment = 256;
  p.texturePitchAlignment = 256;
  p.ECCEnabled = 1;
  p.isLargeBar = 1;
}

}  // namespace

ATTEST_HIP hipError_t hipInit(unsigned int flags) {
  return api([&] { return flags == 0 ? hipSuccess : hipErrorInvalidValue; });
}

ATTEST_HIP hipError_t hipDriverGetVersion(int* version) {
  return api([&] {
    if (version == nullptr) return hipErrorInvalidValue;
    *version = HIP_VERSION;
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipRuntimeGetVersion(int* version) {
  return hipDriverGetVersion(version);
}

ATTEST_HIP hipError_t hipGetDeviceCount(int* count) {
  return api([&] {
    if (count == nullptr) return hipErrorInvalidValue;
    *count = Runtime::get().device_count();
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipSetDevice(int ordinal) {
  return api([&] {
    if (!is_device(ordinal)) return hipErrorInvalidDevice;
    set_current_device(ordinal);
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipGetDevice(int* ordinal) {
  return api([&] {
    if (ordinal == nullptr) return hipErrorInvalidValue;
    *ordinal = current_device();
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipDeviceGet(hipDevice_t* handle, int ordinal) {
  return api([&] {
    if (handle == nullptr) return hipErrorInvalidValue;
    if (!is_device(ordinal)) return hipErrorInvalidDevice;
    *handle = ordinal;
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipDeviceGetName(char* name, int size, hipDevice_t ordinal) {
  return api([&] {
    if (name == nullptr || size <= 0) return hipErrorInvalidValue;
    if (!is_device(ordinal)) return hipErrorInvalidDevice;
    const std::size_t length =
        std::min<std::size_t>(static_cast<std::size_t>(size) - 1, sizeof device_name - 1);
    std::memcpy(name, device_name, length);
    name[length] = '\0';
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipDeviceTotalMem(size_t* bytes, hipDevice_t ordinal) {
  return api([&] {
    if (bytes == nullptr) return hipErrorInvalidValue;
    if (!is_device(ordinal)) return hipErrorInvalidDevice;
    *bytes = Runtime::get().device(ordinal).memory.capacity();
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int ordinal) {
  return api([&] {
    if (properties == nullptr) return hipErrorInvalidValue;
    if (!is_device(ordinal)) return hipErrorInvalidDevice;
    fill(*properties, ordinal);
    properties->gcnArch = 942;
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipGetDevicePropertiesR0600(PropertiesR0600* properties, int ordinal) {
  return api([&] {
    if (properties == nullptr) return hipErrorInvalidValue;
    if (!is_device(ordinal)) return hipErrorInvalidDevice;
    fill(*properties, ordinal);
    properties->sharedMemPerMultiprocessor = lds_bytes;
    properties->maxBlocksPerMultiProcessor = 32;
    properties->unifiedAddressing = 1;
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int ordinal) {
  return api([&] {
    if (value == nullptr) return hipErrorInvalidValue;
    if (!is_device(ordinal)) return hipErrorInvalidDevice;
    hipDeviceProp_t p;
    fill(p, ordinal);
    switch (attribute) {
      case hipDeviceAttributeEccEnabled:
        *value = p.ECCEnabled;
        break;
      case hipDeviceAttributeCanMapHostMemory:
        *value = p.canMapHostMemory;
        break;
      case hipDeviceAttributeClockRate:
        *value = p.clockRate;
        break;
      case hipDeviceAttributeComputeMode:
        *value = p.computeMode;
        break;
      case hipDeviceAttributeConcurrentKernels:
        *value = p.concurrentKernels;
        break;
      case hipDeviceAttributeCooperativeLaunch:
        *value = p.cooperativeLaunch;
        break;
      case hipDeviceAttributeCooperativeMultiDeviceLaunch:
        *value = p.cooperativeMultiDeviceLaunch;
        break;
      case hipDeviceAttributeConcurrentManagedAccess:
        *value = p.concurrentManagedAccess;
        break;
      case hipDeviceAttributeManagedMemory:
        *value = p.managedMemory;
        break;
      case hipDeviceAttributeIntegrated:
        *value = p.integrated;
        break;
      case hipDeviceAttributeIsMultiGpuBoard:
        *value = p.isMultiGpuBoard;
        break;
      case hipDeviceAttributeKernelExecTimeout:
        *value = p.kernelExecTimeoutEnabled;
        break;
      case hipDeviceAttributeL2CacheSize:
        *value = p.l2CacheSize;
        break;
      case hipDeviceAttributeComputeCapabilityMajor:
        *value = p.major;
        break;
      case hipDeviceAttributeComputeCapabilityMinor:
        *value = p.minor;
        break;
      case hipDeviceAttributeMaxBlockDimX:
        *value = p.maxThreadsDim[0];
        break;
      case hipDeviceAttributeMaxBlockDimY:
        *value = p.maxThreadsDim[1];
        break;
      case hipDeviceAttributeMaxBlockDimZ:
        *value = p.maxThreadsDim[2];
        break;
      case hipDeviceAttributeMaxGridDimX:
        *value = p.maxGridSize[0];
        break;
      case hipDeviceAttributeMaxGridDimY:
        *value = p.maxGridSize[1];
        break;
      case hipDeviceAttributeMaxGridDimZ:
        *value = p.maxGridSize[2];
        break;
      case hipDeviceAttributeMaxThreadsPerBlock:
        *value = p.maxThreadsPerBlock;
        break;
      case hipDeviceAttributeMaxThreadsPerMultiProcessor:
        *value = p.maxThreadsPerMultiProcessor;
        break;
      case hipDeviceAttributeMaxPitch:
        *value = largest_int;
        break;
      case hipDeviceAttributeMemoryBusWidth:
        *value = p.memoryBusWidth;
        break;
      case hipDeviceAttributeMemoryClockRate:
        *value = p.memoryClockRate;
        break;
      case hipDeviceAttributePhysicalMultiProcessorCount:
      case hipDeviceAttributeMultiprocessorCount:
        *value = p.multiProcessorCount;
        break;
      case hipDeviceAttributePageableMemoryAccess:
        *value = p.pageableMemoryAccess;
        break;
      case hipDeviceAttributePciBusId:
        *value = p.pciBusID;
        break;
      case hipDeviceAttributePciDeviceId:
        *value = p.pciDeviceID;
        break;
      case hipDeviceAttributePciDomainID:
        *value = p.pciDomainID;
        break;
      case hipDeviceAttributeMaxRegistersPerBlock:
        *value = p.regsPerBlock;
        break;
      case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
      case hipDeviceAttributeMaxSharedMemoryPerBlock:
        *value = lds_bytes;
        break;
      case hipDeviceAttributeTextureAlignment:
        *value = static_cast<int>(p.textureAlignment);
        break;
      case hipDeviceAttributeTotalConstantMemory:
        *value = largest_int;
        break;
      case hipDeviceAttributeWarpSize:
        *value = p.warpSize;
        break;
      case hipDeviceAttributeClockInstructionRate:
        *value = p.clockInstructionRate;
        break;
      case hipDeviceAttributeIsLargeBar:
        *value = p.isLargeBar;
        break;
      case hipDeviceAttributeAsicRevision:
        *value = p.asicRevision;
        break;
      case hipDeviceAttributeMemoryPoolsSupported:
      case hipDeviceAttributeImageSupport:
      case hipDeviceAttributeCanUseStreamWaitValue:
      case hipDeviceAttributeFineGrainSupport:
        *value = 0;
        break;
      default:
        return hipErrorInvalidValue;
    }
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipDeviceReset() {
  return hipDeviceSynchronize();
}

ATTEST_HIP hipError_t hipDeviceComputeCapability(int* major, int* minor, hipDevice_t ordinal) {
  return api([&] {
    if (major == nullptr || minor == nullptr) return hipErrorInvalidValue;
    if (!is_device(ordinal)) return hipErrorInvalidDevice;
    *major = 9;
    *minor = 4;
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipDeviceGetPCIBusId(char* id, int bytes, int ordinal) {
  return api([&] {
    if (id == nullptr || bytes <= 0) return hipErrorInvalidValue;
    if (!is_device(ordinal)) return hipErrorInvalidDevice;
    std::snprintf(id, static_cast<std::size_t>(bytes), "0000:%02x:00.0", static_cast<unsigned>(ordinal) + 1);
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipChooseDevice(int* ordinal, const hipDeviceProp_t*) {
  return api([&] {
    if (ordinal == nullptr) return hipErrorInvalidValue;
    *ordinal = 0;
    return hipSuccess;
  });
}

// Kernels of one simulated device cannot reach the memory of another; copies can.
ATTEST_HIP hipError_t hipDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  return api([&] {
    if (can == nullptr) return hipErrorInvalidValue;
    if (!is_device(ordinal) || !is_device(peer)) return hipErrorInvalidDevice;
    *can = 0;
    return hipSuccess;
  });
}
ATTEST_HIP hipError_t hipDeviceEnablePeerAccess(int peer, unsigned int) {
  return remember(is_device(peer) ? hipErrorPeerAccessUnsupported : hipErrorInvalidDevice);
}
ATTEST_HIP hipError_t hipDeviceDisablePeerAccess(int peer) {
  return remember(is_device(peer) ? hipErrorPeerAccessNotEnabled : hipErrorInvalidDevice);
}

ATTEST_HIP hipError_t hipSetDeviceFlags(unsigned int) {
  return hipSuccess;
}
ATTEST_HIP hipError_t hipGetDeviceFlags(unsigned int* flags) {
  return api([&] {
    if (flags == nullptr) return hipErrorInvalidValue;
    *flags = hipDeviceScheduleAuto;
    return hipSuccess;
  });
}
ATTEST_HIP hipError_t hipDeviceSetCacheConfig(hipFuncCache_t) {
  return hipSuccess;
}
ATTEST_HIP hipError_t hipDeviceGetCacheConfig(hipFuncCache_t* config) {
  return api([&] {
    if (config == nullptr) return hipErrorInvalidValue;
    *config = hipFuncCachePreferNone;
    return hipSuccess;
  });
}
ATTEST_HIP hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig) {
  return hipSuccess;
}
ATTEST_HIP hipError_t hipDeviceGetSharedMemConfig(hipSharedMemConfig* config) {
  return api([&] {
    if (config == nullptr) return hipErrorInvalidValue;
    *config = hipSharedMemBankSizeFourByte;
    return hipSuccess;
  });
}
ATTEST_HIP hipError_t hipDeviceGetLimit(std::size_t* value, hipLimit_t limit) {
  return api([&] {
    if (value == nullptr) return hipErrorInvalidValue;
    if (limit != hipLimitMallocHeapSize) return hipErrorUnsupportedLimit;
    *value = 0;  // no malloc in kernels
    return hipSuccess;
  });
}
