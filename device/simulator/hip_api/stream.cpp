// SPDX-License-Identifier: MIT
//
// Streams and events. Every call has finished its work when it returns, which every legal order of streams
// allows; events read the device's simulated clock.
#include <hip/hip_runtime_api.h>

#include <utility>

#include "device/simulator/hip_api/export.h"
#include "device/simulator/hip_api/runtime.h"

using namespace attest::device::sim::hip;

namespace {

struct Event {
  unsigned int flags = 0;
  bool recorded = false;
  std::uint64_t at_ns = 0;
};

Event* event_of(hipEvent_t event) {
  return reinterpret_cast<Event*>(event);
}

hipError_t synchronise() {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  return std::exchange(d.pending, hipSuccess);
}

hipError_t create(hipStream_t* stream, unsigned int flags, int priority) {
  if (stream == nullptr) return hipErrorInvalidValue;
  if (flags != hipStreamDefault && flags != hipStreamNonBlocking) return hipErrorInvalidValue;
  *stream = Runtime::get().create_stream(flags, priority);
  return hipSuccess;
}

}  // namespace

ATTEST_HIP hipError_t hipDeviceSynchronize() {
  return api(synchronise);
}

ATTEST_HIP hipError_t hipStreamCreate(hipStream_t* stream) {
  return api([&] { return create(stream, hipStreamDefault, 0); });
}
ATTEST_HIP hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned int flags) {
  return api([&] { return create(stream, flags, 0); });
}
ATTEST_HIP hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned int flags, int priority) {
  return api([&] { return create(stream, flags, priority); });
}
ATTEST_HIP hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 1;
  if (greatest != nullptr) *greatest = -1;
  return hipSuccess;
}
ATTEST_HIP hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int* flags) {
  return api([&] {
    if (flags == nullptr) return hipErrorInvalidValue;
    const Stream* found = Runtime::get().find(stream);
    if (found == nullptr) return hipErrorInvalidHandle;
    *flags = found->flags;
    return hipSuccess;
  });
}
ATTEST_HIP hipError_t hipStreamGetPriority(hipStream_t stream, int* priority) {
  return api([&] {
    if (priority == nullptr) return hipErrorInvalidValue;
    const Stream* found = Runtime::get().find(stream);
    if (found == nullptr) return hipErrorInvalidHandle;
    *priority = found->priority;
    return hipSuccess;
  });
}
ATTEST_HIP hipError_t hipStreamSynchronize(hipStream_t stream) {
  return api([&] { return Runtime::get().is_stream(stream) ? synchronise() : hipErrorInvalidHandle; });
}
ATTEST_HIP hipError_t hipStreamQuery(hipStream_t stream) {
  return api([&] { return Runtime::get().is_stream(stream) ? synchronise() : hipErrorInvalidHandle; });
}
ATTEST_HIP hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int) {
  return api([&] {
    return Runtime::get().is_stream(stream) && event != nullptr ? hipSuccess : hipErrorInvalidHandle;
  });
}
ATTEST_HIP hipError_t hipStreamDestroy(hipStream_t stream) {
  return api([&] { return Runtime::get().remove_stream(stream) ? hipSuccess : hipErrorInvalidHandle; });
}
ATTEST_HIP hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void* data,
                                           unsigned int flags) {
  return api([&] {
    if (callback == nullptr || flags != 0) return hipErrorInvalidValue;
    if (!Runtime::get().is_stream(stream)) return hipErrorInvalidHandle;
    callback(stream, hipSuccess, data);
    return hipSuccess;
  });
}
ATTEST_HIP hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void* data) {
  return api([&] {
    if (function == nullptr) return hipErrorInvalidValue;
    if (!Runtime::get().is_stream(stream)) return hipErrorInvalidHandle;
    function(data);
    return hipSuccess;
  });
}

ATTEST_HIP hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  return api([&] {
    if (event == nullptr) return hipErrorInvalidValue;
    *event = reinterpret_cast<hipEvent_t>(new Event{flags, false, 0});
    return hipSuccess;
  });
}
ATTEST_HIP hipError_t hipEventCreate(hipEvent_t* event) {
  return hipEventCreateWithFlags(event, hipEventDefault);
}
ATTEST_HIP hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return api([&] {
    if (event == nullptr || !Runtime::get().is_stream(stream)) return hipErrorInvalidHandle;
    SimDevice& d = device();
    const std::scoped_lock lock(d.mutex);
    event_of(event)->recorded = true;
    // A marker takes a microsecond of its own: two events are never at the same time.
    event_of(event)->at_ns = d.clock_ns += 1000;
    return hipSuccess;
  });
}
ATTEST_HIP hipError_t hipEventSynchronize(hipEvent_t event) {
  return api([&] { return event != nullptr ? synchronise() : hipErrorInvalidHandle; });
}
ATTEST_HIP hipError_t hipEventQuery(hipEvent_t event) {
  return api([&] { return event != nullptr ? hipSuccess : hipErrorInvalidHandle; });
}
ATTEST_HIP hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  return api([&] {
    if (milliseconds == nullptr) return hipErrorInvalidValue;
    if (start == nullptr || stop == nullptr) return hipErrorInvalidHandle;
    const Event& from = *event_of(start);
    const Event& to = *event_of(stop);
    if (!from.recorded || !to.recorded) return hipErrorInvalidHandle;
    if (((from.flags | to.flags) & hipEventDisableTiming) != 0) return hipErrorInvalidHandle;
    *milliseconds =
        static_cast<float>((static_cast<double>(to.at_ns) - static_cast<double>(from.at_ns)) / 1e6);
    return hipSuccess;
  });
}
ATTEST_HIP hipError_t hipEventDestroy(hipEvent_t event) {
  return api([&] {
    if (event == nullptr) return hipErrorInvalidHandle;
    delete event_of(event);
    return hipSuccess;
  });
}
