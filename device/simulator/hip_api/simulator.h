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

/// Which ways the conditional branches of the kernels went that were launched since the last call, as JSON:
///   {"mla_decode_bf16_bf16": "0312", ...}      per kernel one digit for each branch its entry reaches, in
///                                              order of address: 0 not executed, 1 fell through, 2 taken, 3 both
/// Of a launch that faulted nothing is told. Valid until the next call.
const char* attest_sim_branches();

/// Asks how bytes [offset, offset + bytes) of the buffer of that name (attest_sim_name_range) come about in
/// the launches that follow, numbered from 0: which store before launch `before` wrote them last, and what
/// the value was made of (detect/provenance.h). `window` instructions of that wave around the store are
/// listed besides. Costs nothing until it is asked. name "": no more. Choose schedule and detectors before:
/// choosing them ends it.
void attest_sim_follow(const char* name, std::size_t offset, std::size_t bytes, std::uint32_t before,
                       std::uint32_t window);

/// The launches have been run. 1: run the very same ones again, allocated and filled as before, and call
/// again; 0: attest_sim_followed() has the answer.
int attest_sim_follow_again();

/// The answer as JSON:
///   {"buffer", "offset", "bytes", "times_written", "found",    only these when it is not found
///    "producer": {"kernel", "launch", "workgroup": [x, y, z], "wave", "lane", "number"},
///    "chain": [LINK, ...],    latest first: the store, then what its value was made of (detect/slice.h),
///                             every instruction of the program once; at most 200 of "links"
///    "executions", "recorded", "cut",       contributing, looked at; cut: something older was forgotten
///    "reads": [{"buffer", "offset", "bytes", "role": "value" | "address", "stored_in": [launch, ...]}, ...],
///                             memory that went into it; stored_in: by kernels, absent: by the host only
///    "loads": [{"pc", "disassembly"}, ...], that read it
///    "window": [LINK, ...]}                 in order of execution, when asked for
///   LINK: {"pc", "disassembly", "wave", "lane", "number", "exec", "register", "value": bits or null,
///          "times", "role", "memory": {"buffer", "offset"}, "sources": [{"register", "value"}, ...]}
/// Valid until the next call.
const char* attest_sim_followed();

/// Says that [pointer, pointer + bytes) holds nothing a kernel may rely on, whatever was copied there:
/// reading it before a kernel has written it counts as uninitialised. hipMalloc leaves memory like that.
void attest_sim_mark_unwritten(void* pointer, std::size_t bytes);

/// Where faults are told to people: "stderr" (the default, or what ATTEST_SIM_REPORT says), a file that they
/// are appended to, or "" for nowhere.
void attest_sim_set_report(const char* where);

/// Threads that run workgroups; 0: as many as oneTBB offers. Results do not depend on it.
void attest_sim_set_threads(std::uint32_t threads);

}  // extern "C"
