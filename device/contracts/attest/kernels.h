// SPDX-License-Identifier: MIT
//
// The `attest` contract: our own kernels. How each is launched is in the *_args.h beside this, which the
// kernels read too.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "device/kernel.h"

namespace attest::device::contracts {

class KernelList;
void add_block_table_expand(KernelList& list);
void add_spec_verify(KernelList& list);
void add_work_plan(KernelList& list);
void add_merge_states(KernelList& list);
void add_mla_decode(KernelList& list);
void add_mla_prefill(KernelList& list);
void add_verify_attention(KernelList& list);
void add_index_remap(KernelList& list);
void add_topk(KernelList& list);
void add_cache_write(KernelList& list);
void add_indexer_logits(KernelList& list);
void add_mla_sparse(KernelList& list);
void add_dense_switch(KernelList& list);

/// Our kernels and their planted faults, as far as their code objects lie in `directory`.
std::vector<std::unique_ptr<const Kernel>> attest_kernels(const std::filesystem::path& directory);

}  // namespace attest::device::contracts
