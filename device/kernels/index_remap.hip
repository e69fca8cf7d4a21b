// SPDX-License-Identifier: MIT
//
// Positions that a top-k selected, into slots of the paged cache: one thread per entry.
//
//   slot = block_table[request][position / page_size] * page_size + position % page_size
//
// An entry below zero, or past the last block that a row of the table has, names no key and becomes what the
// caller asks for. Rows of the table may lie further apart than they are long.
//
// In ragged form a row keeps its first slot_indptr[t + 1] - slot_indptr[t] entries, whatever they are: the
// length of a list is decided by what the row sees, not by how many entries survive.
//
// The ATTEST_FAULT_ blocks are planted defects; device/kernels/faults/ says what each imitates.

#include <hip/hip_runtime.h>

#include "device/contracts/attest/index_remap_args.h"

namespace attest::kernels {

__device__ void index_remap(const contract::IndexRemapArgs& args) {
  const int row = static_cast<int>(blockIdx.x);
  const int entry =
      static_cast<int>(blockIdx.y) * contract::index_remap_threads + static_cast<int>(threadIdx.x);
  const int first = args.slot_indptr[row];
  if (entry >= args.slot_indptr[row + 1] - first) return;

  const std::int32_t position = args.indices[std::int64_t{row} * args.k + entry];
#if defined(ATTEST_FAULT_LOCAL_AS_GLOBAL)
  args.slots[first + entry] = position < 0 ? args.invalid_slot : position;
  return;
#endif
#if defined(ATTEST_FAULT_MINUS_ONE_IS_SLOT_ZERO)
  const std::int32_t none = 0;
#else
  const std::int32_t none = args.invalid_slot;
#endif
  const std::int32_t block = position / args.page_size;
#if defined(ATTEST_FAULT_TABLE_UNBOUNDED)
  const bool valid = position >= 0;
#else
  const bool valid = position >= 0 && block < args.table_width;
#endif
  std::int32_t slot = none;
  if (valid) {
    const std::int64_t at = std::int64_t{args.request_of_row[row]} * args.table_stride + block;
    const std::int32_t page = args.block_table[at];
#if defined(ATTEST_FAULT_BLOCK_OFFSET_DROPPED)
    slot = page * args.page_size;
#else
    slot = page * args.page_size + (position - block * args.page_size);
#endif
  }
  args.slots[first + entry] = slot;
}

}  // namespace attest::kernels

extern "C" __global__ __launch_bounds__(attest::contract::index_remap_threads) void index_remap(
    attest::contract::IndexRemapArgs args) {
  attest::kernels::index_remap(args);
}
