// SPDX-License-Identifier: MIT
//
// Two- and three-dimensional memory: rows at a pitch, copied and filled row by row.
#include <hip/hip_runtime_api.h>

#include <cstddef>

#include "device/simulator/hip_api/export.h"
#include "device/simulator/hip_api/runtime.h"

using namespace attest::device::sim::hip;

namespace {

constexpr std::size_t pitch_alignment = 256;

std::size_t pitch_of(std::size_t width) {
  return (width + pitch_alignment - 1) / pitch_alignment * pitch_alignment;
}

template <typename Pointer>
Pointer* forward(Pointer* pointer, std::size_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<Pointer>, const std::byte, std::byte>;
  return static_cast<Byte*>(pointer) + bytes;
}

hipError_t copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                     std::size_t width, std::size_t height, hipMemcpyKind kind) {
  if (width == 0 || height == 0) return hipSuccess;
  if (width > to_pitch || width > from_pitch) return hipErrorInvalidPitchValue;
  for (std::size_t row = 0; row < height; ++row) {
    const hipError_t error =
        hipMemcpy(forward(to, row * to_pitch), forward(from, row * from_pitch), width, kind);
    if (error != hipSuccess) return error;
  }
  return hipSuccess;
}

}  // namespace

ATTEST_HIP hipError_t hipMallocPitch(void** pointer, std::size_t* pitch, std::size_t width,
                                     std::size_t height) {
  if (pitch == nullptr) return remember(hipErrorInvalidValue);
  *pitch = pitch_of(width);
  return hipMalloc(pointer, *pitch * height);
}

ATTEST_HIP hipError_t hipMemAllocPitch(hipDeviceptr_t* pointer, std::size_t* pitch, std::size_t width,
                                       std::size_t height, unsigned int) {
  return hipMallocPitch(pointer, pitch, width, height);
}

ATTEST_HIP hipError_t hipMalloc3D(hipPitchedPtr* pointer, hipExtent extent) {
  if (pointer == nullptr) return remember(hipErrorInvalidValue);
  pointer->pitch = pitch_of(extent.width);
  pointer->xsize = extent.width;
  pointer->ysize = extent.height;
  return hipMalloc(&pointer->ptr, pointer->pitch * extent.height * extent.depth);
}

ATTEST_HIP hipError_t hipMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                  std::size_t width, std::size_t height, hipMemcpyKind kind) {
  return api([&] { return copy_rows(to, to_pitch, from, from_pitch, width, height, kind); });
}
ATTEST_HIP hipError_t hipMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                                       std::size_t from_pitch, std::size_t width, std::size_t height,
                                       hipMemcpyKind kind, hipStream_t stream) {
  if (!Runtime::get().is_stream(stream)) return remember(hipErrorInvalidHandle);
  return hipMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

ATTEST_HIP hipError_t hipMemset2D(void* to, std::size_t pitch, int value, std::size_t width,
                                  std::size_t height) {
  return api([&] {
    if (width > pitch) return hipErrorInvalidValue;
    for (std::size_t row = 0; row < height; ++row)
      if (const hipError_t error = hipMemset(forward(to, row * pitch), value, width); error != hipSuccess)
        return error;
    return hipSuccess;
  });
}
ATTEST_HIP hipError_t hipMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width,
                                       std::size_t height, hipStream_t stream) {
  if (!Runtime::get().is_stream(stream)) return remember(hipErrorInvalidHandle);
  return hipMemset2D(to, pitch, value, width, height);
}

ATTEST_HIP hipError_t hipMemcpy3D(const hipMemcpy3DParms* p) {
  return api([&] {
    if (p == nullptr || p->srcArray != nullptr || p->dstArray != nullptr) return hipErrorNotSupported;
    if (p->srcPtr.ptr == nullptr || p->dstPtr.ptr == nullptr) return hipErrorInvalidValue;
    const auto at = [](const hipPitchedPtr& pointer, const hipPos& pos, std::size_t z) {
      return forward(pointer.ptr, ((pos.z + z) * pointer.ysize + pos.y) * pointer.pitch + pos.x);
    };
    for (std::size_t z = 0; z < p->extent.depth; ++z) {
      const hipError_t error =
          copy_rows(at(p->dstPtr, p->dstPos, z), p->dstPtr.pitch, at(p->srcPtr, p->srcPos, z),
                    p->srcPtr.pitch, p->extent.width, p->extent.height, p->kind);
      if (error != hipSuccess) return error;
    }
    return hipSuccess;
  });
}
ATTEST_HIP hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms* p, hipStream_t stream) {
  if (!Runtime::get().is_stream(stream)) return remember(hipErrorInvalidHandle);
  return hipMemcpy3D(p);
}

ATTEST_HIP hipError_t hipMemset3D(hipPitchedPtr pointer, int value, hipExtent extent) {
  return api([&] {
    for (std::size_t z = 0; z < extent.depth; ++z) {
      const hipError_t error = hipMemset2D(forward(pointer.ptr, z * pointer.ysize * pointer.pitch),
                                           pointer.pitch, value, extent.width, extent.height);
      if (error != hipSuccess) return error;
    }
    return hipSuccess;
  });
}
