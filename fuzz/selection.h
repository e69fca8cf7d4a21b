// SPDX-License-Identifier: MIT
//
// From the words of the command line to kernels, cases and workers. Every refusal is one line that says what
// would have been accepted.
#pragma once

#include <string>
#include <vector>

#include "device/kernel.h"
#include "fuzz/pool.h"
#include "fuzz/record.h"
#include "fuzz/shard.h"
#include "fuzz/usage_error.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {

/// Throws UsageError when there is no such kernel, naming the closest ones, or when it is for another arch;
/// DeviceUnavailable when it is one of AITER's and AITER's objects are not there.
const device::Kernel& select_kernel(const std::string& name, const Common& common);

/// The faultless kernels of `op`. Throws UsageError when there is none.
std::vector<std::string> kernels_of_op(const std::string& op, const Common& common);

/// The kernels that a word stands for: "aiter", every one of AITER's but faults and by hand ones, and
/// "aiter@sound", AITER's on the cases where they are known to be right. Empty for other words. Throws
/// DeviceUnavailable when AITER's objects are not there.
std::vector<std::string> kernels_of_word(const std::string& word, const Common& common);

/// A case file, a failure file, what attest export wrote, SEED:NUMBER (case NUMBER of the campaign with that
/// seed on `kernel`, which has been selected), or RUN:ITEM (as a run folder's events number them). Throws
/// UsageError, CaseError.
Reproduction select_case(const std::string& word, const std::string& kernel);

/// What a case runs on when nobody says: the kernel of its failure file, else attest/<op>. With --worker:
/// that kernel if the program still has it, else its kernel of the op. Throws UsageError when it has none.
std::string kernel_of(const Reproduction& r, const Common& common);

/// With --worker, the program's kernel when it has just one; else empty.
std::string only_worker_kernel(const Common& common);

/// A list of detectors in its canonical form ("uninitialised,lds-race"). Throws UsageError when a name is
/// none, with the known ones, or when the device has no detectors.
std::string select_detectors(const std::string& list, const Common& common);

/// A schedule in its canonical form ("quantum=7,seed=3", "plain"). Throws UsageError when it is none, or when
/// the device takes none.
std::string select_schedule(const std::string& word, const Common& common);

/// --worker: the kernels are those of the program behind `command`, the device is it. Nothing when empty.
/// Throws device::DeviceUnavailable when it says that it cannot run here, device::DeviceError when it is
/// none.
void use_worker(Common& common, const std::string& command);

/// Workers for `common.device`; jobs 0 = one per core on the simulator, one per GPU under HIP. Throws
/// UsageError.
PoolOptions pool_options(const Common& common, int jobs, std::uint64_t deadline_seconds,
                         std::uint64_t memory_mib = 4096);

/// GPUs that the kernel driver knows, without asking HIP: nodes of the topology with compute units.
/// @param topology /sys/class/kfd/kfd/topology/nodes, or a likeness
int count_gpus(const std::string& topology);

/// The part of a campaign that this process does: `words` (--shard), else the launcher's environment, else
/// all. Throws UsageError. @param from the variable that decided, else empty
Shard select_shard(const std::string& words, std::string& from);

}  // namespace attest::fuzz
