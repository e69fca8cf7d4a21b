// SPDX-License-Identifier: MIT
//
// What the simulator offers beyond HIP. Found with dlsym; a library that lacks them is not the simulator. All
// of them act on the calling thread's current device.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

/// The last fault as JSON, "" when the last launch had none:
///   {"kind", "message", "kernel", "pc", "disassembly", "workgroup": [x, y, z], "wave", "lane", "address"}
/// kind is one of core/fault.h's, or "code_object" after a module that could not be loaded (only "message"
/// then). pc is the address in the ELF image, as llvm-objdump prints it; wave and lane are -1 where there is
/// none. Valid until the next call.
const char* attest_sim_last_report();

/// Wave instructions executed by the last launch; 0 when it faulted.
std::uint64_t attest_sim_instructions();

/// Wave instructions a launch may execute before it counts as runaway.
void attest_sim_set_budget(std::uint64_t instructions);

/// Names [pointer, pointer + bytes) for reports. From then on it is the only part of its allocation kernels
/// may touch; the rest is the caller's guard zone.
void attest_sim_name_range(void* pointer, std::size_t bytes, const char* name);

/// How waves take turns and when loads arrive: "quantum=7,seed=3,skew=40,delivery=stale", "" for the plain
/// order (detect/schedule.h). 0: done. Else nothing has changed, and attest_sim_last_report() says so (kind
/// "schedule").
int attest_sim_set_schedule(const char* schedule);

/// Chooses detectors: "all", "none", or names separated by commas (detect/detectors.h). 0: done. Else nothing
/// has changed, and attest_sim_last_report() says which name is none (kind "detectors").
int attest_sim_set_detectors(const char* list);

/// What the chosen detectors found in the launches since the last call, as JSON:
///   {"hazards": [...], "clipped": {"loads", "stores", "atomics"}, "fidelity": [...]}
/// hazards are ranked, worst first (detect/report.h); fidelity is the ledger (detect/ledger.h). "" when no
/// detector is chosen. Valid until the next call.
const char* attest_sim_findings();

/// Says that [pointer, pointer + bytes) holds nothing a kernel may rely on, whatever was copied there:
/// reading it before a kernel has written it counts as uninitialised. hipMalloc leaves memory like that.
void attest_sim_mark_unwritten(void* pointer, std::size_t bytes);

/// Where faults are told to people: "stderr" (the default, or what ATTEST_SIM_REPORT says), a file that they
/// are appended to, or "" for nowhere.
void attest_sim_set_report(const char* where);

/// Threads that run workgroups; 0: as many as oneTBB offers. Results do not depend on it.
void attest_sim_set_threads(std::uint32_t threads);

}  // extern "C"
