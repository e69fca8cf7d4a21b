// SPDX-License-Identifier: MIT
//
// The HIP module API as a table of functions, filled from whatever library provides it: a real libamdhip64 or
// the simulator's. Nothing is linked, and no HIP header is needed: the calls below have kept their C ABI
// since HIP 3.
//
// Two things have not, and are avoided: the numbering of hipDeviceAttribute_t, and the layout of
// hipDeviceProp_t (see architecture_of).
//
// A library may be the simulator's, which has a few more symbols; on a GPU those pointers are null.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace attest::device::hip {

using Error = int;       ///< hipError_t; 0 is success
using Module = void*;    ///< hipModule_t
using Function = void*;  ///< hipFunction_t
using Stream = void*;    ///< hipStream_t; nullptr is the default stream

enum class CopyKind : int { host_to_device = 1, device_to_host = 2 };

/// Keys of the `extra` array of hipModuleLaunchKernel.
inline void* const launch_param_buffer_pointer = reinterpret_cast<void*>(1);
inline void* const launch_param_buffer_size = reinterpret_cast<void*>(2);
inline void* const launch_param_end = reinterpret_cast<void*>(3);

struct Api {
  std::string library;  ///< the name it was opened by

  Error (*init)(unsigned flags) = nullptr;
  Error (*get_device_count)(int* count) = nullptr;
  Error (*set_device)(int ordinal) = nullptr;
  Error (*device_get_name)(char* name, int size, int ordinal) = nullptr;
  Error (*malloc)(void** pointer, std::size_t bytes) = nullptr;
  Error (*free)(void* pointer) = nullptr;
  Error (*memcpy)(void* to, const void* from, std::size_t bytes, int kind) = nullptr;
  Error (*module_load_data)(Module* module, const void* image) = nullptr;
  Error (*module_unload)(Module module) = nullptr;
  Error (*module_get_function)(Function* function, Module module, const char* name) = nullptr;
  Error (*module_launch_kernel)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                Stream stream, void** parameters, void** extra) = nullptr;
  Error (*device_synchronize)() = nullptr;
  const char* (*get_error_name)(Error error) = nullptr;
  const char* (*get_error_string)(Error error) = nullptr;
  Error (*get_last_error)() = nullptr;
  Error (*get_device_properties)(void* properties, int ordinal) = nullptr;
  Error (*runtime_get_version)(int* version) = nullptr;  ///< may be missing

  // The simulator's own. The report is JSON, {"kind", "message", "kernel", "pc", "disassembly", "workgroup",
  // "wave", "lane", "address"}, empty when nothing happened.
  const char* (*sim_last_report)() = nullptr;
  std::uint64_t (*sim_instructions)() = nullptr;                 ///< wave instructions of the last launch
  void (*sim_set_budget)(std::uint64_t instructions) = nullptr;  ///< per launch
  void (*sim_name_range)(void* pointer, std::size_t bytes, const char* name) = nullptr;
  void (*sim_set_report)(const char* where) = nullptr;      ///< where faults are told to people; "": nowhere
  int (*sim_set_schedule)(const char* schedule) = nullptr;  ///< 0, or the report says what is wrong
  int (*sim_set_detectors)(const char* list) = nullptr;     ///< 0, or the report says which name is none
  const char* (*sim_findings)() =
      nullptr;  ///< JSON, of the launches since the last call; "" without detectors
  const char* (*sim_branches)() = nullptr;  ///< JSON, of the launches since the last call
  void (*sim_mark_unwritten)(void* pointer, std::size_t bytes) = nullptr;
  void (*sim_follow)(const char* name, std::size_t offset, std::size_t bytes, std::uint32_t before,
                     std::uint32_t window) = nullptr;
  int (*sim_follow_again)() = nullptr;
  const char* (*sim_followed)() = nullptr;  ///< JSON

  [[nodiscard]] bool is_simulator() const { return sim_last_report != nullptr; }
};

/// A HIP call that did not succeed: "hipMalloc (kv_pool, 4096 bytes): hipErrorOutOfMemory, out of memory".
struct CallFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A simulator library. Throws DeviceUnavailable: it cannot be loaded, lacks a symbol, or is another HIP
/// library.
Api load_simulator(const std::filesystem::path& file);

/// The simulator of this installation, loaded at the first call. Throws like load_simulator.
const Api& simulator_api();

/// The ROCm runtime of this machine: libamdhip64.so, else a versioned name. Throws DeviceUnavailable when
/// there is none.
const Api& rocm_api();

/// "gfx942" of a device. hipDeviceProp_t holds it as a string, "gfx942:sramecc+:xnack-", at an offset that
/// changed with ROCm 6 (hipGetDevicePropertiesR0600). It is the only string in there that begins with "gfx",
/// so it is searched for rather than addressed; the device's name, which comes first, is skipped.
std::string architecture_of(const Api& api, int ordinal);

/// hipErrorNoDevice and the like, for messages.
std::string describe(const Api& api, Error error);

/// Throws CallFailed when error is not success; `what` names the call and its object.
void check(const Api& api, Error error, const std::string& what);

}  // namespace attest::device::hip
