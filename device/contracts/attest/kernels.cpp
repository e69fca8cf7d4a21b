// SPDX-License-Identifier: MIT
#include "device/contracts/attest/kernels.h"

#include "device/contracts/attest/attest_kernel.h"

namespace attest::device::contracts {

std::vector<std::unique_ptr<const Kernel>> attest_kernels(const std::filesystem::path& directory) {
  KernelList list(directory);
  add_block_table_expand(list);
  add_spec_verify(list);
  add_work_plan(list);
  add_merge_states(list);
  add_mla_decode(list);
  add_mla_prefill(list);
  add_verify_attention(list);
  add_index_remap(list);
  add_topk(list);
  add_cache_write(list);
  add_indexer_logits(list);
  add_mla_sparse(list);
  add_dense_switch(list);
  return list.take();
}

}  // namespace attest::device::contracts
